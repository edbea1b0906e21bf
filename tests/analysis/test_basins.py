"""Success is where a run goes, not where it is."""

import numpy as np
import pytest
import xarray as xr

import hdica
from hdica.analysis.phase.compute import fate, states_of
from hdica.analysis.phase.figure import findings
from hdica.show.finding import verdict_of
from hdica.verdict.trend import falling
from tests.analysis import toy

phase = toy.computed("phase")

TIMES = list(np.linspace(0.0, 3.0, 13))
TAUS, STARTS = [0.03, 0.061, 0.07], [0.3, 0.55, 0.85, 0.95]
"""Below the fold at 0.06, just above it, where runs linger for long, and well above."""

SHORT = {**toy.PHASE, "limit": "ode"}


@pytest.fixture(scope="module")
def tree():
    chain = toy.finite("chain", TAUS, STARTS, [400], 16, TIMES, 0.3)
    return toy.tree(
        {"chain": chain, "ode": toy.ode(TAUS, STARTS, TIMES, 0.3), **toy.flow_groups(TAUS)}, {}
    )


@pytest.fixture(scope="module")
def bare(tree):
    return toy.tree({"chain": tree["chain"].to_dataset()}, {})


def test_nothing_succeeds_beyond_the_fold_however_large_it_still_is(tree):
    found = phase(tree, SHORT).isel(n=0)
    beyond = found.sel(tau=[0.061, 0.07])
    large = (abs(tree["chain"]["Q"].sel(tau=0.061, Q0=0.95).isel(time=-1)) > 0.5).sum()
    assert int(large) == 16
    assert int(beyond["successes"].sum()) == 0
    assert int(found["decaying"].sel(tau=0.061, Q0=0.95)) == 16
    assert (found["by_limit"] == 1).all()
    assert found["limit_success"].sel(tau=0.061).values.tolist() == [0, 0, 0, 0]
    assert float(found["agreement_share"]) == 1


def test_below_the_fold_the_unstable_state_divides(tree):
    found = phase(tree, SHORT).isel(n=0).sel(tau=0.03)
    edge = toy.roots(0.03)[1]
    last = abs(tree["chain"]["Q"].sel(tau=0.03).isel(n=0, time=-1))
    assert (found["successes"] == (last > edge).sum("seed")).all()
    assert found["limit_success"].values.tolist() == [float(s > edge) for s in STARTS]


def test_a_run_below_the_threshold_succeeds_if_it_rises_to_a_state(tree):
    early = tree.copy(deep=True)
    for name in ("chain", "ode"):
        early[name] = xr.DataTree(early[name].to_dataset().isel(time=slice(0, 2)))
    found = phase(early, {**SHORT, "success": 0.9}).isel(n=0).sel(tau=0.03, Q0=0.55)
    assert float(found["overlap"]) < 0.9
    assert int(found["successes"]) > 14


def test_runs_that_have_hardly_moved_decide_nothing(tree):
    early = tree.copy(deep=True)
    for name in ("chain", "ode"):
        early[name] = xr.DataTree(early[name].to_dataset().isel(time=slice(0, 2)))
    begun, done = phase(early, SHORT).isel(n=0), phase(tree, SHORT).isel(n=0)
    middle = {"tau": 0.03, "Q0": 0.55}
    assert np.isnan(begun["probability"].sel(middle))
    assert np.isnan(begun["agreement"].sel(middle))
    assert int(begun["separated"].sel(middle)) < 8
    assert TIMES[1] < float(begun["time_needed"].sel(middle)) < TIMES[-1]
    assert float(done["probability"].sel(middle)) > 0.9
    assert int(done["separated"].sel(middle)) == 16
    first = findings(begun)[0]
    assert first.quantity.plain == "the share of points whose runs have reached a state"
    assert (first.verdict, first.unit.plain) == ("undecided", "%")
    assert first.value < 50
    assert verdict_of(findings(begun)) != "agrees"


