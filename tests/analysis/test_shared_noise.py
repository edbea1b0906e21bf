"""Where cells of a grid share noise, what is put together from them has honest intervals."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import hdica
from hdica.analysis.aggregate import aggregate
from hdica.analysis.dependence.slopes import findings, slopes
from hdica.systems.system import methods_of
from hdica.verdict.resample import jackknife_error, resampled_shares, shares_noise
from tests.analysis import shared, toy

phase = toy.computed("phase")

DRAWS, SEEDS = 300, 16
T = stats.t.ppf(0.975, SEEDS - 1)
BOUNDARY = xr.DataArray(shared.boundary(), dims="tau")


def as_if_independent(tree: xr.DataTree) -> xr.DataTree:
    """The same numbers in a store that claims noise of their own."""
    claimed = tree.copy()
    claimed["chain"].attrs["noise"] = "own"
    return claimed


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    return shared.store(DRAWS, SEEDS)


@pytest.fixture(scope="module")
def found(tree: xr.DataTree) -> xr.Dataset:
    return phase(tree, shared.PHASE)


@pytest.fixture(scope="module")
def naive(tree: xr.DataTree) -> xr.Dataset:
    return phase(as_if_independent(tree), shared.PHASE)


def covered(data: xr.Dataset, width: float = T) -> float:
    """How often the start with even odds lies within its interval."""
    return float((abs(data["threshold"] - BOUNDARY) <= width * data["threshold_se"]).mean())


@pytest.mark.deep
def test_the_start_with_even_odds_is_covered_over_seeds(found: xr.Dataset) -> None:
    # 300 draws of which the three step sizes are nearly copies: 0.95 is known to 0.013.
    assert 0.91 < covered(found) < 0.99
    spread = found["threshold"].std("n").mean()
    assert float(found["threshold_se"].mean() / spread) == pytest.approx(1, abs=0.08)


def test_independent_cells_would_claim_far_too_much(naive: xr.Dataset) -> None:
    assert covered(naive, 1.96) < 0.65


def test_with_own_noise_independent_cells_are_right_and_nothing_changes() -> None:
    own = phase(shared.store(DRAWS, SEEDS, noise="own"), shared.PHASE)
    assert 0.93 < covered(own, 1.96) <= 1
    assert "agreement_share_low" not in own


def test_estimates_are_the_same_whatever_the_noise(found: xr.Dataset, naive: xr.Dataset) -> None:
    for name in set(naive) - {"threshold_se"}:
        assert found[name].identical(naive[name]), name
    old = shared.store(2)
    del old["chain"].attrs["noise"]
    assert not shares_noise(old["chain"].to_dataset())
    assert "agreement_share_low" not in phase(old, shared.PHASE)


def test_the_share_of_agreeing_cells_is_covered_over_seeds(found: xr.Dataset) -> None:
    starts = np.array(shared.STARTS)
    sides = [starts > b for b in shared.boundary()], [starts > b + 0.06 for b in shared.boundary()]
    truth = np.mean(np.equal(*sides))
    low, high = found["agreement_share_low"], found["agreement_share_high"]
    inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    assert 0.89 < float(inside.mean()) < 0.99
    assert float((high - low).mean()) > 0.05


def test_slopes_are_covered_and_know_more_than_seeds_apart(tree: xr.DataTree) -> None:
    at = slopes(tree).isel(simulation=0).sel(Q0=shared.STARTS[-1])
    inside = (at["slope_tau_low"] <= shared.STEEP) & (at["slope_tau_high"] >= shared.STEEP)
    assert 0.92 < float(inside.mean()) < 0.98
    true_error = at["slope_tau"].std("n").mean()
    assert float(at["slope_tau_se"].mean() / true_error) == pytest.approx(1, abs=0.08)
    # Apart, the errors of both ends add: the common NOISE is a hundredfold of what is left.
    gain = float(at["slope_tau_se_apart"].mean() / true_error)
    assert gain == pytest.approx(np.hypot(1, 10), rel=0.1)


def test_a_finding_says_how_much_better_differences_are_known() -> None:
    for tree in (shared.store(2, 12), shared.store(1, 12)):
        data = slopes(tree)
        assert data is not None
        (tau, start), top = findings(data), data.isel(n=-1)
        assert start.quantity.plain == tau.quantity.plain.replace("τ", "Q₀")
        ratio = (top["slope_tau_se"] / top["slope_tau_se_apart"]).values
        assert tau.value == np.median(ratio[np.isfinite(ratio) & (ratio > 0)]) < 0.3
        assert tau.place == {"n": int(top["n"]), "t": data.attrs["time"]}
        bare = findings(data.isel(n=-1, drop=True))[0]
        assert bare.place == {"t": data.attrs["time"]}


def test_slopes_use_seeds_that_are_finished_on_both_sides(tree: xr.DataTree) -> None:
    part = shared.store(1, 6)
    part["chain"]["status"].values[1, -1, 0, 2:] = 0
    at = slopes(part).isel(simulation=0, n=0, Q0=-1)
    assert at["slope_tau_count"].values.tolist() == [2, 2]
    q = part["chain"]["Q"].isel(Q0=-1, n=0, time=-1).values[:, :2]
    assert at["slope_tau"].values == pytest.approx(np.diff(q.mean(axis=1)) / 0.01)
    part["chain"]["status"].values[1, -1, 0, 1:] = 0
    lonely = slopes(part).isel(simulation=0, n=0, Q0=-1)
    assert np.isnan(lonely["slope_tau_se"].values).all()


def test_a_change_is_along_parameters_and_not_along_entries_of_a_matrix() -> None:
    data = shared.chain(np.random.default_rng(0), 1, 4)
    matrix = data["Q"].expand_dims(source=[0, 1], axis=-1)
    found = slopes(toy.tree({"chain": data.assign(R=matrix)}, {}))
    assert found is not None
    assert {name for name in found if str(name).endswith("_count")} == {
        "slope_tau_count",
        "slope_Q0_count",
    }
    assert found["slope_tau"].sizes["source"] == 2


def test_slopes_only_where_noise_is_shared(tree: xr.DataTree) -> None:
    assert slopes(as_if_independent(tree)) is None
    small = shared.store(1, 4)
    groups = aggregate(small)
    assert set(groups["slopes"].attrs) == {"variable", "time"}
    assert all(v.attrs["long_name"] and v.attrs["units"] for v in groups["slopes"].values())
    assert groups["runs"]["noise"].values.tolist() == ["shared", ""]
    words = shared.chain(np.random.default_rng(0), 1, 4).isel(Q0=0, drop=True)
    unswept = words.assign_coords(tau=["a", "b", "c"])
    assert slopes(toy.tree({"chain": unswept}, {})) is None


def test_a_missing_seed_is_left_out_where_it_is_missing() -> None:
    part = shared.store(1, 12)
    part["chain"]["status"].values[:, 20, 0, 3] = 0
    found = phase(part, shared.PHASE).isel(n=0)
    assert found["trials"].values[:, 20].tolist() == [11] * 3
    assert np.isfinite(found["threshold_se"]).all()
    part["chain"]["status"].values[:, 20, 0, 1:] = 0
    assert np.isnan(phase(part, shared.PHASE)["threshold_se"]).all()


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = xr.DataArray(np.random.default_rng(0).exponential(size=9), dims="seed")
    without = (values.sum() - values) / 8
    error = jackknife_error(without, xr.DataArray(9))
    assert float(error) == pytest.approx(stats.sem(values), rel=1e-12)
    resampled = stats.bootstrap((values.values,), np.mean, rng=0).standard_error
    assert float(error) == pytest.approx(resampled * np.sqrt(9 / 8), rel=0.05)


def test_resamples_draw_whole_seeds() -> None:
    ones = xr.DataArray(np.eye(4, dtype=bool), dims=("seed", "cell"))
    finished = xr.ones_like(ones)
    (share,) = resampled_shares(ones, finished)
    again = next(resampled_shares(ones, finished))
    assert share.identical(again)
    assert (share.sum("cell") == 1).all()
    assert set(np.unique(share)) == {0, 0.25, 0.5, 0.75, 1}
    twins = xr.concat([ones, ones], dim="cell")
    both = next(resampled_shares(twins, xr.ones_like(twins))).values
    assert np.array_equal(both[:, :4], both[:, 4:])
    none = next(resampled_shares(ones, xr.zeros_like(ones)))
    assert none.isnull().all()


@pytest.fixture(scope="module")
def real() -> xr.DataTree:
    """Online ICA at n = 64 with shared noise: sixty draws of twelve seeds along n."""
    draws, seeds, taus = 60, 12, [0.04, 0.05]
    starts = np.round(np.linspace(0.05, 0.95, 19), 3).tolist()
    times, method = np.array([0.0, 6.0]), methods_of("OnlineICA", "shared")["chain"]
    found = []
    for tau in taus:
        for start in starts:
            system = hdica.OnlineICA(tau=tau, source="uniform", start={"overlap": start})
            runs = method.run_all([(system, k) for k in range(draws * seeds)], times, 64)
            found.append([run.values["Q"] for run in runs])
    q = np.reshape(found, (len(taus), len(starts), draws, seeds, 2))
    coords = {"tau": taus, "Q0": starts, "n": np.arange(draws), "time": times}
    data = xr.Dataset({"Q": (shared.DIMS, q)}, coords)
    data["status"] = (shared.DIMS[:-1], np.ones(q.shape[:-1], np.uint8))
    return toy.tree({"chain": data.assign_attrs(noise="shared")}, {})


@pytest.mark.deep
def test_a_real_boundary_is_covered_over_seeds_and_not_by_cells(real: xr.DataTree) -> None:
    settings = {"simulation": "chain", "x": "tau", "y": "Q0"}
    over_seeds, over_cells = phase(real, settings), phase(as_if_independent(real), settings)
    truth = over_seeds["threshold"].mean("n")
    miss = abs(over_seeds["threshold"] - truth)
    bound = stats.t.ppf(0.975, 11)
    # Sixty draws, of which both step sizes are nearly copies: 0.95 is known to 0.028.
    assert float((miss <= bound * over_seeds["threshold_se"]).mean()) > 0.87
    assert float((miss <= 1.96 * over_cells["threshold_se"]).mean()) < 0.85
    at = slopes(real).isel(simulation=0)
    assert float((at["slope_tau_se"] / at["slope_tau_se_apart"]).median()) < 0.2
