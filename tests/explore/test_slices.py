"""Slices of results, against plain xarray on the published store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from hdica.analysis import points
from hdica.explore import slices
from hdica.status import DONE, STATUS_NAMES
from hdica.store.results import open_results


def chosen(
    tree: xr.DataTree, method: str = "walk", variable: str = "Q", **values: object
) -> tuple[points.Quantity, points.Point]:
    """A variable with a point: of what is not named the last value."""
    shown = points.quantity(tree, method, variable)
    last = {axis.name: axis.values[-1] for axis in shown.axes}
    return shown, {axis.name: axis.at((last | values)[axis.name]) for axis in shown.axes}


@pytest.fixture(scope="module")
def walks(whole: Path) -> xr.Dataset:
    return open_results(whole)["walk"].to_dataset().load()


@pytest.mark.deep
def test_a_map_has_means_and_errors_over_seeds(whole: Path, walks: xr.Dataset) -> None:
    tree = open_results(whole)
    shown, point = chosen(tree, n=10)
    found = slices.mean_over(tree, shown, point, "Q0", "tau")
    part = walks.sel(n=10).reset_coords(drop=True)
    mean = part["Q"].where(part["status"] == DONE).mean("seed")
    error = part["Q"].where(part["status"] == DONE).std("seed", ddof=1) / np.sqrt(6)
    xr.testing.assert_allclose(found["mean"], mean.transpose("Q0", "tau", "time"))
    xr.testing.assert_allclose(found["error"], error.transpose("Q0", "tau", "time"))
    for code, name in enumerate(STATUS_NAMES):
        expected = (part["status"] == code).sum("seed").transpose("Q0", "tau")
        assert np.array_equal(found[name], expected), name
    assert found["failed"].sel(tau=0.13).item(0) == 6
    assert found["diverged"].sel(tau=0.17).item(0) == 6


def test_a_large_map_is_read_in_bands_and_thinned(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = open_results(whole)
    shown, point = chosen(tree)
    everything = slices.mean_over(tree, shown, point, "Q0", "tau")
    monkeypatch.setattr(points, "BAND", 1)
    bands = slices.mean_over(tree, shown, point, "Q0", "tau")
    xr.testing.assert_identical(bands, everything)
    every = slices.every_nth
    monkeypatch.setattr(slices, "every_nth", lambda size: every(size, 2))
    thinned = slices.mean_over(tree, shown, point, "Q0", "tau")
    xr.testing.assert_identical(thinned, everything.isel(tau=[0, 2]))


def test_a_map_at_one_time_is_a_map_of_all_at_that_time(whole: Path) -> None:
    tree = open_results(whole)
    shown, point = chosen(tree, time=0.5)
    everything = slices.mean_over(tree, shown, point, "Q0", "tau")
    one = slices.mean_over(tree, shown, point, "Q0", "tau", whole=False)
    xr.testing.assert_allclose(one["mean"], everything["mean"].sel(time=0.5, drop=True))


def test_a_course_and_a_cut_cross_at_the_point(whole: Path, walks: xr.Dataset) -> None:
    tree = open_results(whole)
    shown, point = chosen(tree, tau=0.2, Q0=0.25, time=0.5)
    course = slices.mean_over(tree, shown, point)
    cut = slices.mean_over(tree, shown, point, "tau", whole=False)
    expected = walks["Q"].sel(tau=0.2, Q0=0.25, n=30, time=0.5)
    assert course["mean"].sel(time=0.5) == pytest.approx(expected.mean().item())
    assert cut["mean"].sel(tau=0.2) == pytest.approx(expected.mean().item())
    np.testing.assert_allclose(slices.runs(tree, shown, point), expected)


def test_theory_is_shown_at_the_same_point(whole: Path) -> None:
    tree = open_results(whole)
    shown, _ = chosen(tree)
    assert {one.method for one in points.beside(tree, shown)} == {"line", "profile"}
    found = slices.mean_over(tree, *chosen(tree, "line", tau=0.2, Q0=0.25))["mean"]
    np.testing.assert_allclose(found, 0.25 + 0.2 * np.array([0, 0.5, 2]))


@pytest.mark.parametrize("whole_time", [False, True])
def test_densities_are_means_over_seeds(whole: Path, walks: xr.Dataset, whole_time: bool) -> None:
    tree = open_results(whole)
    shown, point = chosen(tree, "walk", "density", tau=0.2, Q0=0.25, snapshot=0.5, feature=1.0)
    found = slices.density(tree, shown, point, *(["snapshot"] if whole_time else []))
    part = walks["density"].sel(tau=0.2, Q0=0.25, n=30).isel(feature=point["feature"])
    part = part if whole_time else part.sel(snapshot=0.5)
    np.testing.assert_allclose(found["mean"], part.mean("seed"))
    np.testing.assert_allclose(found["error"], part.std("seed", ddof=1) / np.sqrt(6))


def test_why_a_point_diverged_or_failed_is_told(whole: Path) -> None:
    tree = open_results(whole)
    for tau, why in ((0.13, "0.13"), (0.17, "diverged at step 7"), (0.2, "")):
        found = slices.reason(tree, *chosen(tree, tau=tau))
        assert why in found
        assert bool(found) == bool(why)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.1, 0.2, 0.3], "linear"),
        ([100, 400, 1600], "log"),
        ([1.0, 2.0, 7.0], "places"),
        (["uniform", "laplace"], "places"),
        ([1.0], "places"),
    ],
)
def test_axes_lie_as_their_values_do(values: list[object], scale: str) -> None:
    assert points.Axis("tau", np.array(values)).scale == scale
