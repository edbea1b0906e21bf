"""Single runs: which reach a threshold and when, and where the barrier lies."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.trajectories.runs import paths_findings as findings
from hdica.analysis.trajectories.runs import paths_notes as notes
from hdica.analysis.trajectories.runs import paths_panels as draw
from hdica.errors import HdicaError
from hdica.show.finding import Finding
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


def times(data: xr.Dataset) -> list[Finding]:
    """Findings on the threshold, at which something is reached."""
    found = [one for one in findings(data) if "reaches" in one.quantity.plain]
    return [one for one in found if np.isfinite(one.value)]


def test_every_entry_has_the_time_after_which_it_reaches_the_threshold():
    data = found()
    first, second, third = times(data)
    assert first.quantity.plain == "the time after which |R| reaches 0.8"
    assert [one.value for one in (first, second, third)] == [1e6, 3e6, 5e5]
    assert [one.place["source"] for one in (first, second, third)] == [0, 1, 0]
    assert (third.place["nu"], third.place["n"], third.unit.plain) == (2.0, 100, "steps")
    assert plain(notes(data)) == [
        "No run reaches |R| = 0.8 within 4\u202f000\u202f000 steps at ν = 4."
    ]
    assert data["reached"].sel(nu=1.0).values.ravel().tolist() == [10_000.0, 30_000.0]
    assert np.isnan(data["reached"].sel(nu=4.0)).all()


def test_what_lies_beyond_the_last_time_is_neither_drawn_nor_counted():
    data = found(until=20_000)
    assert float(data["time"].max()) == 20_000
    assert [one.value for one in times(data)] == [1e6, 5e5]
    with pytest.raises(HdicaError, match=r"^analysis\.paths\.until = 10 is not allowed \(at least"):
        found(until=10)


def test_several_runs_are_counted():
    first = times(found(2, runs=2))[0]
    assert (first.value, first.evidence) == (1e6, "1 of 2 runs")
    assert first.quantity.plain.endswith("in the first run that does so")


def test_where_no_run_reaches_the_threshold_is_a_note():
    data = found(threshold=0.95)
    assert times(data) == []
    assert plain(notes(data))[0].endswith(
        "within 4\u202f000\u202f000 steps at ν = 1, ν = 2 and ν = 4."
    )
    data["path"].values[...] = np.nan  # no run is done
    assert notes(data) == []


def test_dashed_lines_stand_at_the_tops_of_the_barrier():
    data = found()
    tops = [one for one in findings(data) if "barrier" in one.quantity.plain]
    assert tops[0].quantity.plain == "|R| at the top of the barrier for n → ∞"
    assert [(one.place["nu"], one.value) for one in tops] == [(1.0, 0.25), (2.0, 0.35)]
    levels = []
    for panel in draw(data):
        lines = [one for one in panel.items if "barrier" in one.label.plain]
        assert {one.dash for one in lines} <= {"dash"}
        levels.append(sorted(float(one.y[0]) for one in lines))
    assert levels == [[-0.25, 0.25], [-0.35, 0.35], []]


def test_without_a_threshold_there_are_no_findings():
    tree = toy.tree({"chain": runs()}, {})
    data = paths(tree, {"simulation": "chain"})
    assert findings(data) == []
    assert notes(data) == []
    assert len(draw(data)) == 3
