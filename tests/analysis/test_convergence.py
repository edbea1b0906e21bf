import json

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.errors import HdicaError
from tests.analysis import toy
from tests.analysis.toy import LADDER, STARTS, TAUS, TIMES

convergence = toy.computed("convergence")


@pytest.fixture(scope="module")
def found(store):
    return convergence(store, toy.CONVERGENCE)


def test_moments_are_those_of_numpy(store, found):
    q = store["chain"]["Q"].sel(tau=0.02, Q0=0.7, n=400).values
    here = found.sel(simulation="chain", tau=0.02, Q0=0.7, n=400)
    assert here["mean"].values == pytest.approx(q.mean(axis=0))
    assert here["sd"].values == pytest.approx(q.std(axis=0, ddof=1))
    assert here["se"].values == pytest.approx(q.std(axis=0, ddof=1) / np.sqrt(24))
    assert int(here["count"]) == 24
    worst = np.abs(here["mean"] - here["limit"])
    assert float(here["sup_error"]) == pytest.approx(float(worst.max()))
    assert float(here["sup_time"]) == float(here["time"][int(worst.argmax("time"))])


def test_a_right_limit_agrees_wherever_the_control_is_rejected(found):
    rejected = found["control_rejected"] == 1
    assert rejected.sum() >= 3
    assert (found["verdict"].values == np.where(rejected, "agrees", "undecided")).all()
    assert float(found.attrs["level_each"]) == pytest.approx(0.01 / 4)


def test_a_drift_wrong_by_two_percent_differs():
    wrong = convergence(toy.store(error=0.02), toy.CONVERGENCE)
    assert (wrong["verdict"] == "differs").sum() >= 3


def test_too_few_seeds_are_undecided():
    few = convergence(toy.store(seeds=8, sigma=0.5), toy.CONVERGENCE)
    assert (few["verdict"] == "undecided").all()
    assert (
        few["why"] == "the wrong drift of the control would not have been rejected either"
    ).all()
    fewer = convergence(toy.store(seeds=3), toy.CONVERGENCE)
    assert (fewer["verdict"] == "undecided").all()
    assert (fewer["why"] == "no n has 6 finished seeds").all()
    assert fewer["mean"].notnull().all()


@pytest.mark.deep
def test_few_seeds_decide_about_a_coarser_control():
    coarse = convergence(toy.store(seeds=8, sigma=0.5), {**toy.CONVERGENCE, "control": 0.6})
    assert (coarse["verdict"] == "agrees").any()
    fine = convergence(toy.store(seeds=8, sigma=0.5), toy.CONVERGENCE)
    off = [one["limit_control"] - one["limit"] for one in (coarse, fine)]
    assert off[0].values == pytest.approx(30 * off[1].values)
    wrong = convergence(toy.store(error=0.02), {**toy.CONVERGENCE, "control": 0.6})
    assert (wrong["verdict"] == "differs").sum() >= 3


def test_fluctuation_follows_the_central_limit_theorem(found):
    a = found.squeeze("simulation")
    inside = (a["fluctuation_exponent_low"] <= 0.5) & (a["fluctuation_exponent_high"] >= 0.5)
    assert inside.sum() >= 3
    ratio = (a["rms_sd"] / a["rms_sd_predicted"]).isel(n=-1)
    assert np.abs(ratio - 1).max() < 0.5


def test_diverged_and_failed_seeds_are_counted_and_left_out(store):
    broken = store.copy(deep=True)
    status, q = broken["chain"]["status"].values, broken["chain"]["Q"].values
    status[0, 0, 1, :3], status[0, 0, 1, 3] = 2, 3
    q[0, 0, 1, :4] = 1e6
    here = convergence(broken, toy.CONVERGENCE).isel(simulation=0, tau=0, Q0=0, n=1)
    assert [int(here[k]) for k in ("count", "diverged", "failed")] == [20, 3, 1]
    assert float(here["mean"].max()) < 2


def test_a_done_point_with_a_nan_is_left_out(store):
    broken = store.copy(deep=True)
    broken["chain"]["Q"].values[0, 0, 0, 0, -1] = np.nan
    here = convergence(broken, toy.CONVERGENCE).isel(simulation=0, tau=0, Q0=0, n=0)
    assert int(here["count"]) == 23