def test_without_a_limit_a_falling_run_is_no_success(bare):
    found = phase(bare, {**toy.PHASE, "limit": None}).isel(n=0)
    assert (found["by_limit"] == 0).all()
    lingering = found.sel(tau=0.061, Q0=0.95)
    assert (int(lingering["successes"]), int(lingering["decaying"])) == (0, 16)
    assert int(found["successes"].sel(tau=0.03, Q0=0.85)) == 16


def test_a_fall_to_a_stable_state_is_a_success():
    time = np.linspace(0, 30, 31)
    rng = np.random.default_rng(2)
    noise = 0.002 * rng.standard_normal((16, 31))
    for rate, above in ((0.3, True), (0.0, False)):
        # To 0.8 at this rate, or steadily down to 0.6.
        path = 0.8 + 0.15 * np.exp(-rate * time) if rate else 0.95 - 0.35 * time / 30
        runs = xr.DataArray(path + noise, {"time": time}, ("seed", "time"))
        got = fate(runs, 0.5, None)
        assert (got.success.values == above).all()
        assert (got.decaying.values != above).all()


def test_runs_of_one_cell_are_told_apart_where_they_differ():
    time = np.linspace(0, 30, 31)
    noise = 0.003 * np.random.default_rng(3).standard_normal((16, 31)).cumsum(axis=1)
    path = np.where(np.arange(16)[:, None] < 8, 0.9, 0.9 - 0.3 * (time / 30) ** 2)
    runs = xr.DataArray(path + noise, {"time": time}, ("seed", "time"))
    assert fate(runs, 0.5, None).success.values.tolist() == [True] * 8 + [False] * 8


def test_noise_about_a_state_is_not_taken_for_a_fall():
    rng, time = np.random.default_rng(4), np.linspace(0, 30, 16)
    walk = np.zeros((400, 8, 16))
    for k in range(1, 16):
        walk[..., k] = 0.7 * walk[..., k - 1] + 0.01 * rng.standard_normal((400, 8))
    runs = xr.DataArray(0.8 + walk, {"time": time}, ("cell", "seed", "time"))
    said = falling(runs, abs(runs.isel(time=-1)) > 0.5, 0.5)
    assert float(said.mean()) < 0.01 + 3 * np.sqrt(0.01 / 400)


def test_too_few_times_tell_no_trend(bare):
    few = bare.copy(deep=True)
    few["chain"] = xr.DataTree(few["chain"].to_dataset().isel(time=[0, 12]))
    found = phase(few, {**toy.PHASE, "limit": None}).isel(n=0)
    assert int(found["decaying"].sum()) == 0


def test_where_a_density_evolves_unstable_states_do_not_divide(tree):
    kept = {k: tree[k].to_dataset() for k in ("chain", "fixed_points")}
    density = toy.tree({**kept, "pde": tree["ode"].to_dataset()}, {})
    found = phase(density, {**toy.PHASE, "limit": "pde"})
    assert found.attrs["divides"] == 0
    # Beyond the fold there is nowhere to go all the same.
    assert found["by_limit"].isel(n=0, Q0=0).values.tolist() == [0, 1, 1]
    assert int(found["successes"].sel(tau=[0.061, 0.07]).sum()) == 0
    assert int(found["successes"].sel(tau=0.03, Q0=0.85).isel(n=0)) == 16


def test_negative_overlaps_go_to_the_mirror_image():
    fixed = hdica.fixed_points(hdica.OnlineICA(tau=0.04, source="uniform"))
    edge = float(fixed["Q"][(~fixed["stable"]) & (fixed["Q"] > 0)][0])
    data = fixed[["Q"]].assign(stable=fixed["stable"].astype(float), status=((), 1))
    tree = toy.tree({"fixed_points": data}, {})
    states = states_of(tree, "Q", "ode")
    q = np.array([-1, -edge - 0.01, -edge + 0.01, 0, edge - 0.01, edge + 0.01])
    runs = xr.DataArray(np.stack([q, q], axis=-1), {"time": [0.0, 1.0]}, ("seed", "time"))
    assert fate(runs, 0.5, states).success.values.tolist() == [True, True, *[False] * 3, True]
