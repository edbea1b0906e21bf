"""Slopes of learning curves with a known law, single runs, and the trapping potential."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.trajectories.methods import decay_findings as findings
from hdica.analysis.trajectories.methods import diagonal
from hdica.errors import HdicaError
from hdica.show.finding import Form, grouped
from tests.analysis import escapes, toy
from tests.analysis.escapes import MOMENTS, POWERS

compare = toy.computed("compare")
convergence = toy.computed("convergence")
decay = toy.computed("decay")
paths = toy.computed("paths")
trapping = toy.computed("trapping")

CURVES = {"curves": ["chain", "ode"]}


@pytest.fixture(scope="module")
def store():
    return toy.tree(escapes.overlaps(), {})


@pytest.fixture(scope="module")
def found(store):
    return decay(store, CURVES)


def exact_slope(power):
    """Least squares over the last decade of log (1 + t)^-p on log t."""
    late = MOMENTS[MOMENTS >= 100 * (1 - 1e-9)]
    return float(np.polyfit(np.log(late), -power * np.log(1 + late), 1)[0])


def test_slopes_of_limits_are_those_of_the_law(found):
    known = [exact_slope(p) for p in POWERS]
    assert found["limit_slope"].sel(limit="ode").values == pytest.approx(known, rel=1e-9)
    assert np.abs(np.array(known) + POWERS).max() < 0.005


def test_slopes_of_simulations_agree_within_their_errors(found):
    here = found.sel(simulation="chain")
    z = (here["slope"] - [exact_slope(p) for p in POWERS]) / here["slope_se"]
    assert abs(z).max() < 3.5
    assert (here["slope_se"] < 0.02).all()
    assert int(here["largest_n"]) == 1000
    assert (here["count"] == 12).all()


@pytest.mark.deep
def test_errors_of_slopes_are_as_large_as_slopes_scatter():
    base = escapes.overlaps(seeds=40 * 12)["chain"]
    parts = [base.isel(seed=slice(12 * k, 12 * k + 12)) for k in range(40)]
    z = []
    for part in parts:
        here = decay(toy.tree({"chain": part}, {}), {"curves": "chain"}).isel(simulation=0)
        z.append((here["slope"] - [exact_slope(p) for p in POWERS]) / here["slope_se"])
    spread = float(np.sqrt(np.mean(np.square(z))))
    # 80 normal scores, of Student's t with 11 degrees of freedom: 1.11 +- 0.1.
    assert 0.8 < spread < 1.45


def test_every_curve_has_its_power_and_its_end(found):
    powers, ends = grouped(findings(found))
    assert [one.place.get("limit", "chain") for one in powers] == ["chain", "ode"] * 2
    assert powers[0].place == {"source": 0.0, "simulation": "chain", "n": 1000}
    for power, (chain, ode) in zip(POWERS, (powers[:2], powers[2:]), strict=True):
        assert (chain.form, chain.base.plain) == (Form.POWER, "t")
        assert ode.value == pytest.approx(exact_slope(power))
        assert 0 < abs(chain.value - ode.value) < 4 * chain.error
    assert (ends[0].quantity.plain, ends[0].place["t"]) == ("|1 − mean R|", 1000)
    for power, (chain, ode) in zip(POWERS, (ends[:2], ends[2:]), strict=True):
        assert ode.value == pytest.approx(0.5 * 1001.0**-power)
        assert 0 < abs(chain.value - ode.value) < 4 * chain.error


def test_a_curve_alone_needs_no_name(store):
    (first, *_) = findings(decay(store, {"curves": ["ode"]}))
    assert first.place == {"source": 0.0}


def test_a_slope_lost_in_noise_is_not_told():
    noisy = toy.tree(escapes.overlaps(noise=5.0), {})
    here = decay(noisy, CURVES)
    assert here["slope"].isnull().all()
    assert here["slope_se"].isnull().all()


def test_too_few_late_times_give_no_slope(store):
    groups = {k: v.to_dataset().isel(time=[0, 1, 2, 25]) for k, v in store.children.items()}
    here = decay(toy.tree(groups, {}), CURVES)
    assert here["slope"].isnull().all()
    assert here["limit_slope"].isnull().all()
    assert here["gap"].notnull().all()


def test_unfinished_seeds_change_no_error():
    groups = escapes.overlaps()
    groups["chain"]["status"].values[1, -3:] = 2
    here = decay(toy.tree(groups, {}), CURVES).isel(simulation=0)
    less = escapes.overlaps()
    less["chain"] = less["chain"].isel(seed=slice(9))
    known = decay(toy.tree(less, {}), CURVES).isel(simulation=0)
    for name in ("slope", "slope_se", "gap_se", "count"):
        assert here[name].values == pytest.approx(known[name].values)


def test_the_diagonal_of_a_rectangle():
    values = xr.DataArray(
        np.arange(6.0).reshape(2, 3),
        {"projection": [0.0, 1.0], "source": [0.0, 1.0, 2.0]},
        ("projection", "source"),
    )
    assert diagonal(values).values.tolist() == [0.0, 4.0]
    assert diagonal(values.transpose())["source"].values.tolist() == [0.0, 1.0]
    plain = xr.DataArray([1.0, 2.0], dims="time")
    assert diagonal(plain) is plain


def test_a_variable_without_entries_is_taken_as_it_is():
    store = toy.store()
    found = decay(store, {"curves": ["chain", "ode"], "variable": "Q", "target": 0.0})
    assert found["gap"].dims == ("simulation", "tau", "Q0", "time")
    assert "source" not in found.dims
    limit = store["ode"]["Q"].values
    assert found["limit_gap"].sel(limit="ode").values == pytest.approx(limit)


def test_a_missing_variable_is_refused(store):
    with pytest.raises(HdicaError, match="has no variable 'Q'"):
        decay(store, {**CURVES, "variable": "Q"})


def test_matrices_converge_entry_by_entry(store):
    settings = {"simulation": "chain", "limit": "ode", "variable": "R"}
    found = convergence(store, settings)
    assert found["verdict"].dims == ("simulation", "projection", "source")
    assert (found["verdict"] == "agrees").all()
    assert found.attrs["tests"] == 4
    groups = {k: v.to_dataset() for k, v in store.children.items()}
    groups["ode"]["R"].values[:, 1, 1] = groups["ode"]["R_control"].values[:, 1, 1]
    wrong = convergence(toy.tree(groups, {}), settings).isel(simulation=0)["verdict"]
    assert [str(wrong[i, j].item()) for i, j in ((0, 0), (1, 1))] == ["agrees", "differs"]


def test_matrices_side_by_side(store):
    found = compare(store, {**CURVES, "variable": "R"})
    assert set(found["mean"].dims) == {"simulation", "time", "projection", "source"}
    here = store["chain"]["R"].sel(n=1000).mean("seed").transpose(*found["mean"].dims[1:])
    assert found["mean"].isel(simulation=0).values == pytest.approx(here.values)


def test_an_entry_that_a_smaller_matrix_lacks_spoils_no_other():
    groups = escapes.overlaps()
    ragged = {}
    for name, data in groups.items():
        small = data.copy(deep=True)
        for values in (v for k, v in small.data_vars.items() if str(k).startswith("R")):
            values.loc[{"projection": 1.0}] = np.nan
        sizes = xr.DataArray([1, 2], dims="projections", name="projections")
        ragged[name] = xr.concat([small, data], dim=sizes)
        ragged[name].attrs = data.attrs
    found = convergence(
        toy.tree(ragged, {}), {"simulation": "chain", "limit": "ode", "variable": "R"}
    ).isel(simulation=0)
    assert (found["verdict"].sel(projections=1, projection=0.0) == "agrees").all()
    assert (found["verdict"].sel(projections=1, projection=1.0) == "undecided").all()


def test_paths_are_the_first_runs_thinned():
    long = np.arange(2501.0)
    data = xr.Dataset(
        {"R": (("nu", "n", "seed", "time"), np.random.default_rng(0).random((9, 2, 5, 2501)))},
        {"nu": np.arange(9.0), "n": [10, 20], "seed": np.arange(5), "time": long},
    )
    data = escapes.group(data, "chain", {"time"})
    data["status"].values[0, 1, 1] = 2
    found = paths(toy.tree({"chain": data}, {}), {"simulation": "chain", "runs": 3})
    assert dict(found.sizes) == {"nu": 6, "seed": 3, "time": 1000}
    assert found["nu"].values.tolist() == [0, 2, 3, 5, 6, 8]
    assert found["time"].values[[0, -1]].tolist() == [0, 2500]
    assert found["path"].sel(nu=8, seed=2, time=2500) == data["R"].values[8, 1, 2, 2500]
    assert found["path"].sel(nu=0, seed=1).isnull().all()
    assert (found.attrs["n"], found.attrs["cells"]) == (20, 9)


def test_paths_of_a_wide_grid_stay_few():
    shape = (4, 5, 1, 2, 3)
    data = xr.Dataset(
        {"R": (("alpha", "nu", "n", "seed", "time"), np.zeros(shape))},
        {"alpha": np.arange(4.0), "nu": np.arange(5.0), "n": [10], "seed": [0, 1]}
        | {"time": np.arange(3.0)},
    )
    data = escapes.group(data, "chain", {"time"})
    found = paths(toy.tree({"chain": data}, {}), {"simulation": "chain"})
    assert (found.sizes["alpha"], found.sizes["nu"]) == (2, 3)
    assert found.attrs["cells"] == 20


def test_the_potential_and_its_barrier():
    found = trapping(toy.tree({"trapping": escapes.trap()}, {}), {})
    here = found.sel(nu=1.0, projection=0.0, source=0.0)
    at_summit = float(here["U"].interp(r=float(here["summit"]), method="cubic"))
    assert at_summit == pytest.approx(float(here["barrier"]), rel=1e-4)
    assert np.isinf(found["barrier"].sel(source=1.0)).all()


def test_a_study_may_ask_for_all_of_them():
    groups = {**escapes.overlaps(), "trapping": escapes.trap()}
    asked = {"decay": CURVES, "paths": {"simulation": "chain"}, "trapping": {}}
    found = aggregate(toy.tree(groups, asked))
    assert {"decay", "paths", "trapping"} <= set(found.children)
    for name in asked:
        assert all(v.attrs["long_name"] for v in found[name].data_vars.values())
