"""Numbers of ``ds.hdica`` against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import hdica
from tests.plots.conftest import SEEDS, TIMES, simulated, theory


def done(runs: xr.Dataset) -> np.ndarray:
    """The runs that count: all but the last."""
    return runs["Q"].values[..., :-1, :]


def test_the_mean_leaves_out_a_diverged_run_with_all_its_times(runs):
    found = runs.hdica.mean()
    y = done(runs)
    assert found["Q"].values == pytest.approx(y.mean(axis=0), rel=1e-13)
    sd = y.std(axis=0, ddof=1)
    assert found["Q_sd"].values == pytest.approx(sd, rel=1e-13)
    assert found["Q_se"].values == pytest.approx(sd / np.sqrt(SEEDS - 1), rel=1e-13)
    assert int(found["Q_runs"]) == SEEDS - 1
    assert set(found) == {"Q", "Q_se", "Q_sd", "Q_runs"}
    assert found.attrs["system"] == "OnlineICA"


def test_means_over_a_grid_and_several_n_have_its_labels():
    runs = simulated({"tau": [0.1, 0.2, 0.3]}, n=[100, 400])
    found = runs.hdica.mean("Q")
    assert found["Q"].dims == ("tau", "n", "time")
    assert found["Q"].values == pytest.approx(done(runs).mean(axis=-2), rel=1e-13)


def test_a_point_without_a_run_is_not_a_number():
    runs = simulated({"tau": [0.1, 0.2]})
    runs["status"][0] = 3
    found = runs.hdica.mean()
    assert found["Q"].isel(tau=0).isnull().all()
    assert found["Q"].isel(tau=1).notnull().all()
    assert found["Q_runs"].values.tolist() == [0, SEEDS - 1]


def test_no_mean_of_times_that_were_not_waited_for():
    one = xr.Dataset({"first": ("seed", [1.0, 2.0]), "first_seen": ("seed", [1.0, 0.0])})
    for variable in ("first", None):
        with pytest.raises(hdica.HdicaError, match="'first' is not allowed .*survival"):
            one.hdica.mean(variable)


def test_the_distance_has_the_errors_of_both(runs, limit):
    found = runs.hdica.distance(limit)
    y = done(runs)
    gap = y.mean(axis=0) - limit["Q"].values
    se = y.std(axis=0, ddof=1) / np.sqrt(SEEDS - 1)
    error = np.sqrt(se**2 + 1e-6)
    assert found["difference"].values == pytest.approx(gap, abs=1e-15)
    assert found["difference_error"].values == pytest.approx(error, rel=1e-12)
    assert found["z"].values == pytest.approx(gap / error, rel=1e-9)
    worst = np.abs(gap).argmax()
    assert float(found["sup_error"]) == pytest.approx(abs(gap[worst]), rel=1e-12)
    assert float(found["sup_error_se"]) == pytest.approx(se[worst], rel=1e-12)
    assert float(found["sup_time"]) == TIMES[worst]
    assert int(found["runs"]) == SEEDS - 1
    assert found["n"] == 100


def test_the_distance_over_a_grid_is_that_of_each_point():
    grid = {"tau": [0.1, 0.2]}
    runs, limit = simulated(grid, n=[100, 400]), theory(grid)
    whole = runs.hdica.distance(limit)
    one = runs.sel(tau=0.2, n=400).hdica.distance(limit.sel(tau=0.2))
    assert whole["difference"].dims == ("tau", "n", "time")
    assert whole["z"].sel(tau=0.2, n=400).values == pytest.approx(one["z"].values)


@pytest.mark.parametrize("key", ["time", "tau"])
def test_a_limit_of_other_labels_is_refused(key):
    grid = {"tau": [0.1, 0.2]}
    limit = theory(grid).isel({key: slice(1, None)})
    with pytest.raises(hdica.HdicaError, match=f"not there at every {key}"):
        simulated(grid).hdica.distance(limit)


def test_a_limit_that_is_no_dataset_is_refused(runs):
    with pytest.raises(hdica.HdicaError, match="a float is not allowed"):
        runs.hdica.distance(0.5)


def test_bands_of_runs_are_order_statistics(runs):
    found = runs.hdica.bands(0.5)
    y = np.sort(done(runs), axis=0)  # 11 runs: the third, sixth and ninth
    for name, k in (("low", 2), ("middle", 5), ("high", 8)):
        assert found[name].values.tolist() == y[k].tolist()
    assert found.attrs["of"] == "runs"
    assert found.attrs["level"] == 0.5


def test_bands_of_the_mean_are_students(runs):
    found = runs.hdica.bands(0.95, of="mean")
    y = done(runs)
    ends = stats.t.interval(0.95, SEEDS - 2, loc=y.mean(axis=0), scale=stats.sem(y, axis=0, ddof=1))
    assert found["low"].values == pytest.approx(ends[0], rel=1e-12)
    assert found["high"].values == pytest.approx(ends[1], rel=1e-12)


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"level": 1.0}, "level = 1.0"), ({"of": "all"}, "of = 'all'"), ({"variable": "P"}, "'P'")],
)
def test_what_a_band_is_not(runs, asked, why):
    with pytest.raises(hdica.HdicaError, match=why):
        runs.hdica.bands(**asked)


def test_a_curve_crosses_where_it_does(limit):
    found = limit.hdica.crossings("Q", 0.5)  # exactly, for an exponential
    assert float(found["passage"]) == pytest.approx(10 * np.log(0.8 / 0.5), rel=1e-12)
    assert found.attrs["rising"] == 0
    assert set(found) == {"passage"}


def test_a_rising_curve_is_taken_as_straight():
    line = theory().assign(Q=("time", 0.1 * TIMES))
    found = line.hdica.crossings("Q", 0.25)
    assert float(found["passage"]) == pytest.approx(2.5, rel=1e-12)
    assert found.attrs["rising"] == 1
    assert float(line.hdica.crossings("Q", 2.0)["passage"]) == np.inf
    assert float(line.hdica.crossings("Q", 0.25, rising=False)["passage"]) == 0.0


def test_crossings_of_runs_have_errors_over_seeds(runs):
    found = runs.hdica.crossings("Q", 0.6)
    by_hand = []
    for y in done(runs):
        k = int((y <= 0.6).argmax())
        share = np.log(y[k - 1] / 0.6) / np.log(y[k - 1] / y[k])
        by_hand.append(TIMES[k - 1] + share * (TIMES[k] - TIMES[k - 1]))
    assert found["passage"].values[:-1] == pytest.approx(by_hand, rel=1e-12)
    assert np.isnan(found["passage"].values[-1])
    assert float(found["median"]) == pytest.approx(np.median(by_hand), rel=1e-12)
    assert float(found["mean"]) == pytest.approx(np.mean(by_hand), rel=1e-9)
    assert float(found["median_low"]) <= float(found["median"]) <= float(found["median_high"])
    assert 0 < float(found["mean_se"]) < 1
    assert int(found["reached"]) == SEEDS - 1
    assert int(found["never"]) == 0


def test_runs_that_never_cross_make_the_mean_infinite(runs):
    found = runs.hdica.crossings("Q", 0.285)
    some = int(found["reached"])
    assert 0 < some < SEEDS - 1
    assert int(found["never"]) == SEEDS - 1 - some
    assert float(found["mean"]) == np.inf
