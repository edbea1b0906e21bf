"""Another study never takes the place of one that is published, unless it is told to."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.store.paths import locked, manifest_path, work_path
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.store.sealed import write_sealed
from hdica.store.working import refuse_another
from hdica.study.study import Study, study_from
from hdica.systems import system as registry
from tests.sweep import toy

GRID = {"tau": [0.1, 0.2, 0.3], "Q0": [0.25, 0.5]}


def made(**changes: Any) -> Study:
    about: dict[str, Any] = {"grid": GRID, "methods": {"line": {}}}
    return study_from(toy.study(**(about | changes)))


def published(out: Path, **changes: Any) -> Study:
    study = made(**changes)
    run(study, out, progress=False)
    publish(study, out)
    return study


def file(folder: Path, study: Study) -> str:
    path = folder / f"{study.study}.yaml"
    path.write_text(study.model_dump_json())
    return str(path)


SAME = [
    {"title": "Another title"},
    {"times": [0, 1, 7]},
    {"methods": {"walk": {"n": [10], "seeds": 2}}},
    {"grid": {"tau": [0.1, 0.2, 0.3, 0.4], "Q0": [0.25, 0.5]}},
    {"grid": {"tau": [0.2], "Q0": [0.5, 0.9]}},
    {"grid": {"tau": {"start": 0.1, "stop": 0.9, "num": 9}, "Q0": [0.5]}},
    {"grid": {"Q0": [0.5]}, "parameters": {"source": "laplace", "tau": 0.1}},
    {"grid": {**GRID, "source": ["uniform", "laplace"]}, "parameters": {}},
    {"parameters": {"source": "laplace", "gain": 1.0}},
    {"grid": {**GRID, "gain": [0.5, 1.0]}},
    {"grid": {"tau": [0.1], "start.overlap": [0.25]}},
    {"grid": {"tau": [0.1]}, "parameters": {"source": "laplace", "start": {"overlap": 0.5}}},
]
ANOTHER = [
    ({"study": "other"}, "study is 'toy' there and 'other' here"),
    ({"grid": {"tau": [0.4, 0.5], "Q0": [0.5]}}, "tau is 0.1, 0.2, 0.3 there and 0.4, 0.5 here"),
    ({"grid": {"tau": {"start": 0.5, "stop": 0.9, "num": 5}, "Q0": [0.5]}},
     "tau is 0.1, 0.2, 0.3 there and 0.5, 0.6, 0.7, ... (5 values) here"),
    ({"parameters": {"source": "uniform"}}, "source is laplace there and uniform here"),
    ({"parameters": {}}, "source is laplace there and uniform here"),
    ({"parameters": {"source": "laplace", "gain": 2}}, "gain is 1 there and 2 here"),
    ({"grid": {**GRID, "gain": [2, 3]}}, "gain is 1 there and 2, 3 here"),
    ({"grid": {"tau": [0.1], "rho": [0.1, 0.2]}}, "rho is not set there and 0.1, 0.2 here"),
    ({"grid": {"tau": [0.9], "Q0": [0.9]}, "study": "other"},
     "study is 'toy' there and 'other' here; tau is 0.1, 0.2, 0.3 there and 0.9 here; Q0 is"),
]  # fmt: skip


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published study, which no test changes."""
    toy.register()
    out = tmp_path_factory.mktemp("another") / "results" / "toy.zarr"
    published(out)
    return out


@pytest.mark.parametrize("changes", SAME)
def test_a_study_that_goes_on_is_the_same(there: Path, changes: dict[str, Any]) -> None:
    refuse_another(made(**changes), there)


def test_a_grid_that_moves_on_goes_on(out: Path) -> None:
    for taus in ([0.1, 0.2], [0.2, 0.3], [0.3]):
        published(out, grid={"tau": taus})
        assert open_results(out)["line"].tau.values.tolist() == taus


