"""Points that a study adds where its analysis sees neighbouring cells differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

import hdica
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.run.refine import add_cells
from hdica.run.runner import run
from hdica.status import DONE, LEFT_OUT
from hdica.store.paths import REFINED, work_path
from hdica.store.results import status
from hdica.store.sealed import write_sealed
from hdica.store.verify import repair, verify
from hdica.store.working import chosen_cells
from hdica.study.refine import coarse, finer

GRID = {"tau": {"start": 0.02, "stop": 0.07, "num": 4}, "Q0": {"start": 0.2, "stop": 0.9, "num": 4}}
PHASE = {"simulation": "chain", "x": "tau", "y": "Q0", "limit": "ode"}
LEVELS = 2


def study(**parts: object) -> hdica.Study:
    methods = {"chain": {"n": 500, "seeds": 3}, "ode": {}, "fixed_points": {}}
    content = {
        "study": "refined",
        "system": "OnlineICA",
        "grid": GRID,
        "times": [0, 30, 60],
        "methods": methods,
        "analysis": {"phase": PHASE},
        "refine": {"analysis": "phase", "levels": LEVELS},
    }
    return hdica.Study(**{**content, **parts})  # type: ignore[arg-type]


def numbers(out: Path) -> dict[str, np.ndarray]:
    tree = hdica.open_results(out)
    return {
        f"{name}/{key}": tree[name][key].to_numpy()
        for name in ("chain", "ode")
        for key in ("Q", "status")
    }


def equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(values, other[key], equal_nan=True) for key, values in one.items())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A refined study, run in one process without a break."""
    out = tmp_path_factory.mktemp("refined") / "refined.zarr"
    study().run(out=out)
    return out