def test_a_point_without_finished_seeds_is_undecided(store):
    broken = store.copy(deep=True)
    broken["chain"]["status"].values[0, 0] = 0
    here = convergence(broken, toy.CONVERGENCE).isel(simulation=0, tau=0, Q0=0)
    assert here["verdict"].item() == "undecided"
    assert (here["pending"] == 24).all()
    assert here["sup_error"].isnull().all()


def test_methods_with_other_n_are_joined(store):
    other = toy.finite("vector", TAUS, STARTS, [50, 100], 5, TIMES, 0.04)
    both = xr.DataTree.from_dict({"/": store.to_dataset(), **store.children, "vector": other})
    found = convergence(both, toy.CONVERGENCE | {"simulation": ["chain", "vector"]})
    assert list(found["n"].values) == [50, *LADDER]
    counts = found["count"].isel(tau=0, Q0=0)
    assert counts.sel(simulation="vector").values.tolist() == [5, 5, 0, 0, 0]
    assert counts.sel(simulation="chain").values.tolist() == [0, 24, 24, 24, 24]


def test_a_limit_without_companions_cannot_give_agreement(store):
    bare = store.copy(deep=True)
    bare["ode"] = bare["ode"].to_dataset().drop_vars(["Q_error", "Q_control", "Q_sd"])
    found = convergence(bare, toy.CONVERGENCE)
    assert (found["verdict"] == "undecided").all()
    assert found["sd_predicted"].isnull().all()


def test_a_study_without_grid(store):
    one = {name: store[name].to_dataset().isel(tau=0, Q0=0, drop=True) for name in ("chain", "ode")}
    found = convergence(toy.tree(one, {}), toy.CONVERGENCE)
    assert found["verdict"].dims == ("simulation",)
    assert found["mean"].dims == ("simulation", "n", "time")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"limit": "ode"}, "analysis.convergence.simulation is missing"),
        ({"simulation": "chain", "limit": "pde"}, "no method 'pde'"),
        ({"simulation": "chain", "limit": "ode", "variable": "M"}, "no variable 'M'"),
    ],
)
def test_refusals_are_one_sentence(store, settings, words):
    with pytest.raises(HdicaError, match=words):
        convergence(store, settings)


def test_every_variable_is_described(store):
    tree = aggregate(store)
    assert set(tree.children) == {"runs", "convergence", "phase", "flow", "points"}
    for node in tree.children.values():
        for values in node.data_vars.values():
            assert values.attrs["long_name"]


def test_only_what_the_study_asks_for(store):
    quiet = store.copy()
    content = json.loads(quiet.attrs["study_yaml"])
    paths = {"simulation": "chain", "variable": "Q"}
    # A study that asks for none is shown what suits its system and its grid.
    suits = {"convergence", "phase", "flow"}
    cases = [
        ({"flow": None, "phase": None}, suits),
        ({}, suits),
        ({"paths": paths, "phase": None}, {"paths"}),
    ]
    for asked, shown in cases:
        quiet.attrs["study_yaml"] = json.dumps(content | {"analysis": asked})
        assert set(aggregate(quiet).children) == {"runs", "points", *shown}


def test_the_runs_are_accounted_for(store):
    runs = aggregate(store)["runs"].to_dataset()
    chain = runs.sel({"method": "chain"})
    assert int(chain["points"]) == int(chain["done"]) == 2 * 2 * 4 * 24
    assert chain["n"].item() == "100, 200, 400, 800"
    assert float(chain["cpu_seconds"]) == pytest.approx(384e-3)


@pytest.mark.deep
def test_the_aggregate_survives_netcdf(store, tmp_path):
    tree = aggregate(store)
    tree.to_netcdf(tmp_path / "aggregate.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "aggregate.nc", engine="h5netcdf") as back:
        xr.testing.assert_equal(back["phase"].to_dataset(), tree["phase"].to_dataset())
        verdict = back["convergence"]["verdict"].values.astype(str)
    assert (verdict == tree["convergence"]["verdict"].values.astype(str)).all()
