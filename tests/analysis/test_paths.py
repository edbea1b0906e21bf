"""Single runs: which reach a threshold and when, and where the barrier lies."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.paths.answer import answer
from hdica.analysis.paths.figure import paths as draw
from hdica.analysis.paths.say import paths as say
from hdica.errors import HdicaError
from tests.analysis import escapes, toy
from tests.report.shown import plain

paths = toy.computed("paths")
TIMES = np.linspace(0.0, 40_000.0, 41)
ASKED = {"simulation": "chain", "threshold": 0.8, "barrier": "trapping", "runs": 1}


def runs(seeds: int = 1) -> xr.Dataset:
    """R of two entries at n = 100: rates 1 and 2 reach the threshold, the rate 4 does not."""
    r = np.full((3, 1, seeds, TIMES.size, 1, 2), 0.1)
    for cell, entry, step in ((0, 0, 10), (0, 1, 30), (1, 0, 5)):
        r[cell, 0, 0, step:, 0, entry] = -0.9
    dims = ("nu", "n", "seed", "time", "projection", "source")
    coords = {"nu": [1.0, 2.0, 4.0], "n": [100], "seed": np.arange(seeds), "time": TIMES}
    data = xr.Dataset({"R": (dims, r)}, {**coords, "projection": [0], "source": [0, 1]})
    return escapes.group(data, "chain", {"time", "projection", "source"})


def barrier() -> xr.Dataset:
    """Summits 2.5 and 3.5 of r at nu = 1 and 2; at nu = 4 the potential confines."""
    dims = ("nu", "projection", "source")
    summit = np.broadcast_to(np.array([2.5, 3.5, np.inf])[:, None, None], (3, 1, 2)).copy()
    coords = {"nu": [1.0, 2.0, 4.0], "projection": [0], "source": [0, 1]}
    return escapes.group(
        xr.Dataset({"summit": (dims, summit)}, coords), "trapping", {"projection", "source"}
    )


def found(seeds: int = 1, **more: object) -> xr.Dataset:
    tree = toy.tree({"chain": runs(seeds), "trapping": barrier()}, {})
    return paths(tree, {**ASKED, **more})


def told(data: xr.Dataset) -> list[str]:
    return list(plain(say(data)))


def test_the_first_sentence_says_which_runs_reach_the_threshold_and_when():
    data = found()
    assert told(data)[0] == (
        "Within 4 million steps |R| reaches 0.8 after 1 and 3 million steps at ν = 1 and after "
        "500\u202f000 steps at ν = 2, and not at ν = 4."
    )
    known = answer(data)
    assert known is not None
    assert plain([known.html])[0] == told(data)[0]
    assert data["reached"].sel(nu=1.0).values.ravel().tolist() == [10_000.0, 30_000.0]
    assert np.isnan(data["reached"].sel(nu=4.0)).all()


def test_what_lies_beyond_the_last_time_is_neither_drawn_nor_told():
    data = found(until=20_000)
    assert float(data["time"].max()) == 20_000
    assert told(data)[0].startswith("Within 2 million steps |R| reaches 0.8 after 1 million steps")
    with pytest.raises(HdicaError, match=r"^analysis\.paths\.until = 10 is not allowed \(at least"):
        found(until=10)


def test_several_runs_are_counted():
    text = told(found(2, runs=2))[0]
    assert "in 1 of 2 runs, first after 1 million steps, at ν = 1" in text


def test_nothing_reached_is_said():
    assert told(found(threshold=0.95))[0] == (
        "Within 4 million steps |R| does not reach 0.95 at ν = 1, ν = 2 and ν = 4."
    )


def test_dashed_lines_stand_at_the_tops_of_the_barrier():
    data = found()
    assert told(data)[1] == (
        "For n → ∞ the potential is highest at ±0.25 at ν = 1 and ±0.35 at ν = 2 (dashed lines)."
    )
    levels = []
    for panel in draw(data):
        lines = [one for one in panel.items if "barrier" in one.label.plain]
        assert {one.dash for one in lines} <= {"dash"}
        levels.append(sorted(float(one.y[0]) for one in lines))
    assert levels == [[-0.25, 0.25], [-0.35, 0.35], []]


def test_without_a_threshold_nothing_is_told():
    tree = toy.tree({"chain": runs()}, {})
    data = paths(tree, {"simulation": "chain"})
    assert say(data) == []
    assert answer(data) is None
    assert len(draw(data)) == 3
