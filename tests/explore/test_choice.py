"""What a visitor chooses, and what the explorer reads of a run that goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.points import means
from hdica.analysis.points.space import Axis
from hdica.explore.choice import chosen
from hdica.explore.feed import Feed
from hdica.explore.surfaces import Surfaces
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import Study


def test_the_first_choice_is_the_simulation_with_its_limits(whole: Path) -> None:
    choice = chosen(Feed(whole).now.tree)
    assert (choice.shown.method, choice.shown.variable) == ("walk", "Q")
    assert {one.method for one in choice.others} == {"line", "profile"}
    assert [one.method for one in choice.densities] == ["walk", "profile"]
    assert (choice.x, choice.y) == ("tau", "Q0")
    assert choice.values["n"] == 30
    assert choice.values["time"] == 2.0


def test_what_is_not_there_is_replaced(whole: Path) -> None:
    tree = Feed(whole).now.tree
    choice = chosen(tree, "nobody", "nothing", "Q0", "Q0", {"tau": 0.199, "n": 10})
    assert (choice.shown.method, choice.shown.variable) == ("walk", "Q")
    assert (choice.x, choice.y) == ("Q0", "tau")
    assert (choice.values["tau"], choice.values["n"]) == (0.2, 10)


def test_maps_are_kept_for_all_times(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, surfaces = Feed(whole).now, Surfaces()
    choice = chosen(now.tree)
    first = surfaces.at(now, choice.shown, choice.point, "tau", "Q0")
    monkeypatch.setattr(means, "mean_over", None)  # nothing is read any more
    later = surfaces.at(now, choice.shown, {**choice.point, "time": 0}, "tau", "Q0")
    assert (later.low, later.high) == (first.low, first.high)
    assert not later.data["mean"].equals(first.data["mean"])


def test_what_is_committed_is_read_like_what_is_published(half: Path, whole: Path) -> None:
    live, done = Feed(half).now, Feed(whole).now
    assert live.live
    assert not done.live
    assert 0 < live.counts["pending"] < live.points == done.points
    for name in ("walk", "line", "profile"):
        part, full = (one.tree[name].to_dataset() for one in (live, done))
        full = full.drop_vars("step", errors="ignore")
        known = part["status"] != 0
        assert known.any()
        assert not known.all()
        for variable in ("status", *(v for v in part.data_vars if part[v].dtype.kind == "f")):
            xr.testing.assert_equal(part[variable].where(known), full[variable].where(known))
            assert part[variable].dims == full[variable].dims
        rows = part["Q"].isel(tau=[3, 0], time=slice(1, None), Q0=1).load()
        xr.testing.assert_equal(rows, part["Q"].load().isel(tau=[3, 0], time=slice(1, None), Q0=1))


def test_single_entries_of_what_is_committed_are_read_at_their_places(half: Path) -> None:
    data = Feed(half).now.tree["walk"].to_dataset()
    known = data["density"].load()
    for place in (
        {"snapshot": 1, "feature": 0},
        {"feature": 0, "x": [3, 1]},
        {"tau": 2, "n": 1, "seed": [5, 0], "snapshot": 1, "x": 7},
    ):
        fresh = Feed(half).now.tree["walk"].to_dataset()["density"].isel(place)
        xr.testing.assert_equal(fresh.load(), known.isel(place))


@pytest.mark.deep
def test_points_appear_as_they_are_computed(study: Study, tmp_path: Path) -> None:
    out = tmp_path / "toy.zarr"
    run(study, out, shard=(0, 3), progress=False, block=4)
    feed = Feed(out)
    first = feed.now
    assert not feed.look()
    run(study, out, shard=(1, 3), progress=False, block=4)
    assert feed.look()
    assert feed.now.live
    assert feed.now.counts["pending"] < first.counts["pending"]
    run(study, out, progress=False, block=4)
    publish(study, out)
    assert feed.look()
    assert not feed.now.live
    assert feed.now.counts["pending"] == 0
    assert not feed.look()


def test_what_cannot_be_read_is_told_and_the_last_snapshot_stays(
    study: Study, tmp_path: Path
) -> None:
    out = tmp_path / "toy.zarr"
    run(study, out, shard=(0, 3), progress=False, block=4)
    feed = Feed(out)
    before = feed.now
    (out.with_suffix(".work") / "study.json").write_text("{")
    assert not feed.look()
    assert feed.now is before
    assert "study.json" in feed.trouble


@pytest.mark.parametrize(
    ("values", "ends", "second"),
    [
        ([0.1, 0.2, 0.3], (0.05, 0.35), (0.15, 0.25)),
        ([1.0, 10.0, 100.0], (10**-0.5, 10**2.5), (10**0.5, 10**1.5)),
        ([1.0, 2.0, 7.0], (-0.5, 2.5), (0.5, 1.5)),
        ([3.0], (-0.5, 0.5), (-0.5, 0.5)),
    ],
    ids=["even", "even in the logarithm", "uneven", "single"],
)
def test_cells_of_a_side_lie_about_their_values(
    values: list[float], ends: tuple[float, float], second: tuple[float, float]
) -> None:
    from hdica.explore.view.sides import Side

    side = Side(Axis("tau", np.array(values)))
    assert side.ends == pytest.approx(ends)
    assert side.edges(1) == pytest.approx(second)
    assert side.range().bounds == pytest.approx(ends)
    assert [side.place(at) for at in side.centres] == list(range(len(values)))


def test_bins_of_runs_reach_from_the_least_to_the_largest() -> None:
    from hdica.explore.view.figures import bins

    edges = bins(np.linspace(-1.0, 3.0, 100))
    assert (edges[0], edges[-1], edges.size) == (-1.0, 3.0, 16)
    assert bins(np.full(5, 2.0)) == pytest.approx([1.9, 1.9667, 2.0333, 2.1], abs=1e-4)