@pytest.mark.parametrize(("changes", "sentence"), ANOTHER)
def test_another_study_is_refused_before_any_work(
    there: Path, tmp_path: Path, calls: Path, changes: dict[str, Any], sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    before = {p: p.stat().st_mtime_ns for p in there.parent.rglob("*") if p.name != ".lock"}
    arguments = [file(tmp_path, made(**changes)), "--out", str(there)]
    for command in ("run", "publish"):
        assert call([command, *arguments]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"hdica: {there} belongs to another study: ")
        assert sentence in said
        assert "--replace" in said
        assert said.count("\n") == 1
    assert calls.read_text() == ""
    after = {p: p.stat().st_mtime_ns for p in there.parent.rglob("*") if p.name != ".lock"}
    assert after == before


def test_another_study_that_is_to_replace_does(out: Path, tmp_path: Path) -> None:
    published(out)
    arguments = [file(tmp_path, made(study="other", grid={"tau": [0.9]})), "--out", str(out)]
    assert call(["run", *arguments, "--quiet"]) == 2
    assert open_results(out).attrs["study"] == "toy"
    assert call(["run", *arguments, "--quiet", "--replace"]) == 0
    assert open_results(out).attrs["study"] == "other"
    assert call(["run", *arguments, "--quiet"]) == 0
    back = [file(tmp_path, made()), "--out", str(out)]
    assert call(["publish", *back]) == 2
    assert call(["publish", *back, "--replace"]) == 0
    assert open_results(out).attrs["study"] == "toy"


def test_another_system_is_another_study(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(toy.Toy):
        pass

    monkeypatch.setitem(registry.systems(), "Other", toy.record(toy.make(), Other))
    published(out)
    with pytest.raises(HdicaError, match="system is 'Toy' there and 'Other' here"):
        run(made(system="Other"), out, progress=False)


def test_new_code_is_no_other_study(out: Path) -> None:
    published(out)
    toy.register(kernel="8")
    published(out)


def test_what_is_only_planned_is_not_replaced_either(out: Path) -> None:
    run(made(), out, progress=False)
    with pytest.raises(HdicaError, match="tau is 0.1, 0.2, 0.3 there"):
        run(made(grid={"tau": [0.9]}), out, progress=False)
    with pytest.raises(HdicaError, match="tau is 0.1, 0.2, 0.3 there"):
        publish(made(grid={"tau": [0.9]}), out)
    # What is published counts, where something is.
    publish(made(), out)
    run(made(grid={"tau": [0.9]}), out, progress=False, replace=True)
    with pytest.raises(HdicaError, match="tau is 0.1, 0.2, 0.3 there"):
        publish(made(grid={"tau": [0.9]}), out)
    manifest_path(out).unlink()  # its publication was cut short
    with pytest.raises(HdicaError, match="tau is 0.1, 0.2, 0.3 there"):
        publish(made(grid={"tau": [0.9]}), out)


def test_records_that_cannot_be_read_stop_nobody(out: Path) -> None:
    published(out)
    (out / "zarr.json").write_text("{")
    (work_path(out) / "study.json").write_text("{")
    published(out, grid={"tau": [0.9]})


RUN = """
import json, sys
from tests.sweep import toy
toy.register()
from hdica.errors import HdicaError
from hdica.store.sealed import write_sealed
from hdica.store.publish import publish
from hdica.run.runner import run
from hdica.study.study import study_from
study = study_from(json.loads(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    run(study, sys.argv[2], progress=False)
    publish(study, sys.argv[2])
    print("won")
except HdicaError as exc:
    print(exc)
"""


@pytest.mark.deep
def test_of_two_studies_that_start_at_once_one_wins(out: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, made(grid=grid).model_dump_json(), str(out)],
            stdin=-1, stdout=-1, text=True, cwd=Path(__file__).parents[2],
        )
        for grid in ({"tau": [0.1, 0.2]}, {"tau": [0.3, 0.4]})
    ]  # fmt: skip
    # Both stand before the lock: whatever they looked at before, nothing was there.
    with locked(out):
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in started:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
    said = sorted(one.communicate(timeout=120)[0].strip() for one in started)
    assert said[1] == "won"
    assert "belongs to another study: tau is" in said[0]
    taus = open_results(out)["line"].tau.values.tolist()
    assert taus in ([0.1, 0.2], [0.3, 0.4])


def test_what_was_planned_while_one_waited_for_the_lock_counts(out: Path) -> None:
    """A look before the lock sees nothing: what counts is the one under it."""
    with ThreadPoolExecutor(1) as pool:
        with locked(out) as work:
            waiting = pool.submit(run, made(), out, progress=False)
            time.sleep(0.3)
            write_sealed(work / "study.json", made(grid={"tau": [0.9]}).model_dump(mode="json"))
        with pytest.raises(HdicaError, match=r"tau is 0\.9 there and 0\.1, 0\.2, 0\.3 here"):
            waiting.result(60)
