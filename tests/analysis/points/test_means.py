"""Means at every grid point, against plain numpy on the published store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from hdica.analysis import points as module
from hdica.analysis.aggregate import aggregate, analysed
from hdica.analysis.points import means, spread_times
from hdica.status import DONE, STATUS_NAMES
from hdica.store.results import open_results
from tests.analysis import toy


@pytest.fixture(scope="module")
def walks(whole: Path) -> xr.Dataset:
    return open_results(whole)["walk"].to_dataset().load()


@pytest.fixture(scope="module")
def found(whole: Path) -> xr.DataTree:
    made = means(open_results(whole))
    assert made is not None
    return made


@pytest.mark.deep
def test_means_and_errors_are_those_of_numpy_at_every_point(
    found: xr.DataTree, walks: xr.Dataset
) -> None:
    data = found["walk"].to_dataset()
    done = (walks["status"].values == DONE)[..., None]
    values = np.where(done, walks["Q"].transpose(..., "seed", "time").values, np.nan)
    assert data["Q"].dims == ("tau", "Q0", "n", "time")
    with np.errstate(invalid="ignore"):
        mean, spread = values.mean(axis=-2), values.std(axis=-2, ddof=1)
    np.testing.assert_allclose(data["Q"], mean, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(data["Q_error"], spread / np.sqrt(6), rtol=1e-13)
    assert np.isnan(data["Q"].sel(tau=0.13)).all()
    assert np.isfinite(data["Q"].sel(tau=[0.1, 0.2])).all()


def test_points_are_counted_by_status(found: xr.DataTree, walks: xr.Dataset) -> None:
    data = found["walk"].to_dataset()
    for code, name in enumerate(STATUS_NAMES):
        counts = (walks["status"].values == code).sum(axis=-1)
        assert np.array_equal(data[f"runs_{name}"], counts), name
    assert int(data["runs_failed"].sum()) == int(data["runs_diverged"].sum()) == 24


def test_densities_have_errors_over_seeds(found: xr.DataTree, walks: xr.Dataset) -> None:
    data = found["walk"].to_dataset().sel(tau=0.2, Q0=0.25, n=30)
    own = walks["density"].sel(tau=0.2, Q0=0.25, n=30).transpose("seed", ...).values
    np.testing.assert_allclose(data["density"], own.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(
        data["density_error"], own.std(axis=0, ddof=1) / np.sqrt(6), rtol=1e-11, atol=1e-16
    )


def test_a_limit_stands_as_it_is_beside_what_it_is_the_limit_of(
    found: xr.DataTree, whole: Path
) -> None:
    line = open_results(whole)["line"].to_dataset()
    xr.testing.assert_equal(found["line"].to_dataset()["Q"], line["Q"].load())
    assert found["walk"]["Q"].attrs["others"].split() == ["line/Q", "profile/Q"]
    assert (found["walk"].attrs["seeds"], found["line"].attrs["seeds"]) == (6, 0)
    assert found["walk"]["Q"].attrs["along"] == "time"
    assert "Q_error" not in found["line"].to_dataset()


def test_bands_change_nothing(
    found: xr.DataTree, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BAND", 1)
    again = means(open_results(whole))
    assert again is not None
    xr.testing.assert_identical(found, again)


def test_of_many_numbers_fewer_times_are_kept_then_fewer_variables(
    found: xr.DataTree, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 4 * 2 * 2 * 2)
    less = means(open_results(whole))
    assert less is not None
    walk = less["walk"].to_dataset()
    assert list(walk["time"]) == [0.0, 2.0]
    xr.testing.assert_identical(walk["Q"], found["walk"].to_dataset()["Q"].isel(time=[0, 2]))
    assert "density" not in walk
    assert "walk/density" in less.attrs["left"].split()
    assert less.attrs["times"] == 3
    monkeypatch.setattr(module, "MOST", 8)
    none = means(open_results(whole))
    assert none is not None
    assert "walk/Q" in none.attrs["left"].split()
    assert "walk" not in none.children


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("most", [1, 2, 3, 50, 200])
def test_kept_times_hold_the_last_and_are_even(size: int, most: int) -> None:
    kept = spread_times(size, most)
    assert kept[-1] == size - 1
    assert len(kept) == min(size, most)
    assert most == 1 or kept[0] == 0
    steps = np.diff(kept)
    assert steps.size == 0 or steps.max() - steps.min() <= 1


def test_what_analyses_find_is_not_touched() -> None:
    tree = toy.store()
    both, alone = aggregate(tree), analysed(tree)
    assert set(both.children) == {*alone.children, "points"}
    for name in alone.children:
        xr.testing.assert_identical(both[name].to_dataset(), alone[name].to_dataset())
    assert both.attrs == alone.attrs


@pytest.mark.deep
def test_the_means_are_written_with_the_rest(tmp_path: Path) -> None:
    found = aggregate(toy.store())
    path = tmp_path / "aggregate.nc"
    found.to_netcdf(path, engine="h5netcdf")
    again = xr.open_datatree(path, engine="h5netcdf")
    xr.testing.assert_equal(again["points/chain"].to_dataset(), found["points/chain"].to_dataset())
    assert again["points/chain"]["Q"].attrs["others"] == "ode/Q"
