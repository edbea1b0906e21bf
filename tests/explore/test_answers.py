"""What the explorer's server answers, and what it reads of a run that goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.points import Axis, Quantity, quantity
from hdica.errors import HdicaError
from hdica.explore import slices
from hdica.explore.answers import Answers, Maps
from hdica.explore.feed import Feed
from hdica.report.explored import LONG, WORD, Numbers, Table, catalogue
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.study import Study

AT = {"tau": 3, "Q0": 0, "n": 1, "time": 2}


@pytest.fixture(scope="module")
def answers(whole: Path) -> Answers:
    return Answers(Feed(whole))


def read(message: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a message and its numbers."""
    end = WORD + int.from_bytes(message[:WORD], "big")
    return json.loads(message[WORD:end]), message[end:]


def request(number: int = 1, **wanted: Any) -> bytes:
    one = {"table": "walk/Q", "point": AT, "sides": [], "runs": False} | wanted
    return json.dumps({"number": number, "wanted": [one]}).encode()


def slice_of(answers: Answers, **wanted: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One slice: what is said of it, and its arrays."""
    header, body = read(answers.slices(request(**wanted)))
    (one,) = header["slices"]

    def numbers(where: dict[str, int]) -> np.ndarray:
        own = np.frombuffer(body, np.uint8, WORD * where["size"], where["begin"])
        return np.ascontiguousarray(own.reshape(WORD, -1).T).view(">f4").ravel().astype(float)

    arrays = {name: numbers(one[name]) for name in ("mean", "error") if one[name]}
    return one, arrays | {name: numbers(where) for name, where in one["counts"].items()}


def test_the_first_table_is_the_simulation_with_its_limits(answers: Answers) -> None:
    header, body = read(answers.catalogue())
    tables = header["tables"]
    first = tables[header["first"]]
    assert (first["method"], first["variable"]) == ("walk", "Q")
    assert set(first["others"]) == {"line/Q", "profile/Q"}
    assert [one["method"] for one in tables if one["density"]] == ["walk", "profile"]
    assert {one["method"] for one in tables if one["offered"]} == {"walk", "line", "profile"}
    assert [header["axes"][k]["name"] for k in first["axes"]] == ["tau", "Q0", "n", "time"]
    assert header["served"]["totals"] == {"diverged": "24", "failed": "24"}
    assert header["served"]["computed"] == "Published: 112 of 112 points are computed"
    assert body == b""


def test_a_page_has_the_catalogue_and_no_numbers(answers: Answers) -> None:
    page = answers.page()
    assert 'name="referrer" content="no-referrer"' in page
    assert "connect-src 'self'" in page
    assert '<section id="explore"' in page
    assert page.count("<script") == 3  # the plotting script, the catalogue, the explorer


def test_slices_are_those_of_the_results(answers: Answers, whole: Path) -> None:
    walks = open_results(whole)["walk"].to_dataset().load()["Q"].sel(n=30)
    seeds = walks.sel(tau=0.2, Q0=0.25)
    one, course = slice_of(answers, sides=["time"])
    np.testing.assert_allclose(course["mean"], seeds.mean("seed"), rtol=1e-6)
    np.testing.assert_allclose(course["error"], seeds.std("seed", ddof=1) / 6**0.5, rtol=1e-6)
    assert (one["why"], one["counts"]) == ("", {})
    _, cut = slice_of(answers, sides=["tau"])
    expected = walks.isel(time=2).sel(Q0=0.25).mean("seed", skipna=False)
    np.testing.assert_allclose(cut["mean"], expected, rtol=1e-6)
    assert [cut[name].tolist() for name in ("done", "failed")] == [[6, 0, 0, 6], [0, 6, 0, 0]]
    one, area = slice_of(answers, sides=["Q0", "tau"])
    assert area["mean"].reshape(2, 4)[0].tolist() == pytest.approx(cut["mean"], nan_ok=True)
    assert one["ends"] == [float(walks.mean("seed").min()), float(walks.mean("seed").max())]
    _, runs = slice_of(answers, runs=True)
    np.testing.assert_allclose(runs["mean"], seeds.isel(time=2), rtol=1e-6)


def test_densities_are_sent_for_all_snapshots(answers: Answers, whole: Path) -> None:
    at = {**AT, "snapshot": 0, "feature": 0, "x": 0}
    _, found = slice_of(answers, table="walk/density", point=at, sides=["snapshot", "x"])
    density = open_results(whole)["walk"]["density"].sel(tau=0.2, Q0=0.25, n=30)
    expected = density.isel(feature=0).mean("seed").transpose("snapshot", "x")
    np.testing.assert_allclose(found["mean"], expected.to_numpy().ravel(), rtol=1e-5)


def test_a_density_is_a_variable_too(answers: Answers) -> None:
    point = {**AT, "snapshot": 1, "feature": 0, "x": 15}
    for method in ("walk", "profile"):
        at = {k: v for k, v in point.items() if k != "n" or method == "walk"}
        about = {"table": f"{method}/density", "point": at}
        _, over_x = slice_of(answers, **about, sides=["x"])
        _, cut = slice_of(answers, **about, sides=["tau"])
        _, area = slice_of(answers, **about, sides=["Q0", "tau"])
        assert cut["mean"][3] == pytest.approx(over_x["mean"][15], rel=1e-6)
        assert area["mean"].reshape(2, 4)[0].tolist() == pytest.approx(cut["mean"], nan_ok=True)


def test_why_points_have_no_value_is_sent(answers: Answers) -> None:
    one, found = slice_of(answers, point={**AT, "tau": 1}, sides=["time"])
    assert "step size 0.13" in one["why"]
    assert found["failed"].tolist() == [6]
    assert np.isnan(found["mean"]).all()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no list of slices"),
        (b"[" * 100_000, "no list of slices"),
        (b"\xff", "no list of slices"),
        (b"[]", "no list of slices"),
        (b'{"wanted": 1}', "no list of slices"),
        (b'{"number": 1, "wanted": [{"table": "walk/Q"}]}', "no list of slices"),
        (request(sides={"tau": 1}), "no list of slices"),
        (request(runs=1), "no list of slices"),
        (request(number=2), "as they were before"),
        (request(table="walk/secret"), "no table"),
        (request(table="../walk/Q"), "no table"),
        (request(point={}), "no slice"),
        (request(point={**AT, "tau": 4}), "no slice"),
        (request(point={**AT, "tau": -1}), "no slice"),
        (request(point={**AT, "tau": True}), "no slice"),
        (request(point={**AT, "tau": 0.5}), "no slice"),
        (request(sides=["tau", "tau"]), "no slice"),
        (request(sides=["tau", "time"]), "no slice"),
        (request(sides=["tau", "Q0", "n"]), "no slice"),
        (request(sides=["seed"]), "no slice"),
        (request(sides=[1]), "no slice"),
        (request(sides=[["tau"]]), "no slice"),
    ],
)
def test_other_requests_are_refused(answers: Answers, text: bytes, why: str) -> None:
    with pytest.raises(HdicaError, match=why):
        answers.slices(text)


def test_maps_are_kept_for_all_times(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, maps = Feed(whole).now, Maps()
    shown: Quantity = quantity(now.tree, "walk", "Q")
    first, ends = maps.at(now, shown, AT, "Q0", "tau")
    monkeypatch.setattr(slices, "mean_over", None)  # nothing is read any more
    later, again = maps.at(now, shown, {**AT, "time": 0}, "Q0", "tau")
    assert ends == again
    assert not later["mean"].equals(first["mean"])


def test_of_a_long_axis_the_ends_are_sent() -> None:
    for values in (np.linspace(0.1, 1, LONG + 1), np.geomspace(1, 1e6, LONG + 1)):
        axes = (Axis("tau", values),)
        table = Table("m", "Q", axes, ("tau",), "", 0, ())
        (axis,) = catalogue([table], Numbers())["axes"]
        assert axis["ends"] == [values[0], values[-1]]
        assert "shown" not in axis


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