def closure(side: np.ndarray, spec: hdica.Study) -> np.ndarray:
    """The cells of a refinement that sees every cell of a map, one box after the other."""
    parts = 2**LEVELS
    chosen = np.zeros(side.shape, dtype=bool)
    chosen[::parts, ::parts] = True
    before = 0
    while before < chosen.sum():
        before = int(chosen.sum())
        for width in (4, 2):
            for i in range(0, side.shape[0] - 1, width):
                for j in range(0, side.shape[1] - 1, width):
                    box = np.s_[i : i + width + 1, j : j + width + 1]
                    there = side[box][chosen[box]]
                    if chosen[box][::width, ::width].all() and there.min() < there.max():
                        chosen[box][:: width // 2, :: width // 2] = True
    return chosen


def test_boxes_are_divided_until_no_two_neighbours_differ() -> None:
    spec = study().spec
    first = coarse(spec)
    assert first.shape == (13, 13)
    assert first.sum() == 16
    rng = np.random.default_rng(5)
    i, j = np.indices(first.shape)
    maps = [i > 0.7 * j + 2.5, (i - 6) ** 2 + (j - 6) ** 2 < 20, rng.random(first.shape) < 0.2]
    for side in map(np.asarray, maps):
        chosen, rounds = first, 0
        while (more := finer(spec, chosen, side[None].astype(float))) is not None:
            assert (more >= chosen).all()
            assert more.sum() > chosen.sum()
            chosen, rounds = more, rounds + 1
        assert rounds >= LEVELS
        assert np.array_equal(chosen, closure(side, spec))
    line = np.asarray(maps[0])
    chosen = closure(line, spec)
    across = (line[1:] != line[:-1]) & chosen[1:] & chosen[:-1]
    assert np.array_equal(across, line[1:] != line[:-1])  # every change is between two that are
    # Several maps, as at several n: a box is divided where any of them has an edge.
    flat = np.zeros(first.shape)
    both = finer(spec, first, np.stack([flat, line.astype(float)]))
    assert np.array_equal(both, finer(spec, first, line[None].astype(float)))
    assert finer(spec, first, flat[None]) is None
    # What is not known tells nothing.
    assert finer(spec, first, np.where(line, np.nan, 0.0)[None]) is None


def test_a_smooth_boundary_takes_a_tenth_of_the_cells_and_loses_none() -> None:
    fine = {key: {**axis, "num": 9} for key, axis in GRID.items()}
    spec = study(grid=fine, refine={"analysis": "phase", "levels": 4}).spec
    chosen = coarse(spec)
    i, j = np.indices(chosen.shape) / (chosen.shape[0] - 1)
    side = j > 0.1 + 0.7 * np.sqrt(i)
    while (more := finer(spec, chosen, side[None].astype(float))) is not None:
        chosen = more
    assert chosen.sum() < chosen.size / 10
    places = distance_transform_edt(~chosen, return_distances=False, return_indices=True)
    assert np.array_equal(side[tuple(places)], side)


def test_points_are_those_of_the_whole_grid_where_it_changes(whole: Path, tmp_path: Path) -> None:
    finest = {key: {**axis, "num": 13} for key, axis in GRID.items()}
    out = tmp_path / "full.zarr"
    study(grid=finest, refine=None).run(out=out)
    refined, full = numbers(whole), numbers(out)
    for name in ("chain", "ode"):
        there = refined[f"{name}/status"] == DONE
        assert set(np.unique(refined[f"{name}/status"])) == {DONE, LEFT_OUT}
        assert 16 < there.reshape(13, 13, -1)[..., 0].sum() < 169
        assert np.array_equal(refined[f"{name}/Q"][there], full[f"{name}/Q"][there])
        assert np.isnan(refined[f"{name}/Q"][~there]).all()
    # The map is that of the whole grid: every cell goes where the nearest computed one goes.
    one, other = (hdica.open_results(p) for p in (whole, out))
    maps = [study(grid=g, refine=r).spec for g, r in ((GRID, study().spec.refine), (finest, None))]
    settings = [spec.analysis.phase for spec in maps]  # type: ignore[attr-defined]
    from hdica.analysis.phase.compute import phase
    from hdica.analysis.phase.refined import spread_out

    coarse_map, full_map = (phase(t, s) for t, s in zip((one, other), settings, strict=True))
    shown = spread_out(coarse_map, "tau", "Q0")
    most = shown["successes"] > 1.5
    assert np.array_equal(most, full_map["successes"] > 1.5)
    edge = coarse_map["threshold"] - full_map["threshold"]
    assert np.isfinite(full_map["threshold"]).any()
    assert float(abs(edge).max()) < 0.06  # a step of the finest grid


def test_a_query_for_the_nearest_point_takes_one_that_is_there(whole: Path, capsys) -> None:
    tree = hdica.open_results(whole)
    taus, starts = (tree["ode"][name].to_numpy().tolist() for name in ("tau", "Q0"))
    absent = np.argwhere(tree["ode"]["status"].to_numpy() == LEFT_OUT)
    assert absent.size
    for i, j in absent[::20]:
        at = ["--sel", f"tau={taus[i]!r}", "--sel", f"Q0={starts[j]!r}", "--sel", "time=60"]
        ask = ["query", str(whole), *at, "--method", "ode"]
        assert call(ask) == 0
        out, err = capsys.readouterr()
        assert out == "no point of this selection has a value\n"
        assert "1 are left out" in err
        assert call([*ask, "--nearest", "--to", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert tree["ode"]["status"].sel(tau=row["tau"], Q0=row["Q0"]) == DONE
        cells = np.argwhere(tree["ode"]["status"].to_numpy() == DONE)
        least = ((cells - (i, j)) ** 2).sum(axis=1).min()  # in steps of the finest grid
        across = (row["tau"] - taus[i]) / (taus[1] - taus[0])
        along = (row["Q0"] - starts[j]) / (starts[1] - starts[0])
        assert across**2 + along**2 == pytest.approx(least)


def test_a_query_says_what_codes_stand_for(whole: Path, capsys) -> None:
    assert call(["query", str(whole), "--method", "fixed_points", "--var", "kind"]) == 0
    assert "kind: 0 informative, 1 uninformative" in capsys.readouterr().err
    assert call(["query", str(whole), "--method", "ode", "--var", "status"]) == 0
    assert "status: 0 pending, 1 done, 2 diverged" in capsys.readouterr().err


def test_neither_workers_nor_restarts_change_it(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "refined.zarr"
    study().run(out=out, workers=2)
    assert equal(numbers(whole), numbers(out))
    # As far as the second level, by blocks of two points, and then on.
    stopped = tmp_path / "stopped" / "refined.zarr"
    stopped.parent.mkdir()
    spec = study(refine=None, grid={k: {**v, "num": 4} for k, v in GRID.items()}).spec
    run(spec, stopped, block=2)
    first = coarse(study().spec)
    assert add_cells(study().spec, stopped)
    assert chosen_cells(study().spec, stopped).sum() > first.sum()
    assert study().plan(out=stopped).pending > 0
    study().run(out=stopped, replace=True)
    assert equal(numbers(whole), numbers(stopped))
    # Nothing is left to do, and nothing is done.
    again = run(study().spec, stopped)
    assert again.computed == again.pending == 0


def test_it_grows_with_its_levels_and_its_seeds(whole: Path, tmp_path: Path) -> None:
    one, out = tmp_path / "refined.zarr", tmp_path / "direct" / "refined.zarr"
    out.parent.mkdir()
    study(refine={"analysis": "phase", "levels": 1}).run(out=one)
    few = verify(one).points
    study().run(out=one)
    assert equal(numbers(whole), numbers(one))
    assert verify(one).points > few
    more = {"chain": {"n": 500, "seeds": 4}, "ode": {}, "fixed_points": {}}
    study(methods=more).run(out=one)
    study(methods=more).run(out=out)
    assert equal(numbers(out), numbers(one))


def test_shards_leave_it_to_the_first(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "refined.zarr"
    second = run(study().spec, out, shard=(1, 2))
    assert second.computed == 0
    assert second.note.startswith("shard 1/2: nothing to do, shard 0 computes all points")
    assert run(study().spec, out, shard=(0, 2)).pending == 0
    study().run(out=out)
    assert equal(numbers(whole), numbers(out))


def test_a_damaged_record_is_named_and_chosen_anew(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "refined.zarr"
    study().run(out=out)
    file = work_path(out) / REFINED
    content = bytearray(file.read_bytes())
    at = content.index(b'"cells": "') + 12
    content[at] = ord("0") + (content[at] == ord("0"))
    file.write_bytes(content)
    assert REFINED in " ".join(verify(out).damaged)
    assert REFINED in " ".join(repair(out))
    assert not file.exists()
    assert status(out).note == "the refinement of refined is not finished (hdica run goes on)"
    study().run(out=out)
    assert status(out).note == ""
    assert verify(out).word == "whole"
    assert equal(numbers(whole), numbers(out))
    # A record of something else, or of fewer cells, is none.
    for cells in ("zz", "00", [1]):
        write_sealed(file, {"study": study().spec.full_hash(), "cells": cells})
        assert (REFINED in " ".join(verify(out).damaged)) == (cells != "00")
        repair(out)
        study().run(out=out)
        assert verify(out).word == "whole"
        assert equal(numbers(whole), numbers(out))
    # One that is cut short goes without being asked for; a store without it is the same.
    file.write_bytes(file.read_bytes()[:50])
    with pytest.warns(UserWarning, match="it is cut short"):
        study().run(out=out)
    shutil.rmtree(work_path(out))
    study().run(out=out)
    assert equal(numbers(whole), numbers(out))


def test_a_grid_without_a_boundary_says_so(tmp_path: Path) -> None:
    far = {**GRID, "tau": {"start": 0.2, "stop": 0.4, "num": 2}}
    with pytest.warns(UserWarning, match="no two neighbouring cells of the grid differ"):
        tree = study(grid=far).run(out=tmp_path / "refined.zarr")
    assert int((tree["chain"]["status"] == DONE).sum()) == 2 * 4 * 3


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"refine": {"analysis": "paths", "levels": 2}}, r"refine\.analysis = 'paths' is not one"),
        ({"analysis": {}}, r"refine\.analysis = 'phase' is not one of the study"),
        ({"refine": {"analysis": "phase"}}, r"refine\.levels = None is not allowed"),
        ({"refine": {"analysis": "phase", "levels": 9}}, r"refine\.levels = 9 .*at most 8"),
        ({"refine": {"analysis": "phase", "levels": 0}}, r"refine\.levels = 0 is not allowed"),
        ({"refine": {"level": 1}}, r"refine\.level.*levels"),
        (
            {"refine": {"analysis": "phase", "levels": 1, "over": ["nu"]}},
            r"refine\.over = \['nu'\]",
        ),
        ({"refine": {"analysis": "phase", "levels": 1, "over": ["tau"]}}, r"tau and Q0, which it"),
        ({"refine": {"analysis": "phase", "levels": 1, "over": "tau"}}, r"refine\.over = 'tau'"),
        ({"where": "tau < 0.05"}, r"where = 'tau < 0.05' is not allowed with refine"),
        ({"grid": {**GRID, "tau": [0.05]}}, r"grid\.tau is not allowed with refine \(two numbers"),
    ],
)
def test_what_is_no_refinement_is_refused(parts: dict[str, object], sentence: str) -> None:
    with pytest.raises(HdicaError, match=sentence):
        study(**parts)


def test_a_study_says_what_it_may_add(tmp_path: Path) -> None:
    plan = str(study().plan())
    assert "more are added where phase changes, at most 689 points in all" in plan
    assert "refine" in str(study())
    assert "2 times, where phase changes" in str(study())
    text = study().to_yaml()
    (tmp_path / "refined.yaml").write_text(text)
    assert hdica.Study.load(tmp_path / "refined.yaml") == study()
    assert "refine" not in study(refine=None).spec.model_dump(mode="json")
