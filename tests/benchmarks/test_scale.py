"""The measurements of scale run small, and the page shows what was measured."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import hdica
from benchmarks import account, million, scale
from hdica.run.plan import plan
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import load_study, point_count, study_from

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/scale.md").read_text()
PLACE = {
    "processor": "Abacus",
    "cores": 1,
    "system": "Linux",
    "versions": {"Python": "3.11.7", "zarr": "3.1.6"},
    "date": "2026-01-02",
}


def test_page_shows_what_was_measured():
    measured = json.loads((ROOT / "benchmarks/scale.json").read_text())
    assert set(measured) == set(scale.TABLES)
    assert scale.with_tables(PAGE, measured) == PAGE


@pytest.mark.deep
def test_examples_of_the_page_split_a_study_and_put_it_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write, ask, lazily = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found = {}
    exec(write, found)  # noqa: S102 - our own text
    files = sorted(Path("config/studies").glob("*.yaml"))
    assert len(files) == 4
    for file in files:
        study = load_study(file)
        run(study, f"results/{file.stem}.zarr", progress=False)
        publish(study, f"results/{file.stem}.zarr")
    exec(ask, found)  # noqa: S102
    exec(lazily, found)  # noqa: S102
    content = {**json.loads(files[0].read_text()), "study": "one"}
    content["grid"]["tau"] = found["whole"].tau.values.tolist()
    run(study_from(content), "results/one.zarr", progress=False)
    publish(study_from(content), "results/one.zarr")
    one = hdica.open_results("results/one.zarr")["chain"].Q.sel(Q0=0.5, time=2).mean("seed")
    assert one.sizes["tau"] == 8
    assert np.array_equal(found["whole"], one)
    assert np.array_equal(found["same"], one)


@pytest.mark.usefixtures("wide_registers")
def test_vectors_of_the_account_take_about_twenty_milliseconds(tmp_path):
    study = study_from(account.content(10**5))
    assert point_count(study) == 10**5
    (segment,) = plan(study, tmp_path / "vectors.zarr").segments
    assert 0.015 < segment.seconds_per_point < 0.025
    assert 0.2 < segment.seconds_per_point * segment.block <= 2.1


@pytest.mark.deep
def test_time_of_a_study_is_accounted_for():
    found = account.measure(points=200, last=1.0, bare=2)
    assert found["points"] == 200
    assert 0 < found["own"] < found["processes"] * found["wall"]
    assert 0 < found["bare"] < 0.1
    assert found["driver"] > 0.1
    assert found["driver_mib"] > 50
    said = "\n".join(account.tables(found))
    assert f"{2 * found['wall'] / found['own']:.4f}" in said


@pytest.mark.deep
def test_a_command_that_fails_says_why(tmp_path):
    command = [str(Path(account.sys.executable).parent / "hdica"), "query", "absent.zarr"]
    with pytest.raises(RuntimeError, match="does not exist"):
        account.watched(command, tmp_path)
    with pytest.raises(RuntimeError, match="does not exist"):
        million.hdica(tmp_path, "query", "absent.zarr")


@pytest.mark.parametrize("name", million.SHAPES)
def test_a_shape_has_about_as_many_points_as_asked(name):
    make, _ = million.SHAPES[name]
    for points in (100, 10**4):
        assert point_count(study_from(make(points))) == pytest.approx(points, rel=0.15)


@pytest.mark.deep
def test_every_cost_of_a_study_is_measured():
    found = {
        "cells": million.shape(million.cells(100), True),
        "constants": million.shape(million.constants(100), False),
    }
    one = found["cells"]
    assert one["points"] == 100
    assert all(one[stage]["seconds"] > 0 and one[stage]["mib"] > 20 for stage in million.STAGES)
    assert set(one["half"]) == set(one["whole"]) == {"load", "decide"}
    assert set(one["slices"]) == {"open", "tau", "Q0"}
    assert found["constants"]["fresh"]["decide"]["cpu"] > 0
    head, line, *rows = million.tables(found)
    assert head == "| | cells | constants |"
    assert {row.count("|") for row in (line, *rows)} == {4}
    assert any(row.startswith("| one slice along the slowest parameter |") for row in rows)


def test_tables_go_between_their_markers():
    driven = {"workers": 10, "rate": 500.0, "cpu": 0.0016, "seconds": 2.0, "over": 1.03}
    entry = {"machine": PLACE, "found": {"rounds": 4, "planned": [driven], "lengths": [driven]}}
    text = "a <!-- scheduler -->\nold\n<!-- /scheduler --> b"
    found = scale.with_tables(text, {"scheduler": entry})
    assert "old" not in found
    assert "| 10 | 2 s | 5 | 500 | 1 % | 1.6 ms | 1.030 |" in found
    assert "Abacus, 1 core, Linux; Python 3.11.7, zarr 3.1.6; 2026-01-02." in found
    assert found.startswith("a <!-- scheduler -->\n")
    assert found.endswith("\n<!-- /scheduler --> b")
    for wrong in ("none", "<!-- /scheduler --> <!-- scheduler -->"):
        with pytest.raises(ValueError, match="exactly one pair"):
            scale.with_tables(wrong, {"scheduler": entry})


def test_command_prints_and_writes(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(scale, "measured", lambda *how: asked.append(how) or {})
    monkeypatch.setattr(scale, "section", lambda name, entry: f"table of {name}")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/scale.md"
    page.write_text("a\n<!-- account -->\nold\n<!-- /account -->\nb\n")
    scale.main(["account", "--small", "--points", "300"], tmp_path)
    assert asked == [("account", True, 300)]
    assert "old" in page.read_text()
    scale.main(["account", "--write"], tmp_path)
    assert page.read_text() == "a\n<!-- account -->\ntable of account\n<!-- /account -->\nb\n"
    assert json.loads((tmp_path / "benchmarks/scale.json").read_text()) == {"account": {}}
    assert "table of account" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        scale.main(["no_such"])
    assert "no measurement no_such" in capsys.readouterr().err
