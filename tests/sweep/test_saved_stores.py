"""Stores with densities and support recovery: arrays, bits, damage, questions."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.cli import call
from hdica.ingredients.save import NOTHING
from hdica.run.block import block_of
from hdica.run.plan import plan
from hdica.run.runner import run
from hdica.status import PENDING
from hdica.store import publish as dense
from hdica.store import working
from hdica.store.paths import work_path
from hdica.store.publish import publish
from hdica.store.results import open_results, status
from hdica.store.sealed import read_block
from hdica.store.verify import repair, verify
from hdica.store.working import place
from hdica.study.segment import segments_of
from tests.sweep import toy
from tests.sweep.conftest import made, values
from tests.sweep.harm import flip
from tests.sweep.keeping import METHODS, SAVE, saved, without

SPARSE: dict[str, Any] = {"prior": {"sparse": 0.05}}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that is computed in blocks of 5 and published."""
    toy.register()
    out = tmp_path_factory.mktemp("template") / "toy.zarr"
    made(saved(parameters=SPARSE), out, block=5)
    return out.parent


@pytest.fixture
def tree(template: Path, out: Path) -> xr.DataTree:
    """A fresh copy of the computed and published study."""
    shutil.copytree(template, out.parent)
    return open_results(out)


@pytest.mark.deep
def test_dimensions_and_coordinates(tree: xr.DataTree) -> None:
    walk, profile = tree["walk"], tree["profile"]
    points = ("tau", "Q0", "n", "seed")
    assert walk.density.dims == (*points, "snapshot", "feature", "x")
    assert walk.cdf.dims == (*points, "snapshot", "feature", "edge")
    assert walk.tpr.dims == (*points, "snapshot", "threshold")
    assert walk.mse.dims == (*points, "time")
    assert walk.xi.dims == (*points, "feature")
    assert profile.potential.dims == ("tau", "Q0", "snapshot", "feature", "x")
    assert "tpr" not in profile
    assert set(tree["line"].dims) == {"tau", "Q0", "time"}
    assert walk.snapshot.values.tolist() == [0.5, 2]
    assert walk.x.values.tolist() == [-2, -1, 0, 1, 2]
    assert walk.edge.values.tolist() == [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    assert walk.feature.values.tolist() == [0, 4.472135955]
    assert walk.snapshot.attrs["units"] == "samples per dimension (k/n)"
    for dim in ("snapshot", "x", "edge", "threshold", "feature"):
        assert set(walk[dim].attrs) == {"long_name", "units"}
    assert walk.mse.attrs["long_name"] == "mean of (x - xi)**2"


def test_every_number_is_where_it_belongs(tree: xr.DataTree) -> None:
    system = toy.Toy(tau=0.2, prior={"sparse": 0.05}, start={"overlap": 0.25})
    save = saved().save_spec()
    expected = toy.walk(system, np.array([0, 0.5, 2]), 30, 2, save).values
    found = tree["walk"].to_dataset().sel(tau=0.2, Q0=0.25, n=30, seed=2)
    assert set(found.attrs["outputs"].split()) == set(expected)
    for name, value in expected.items():
        assert found[name].values.tobytes() == value.tobytes()


def test_what_is_kept_leaves_order_parameters_alone(tree: xr.DataTree, out: Path) -> None:
    alone = out.with_name("alone.zarr")
    made(saved(None, parameters=SPARSE), alone)
    assert tree["walk"].Q.identical(open_results(alone)["walk"].Q)


def test_groups_that_differ_among_cells_are_numbered(out: Path) -> None:
    grid = {"tau": [0.1], "rho": [0.04, 0.25]}
    made(saved(parameters={}, grid=grid), out)
    walk = open_results(out)["walk"]
    assert walk.feature.values.tolist() == [0, 1]
    assert walk.feature.dtype == np.int64
    assert "group" in walk.feature.attrs["long_name"]
    assert walk.xi.sel(feature=1).isel(n=0, seed=0, tau=0).values.tolist() == [5, 2]


@pytest.mark.deep
def test_it_opens_without_this_package_and_without_a_warning(tree: xr.DataTree, out: Path) -> None:
    code = (
        "import sys, xarray as xr; tree = xr.open_datatree(sys.argv[1], engine='zarr');"
        "one = xr.open_zarr(sys.argv[1], group='walk', chunks=None);"
        "some = dict(snapshot=2, x=1, feature=0, tau=0.3);"
        "print(float(tree['walk'].density.sel(some).sum()) == float(one.density.sel(some).sum()));"
        "assert 'hdica' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(out)], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == "True\n"


@pytest.mark.deep
@pytest.mark.parametrize("block", [1, 5])
def test_blocks_and_shards_change_no_bit(out: Path, block: int) -> None:
    study, other = saved(), out.with_name("other.zarr")
    expected = made(study, other, block=7)
    for index in (2, 0, 1):
        run(study, out, shard=(index, 3), progress=False, block=block)
    publish(study, out)
    assert values(out) == expected


@pytest.mark.deep
def test_two_processes_change_no_bit(out: Path, toy_workers: None) -> None:
    study = saved()
    expected = made(study, out.with_name("other.zarr"))
    assert made(study, out, block=4, cluster={"mode": "local", "workers": 2}) == expected


@pytest.mark.deep
@pytest.mark.parametrize("elements", [3, 7, 100])
def test_chunks_of_any_size_hold_the_same_numbers(
    tree: xr.DataTree, out: Path, monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    before = values(out)
    monkeypatch.setattr(dense, "CHUNK_ELEMENTS", elements)
    monkeypatch.setattr(dense, "SPAN", 8 * elements)
    publish(saved(parameters=SPARSE), out)
    assert values(out) == before


def test_a_block_is_read_once_for_neighbouring_chunks(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = saved()
    run(study, out, progress=False, block=9)
    monkeypatch.setattr(dense, "CHUNK_ELEMENTS", 25)
    real, read = working.read_block, []

    def counted(path: Path, names: Any = None) -> Any:
        read.extend((path, name) for name in names or ())
        return real(path, names)

    monkeypatch.setattr(working, "read_block", counted)
    publish(study, out)
    assert open_results(out)["walk"].density.encoding["chunks"] == (1, 1, 1, 2, 2, 1, 5)
    for file in place(study, out)[0].path.iterdir():
        assert read.count((file, "density")) == 1


@pytest.mark.deep
def test_a_grown_grid_computes_its_new_points_alone(out: Path, calls: Path) -> None:
    run(saved(), out, progress=False)
    calls.write_text("")
    larger = saved(grid={"tau": [0.1, 0.2, 0.25, 0.3], "Q0": [0.25, 0.5]})
    assert run(larger, out, progress=False).computed == 2 * 6 + 2 + 2
    assert len(calls.read_text().splitlines()) == 16
    publish(larger, out)
    assert values(out) == made(larger, out.with_name("alone.zarr"))


@pytest.mark.deep
def test_another_save_computes_in_segments_of_its_own(out: Path, calls: Path) -> None:
    base = saved()
    before = made(base, out)
    old = {s.name for s in segments_of(base)}
    calls.write_text("")
    other = saved({**SAVE, "thresholds": [0, 0.2]})
    assert plan(other, out).pending == 36
    assert run(other, out, progress=False).computed == 36
    assert {line.split()[0] for line in calls.read_text().splitlines()} == {"walk"}
    assert old <= {p.name for p in work_path(out).iterdir()}
    publish(other, out)
    assert open_results(out)["walk"].sizes["threshold"] == 2
    assert run(base, out, progress=False).computed == 0
    publish(base, out)
    assert values(out) == before


def test_a_worker_needs_the_block_alone(out: Path) -> None:
    study = saved()
    first, _, line = place(study, out)[:3]
    assert block_of(first, np.arange(1)).save == study.save_spec()
    assert block_of(line, np.arange(1)).save == NOTHING


def test_an_output_that_is_not_returned_fails_its_point(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = toy.make()["profile"]
    object.__setattr__(method, "run", lambda *_: toy.PointResult({"Q": np.ones(3)}))
    toy.lend(monkeypatch, method)
    study = saved(without("thresholds", "functionals"), methods={"profile": {}})
    assert run(study, out, progress=False).counts["failed"] == 6
    reason = place(study, out)[0].read("reason", np.array([0]), "", object)[0]
    assert reason == "HdicaError: density is missing from what the method returned"


@pytest.mark.deep
@pytest.mark.faults
def test_a_damaged_block_is_named_repaired_and_restored(tree: xr.DataTree, out: Path) -> None:
    study, before = saved(parameters=SPARSE), values(out)
    file = sorted(place(study, out)[0].path.iterdir())[2]
    count = len(read_block(file).arrays["status"])
    flip(file)
    verdict = verify(out)
    assert verdict.code == 3
    assert str(file) in verdict.damaged[0]
    assert len(repair(out)) == 1
    assert run(study, out, progress=False).computed == count
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


@pytest.mark.deep
@pytest.mark.faults
@pytest.mark.parametrize("elements", [2**18, 7])
def test_a_damaged_published_density_is_pending_and_comes_back(
    tree: xr.DataTree, out: Path, monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    study, before = saved(parameters=SPARSE), values(out)
    monkeypatch.setattr(dense, "CHUNK_ELEMENTS", elements)
    publish(study, out)
    file = out / "walk" / "density" / "c" / "0" / "0" / "0" / "0" / "0" / "0" / "0"
    flip(file)
    verdict = verify(out)
    assert verdict.code == 3
    assert f"{file} is damaged" in verdict.damaged[0]
    assert "points of walk: tau 0.1" in verdict.damaged[0]
    repair(out)
    assert verify(out).code == 1
    group = open_results(out)["walk"].to_dataset()
    pending = group.status == PENDING
    assert pending.any()
    assert bool(pending.all()) == (elements == 2**18)
    assert group.density.where(pending, drop=True).isnull().all()
    assert group.density.where(~pending).count() == 20 * int((~pending).sum())
    publish(study, out)
    assert values(out) == before


@pytest.mark.faults
def test_a_damaged_coordinate_publishes_again(tree: xr.DataTree, out: Path) -> None:
    flip(out / "walk" / "feature" / "c" / "0")
    assert "coordinate feature of walk" in verify(out).damaged[0]
    assert "publishes again" in repair(out)[0]


def test_a_plan_and_a_status_count_what_is_kept(out: Path) -> None:
    study = saved()
    walk, _, line, profile = plan(study, out).segments
    own = 2 * 5 + 2 * 6 + 2 + 3 * 6 + 3 + 3  # density, cdf, xi and weight, rates, mse, Q
    assert walk.bytes_per_point == 8 * own + 49
    assert line.bytes_per_point == 8 * 6 + 49
    assert profile.bytes_per_point == 8 * (2 * 10 + 12 + 2 + 3) + 49
    assert plan(study, out).bytes == 36 * walk.bytes_per_point + 6 * (
        line.bytes_per_point + profile.bytes_per_point
    )
    run(study, out, progress=False)
    assert status(out).total("done") == 48


def ask(results: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert call(["query", str(results), *arguments]) == 0
    return capsys.readouterr().out


def test_questions_about_densities(
    tree: xr.DataTree, out: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = ["--sel", "snapshot=2", "--sel", "feature=4.472135955", "--sel", "tau=0.3"]
    cell = ["--sel", "Q0=0.5", "--sel", "n=30", "--sel", "seed=1"]
    exact = tree["walk"].density.sel(snapshot=2, feature=4.472135955, tau=0.3)
    exact = exact.sel(Q0=0.5, n=30, seed=1)
    rows = list(csv.DictReader(io.StringIO(ask(out, capsys, *where, *cell, "--to", "csv"))))
    assert [float(row["density"]) for row in rows] == exact.values.tolist()
    assert [float(row["x"]) for row in rows] == [-2, -1, 0, 1, 2]
    found = json.loads(ask(out, capsys, *where, *cell, "--to", "json"))
    assert [row["density"] for row in found] == exact.values.tolist()
    file = tmp_path / "q.nc"
    ask(out, capsys, *where, "--to", "netcdf", "--out", str(file))
    with xr.open_dataset(file, engine="h5netcdf") as data:
        assert data.density.dims == ("Q0", "n", "seed", "x")
        assert data.density.sel(Q0=0.5, n=30, seed=1).values.tolist() == exact.values.tolist()
    head = ask(out, capsys, "--method", "profile", *where, "--sel", "Q0=0.5").splitlines()[0]
    assert head.split()[-3:] == ["x", "density", "potential"]
    assert {*head.split()[:-3]} == {"tau", "Q0", "snapshot", "feature"}


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        (["--sel", "tau=0.3"], ["Q", "mse"]),
        (["--sel", "threshold=0.1"], ["tpr", "fpr", "misclassified"]),
        (["--sel", "edge=0.5"], ["cdf"]),
        (["--sel", "feature=0"], ["density"]),
        (["--mean", "x"], ["density", "density_count"]),
        (["--sel", "feature=0", "--var", "xi"], ["xi"]),
    ],
)
def test_a_question_shows_what_has_the_dimensions(
    tree: xr.DataTree, out: Path, capsys: pytest.CaptureFixture[str],
    arguments: list[str], columns: list[str],
) -> None:  # fmt: skip
    text = ask(out, capsys, *arguments, "--method", "walk", "--to", "csv")
    assert text.splitlines()[0].split(",")[-len(columns) :] == columns


def test_a_question_that_no_output_answers(
    tree: xr.DataTree, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["query", str(out), "--sel", "snapshot=2", "--sel", "time=2"]) == 2
    assert "no output has all the dimensions snapshot, time" in capsys.readouterr().err
    assert call(["query", str(out), "--sel", "feature=3"]) == 2
    assert "feature=3 is not there (values: 0, 4.472135955;" in capsys.readouterr().err


def test_validate_and_plan_say_what_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "toy.yaml"
    file.write_text(json.dumps(toy.study(save=SAVE, methods=METHODS)), encoding="utf-8")
    keeps = "densities (walk, profile), support recovery (walk), functionals (walk)"
    assert call(["validate", str(file)]) == 0
    assert capsys.readouterr().out.endswith(f"at most 48 points, keeping {keeps}\n")
    assert call(["plan", str(file), "--out", str(tmp_path / "toy.zarr")]) == 0
    assert f"keeps {keeps}" in capsys.readouterr().out
    assert call(["plan", str(file), "--out", str(tmp_path / "toy.zarr"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["keeps"] == keeps
    assert made["segments"][0]["bytes_per_point"] > made["segments"][2]["bytes_per_point"]
