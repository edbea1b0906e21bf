"""Densities of online ICA: the potential, support recovery, schedules, particles against PDE."""

import warnings

import numpy as np
import pytest
import xarray as xr

import hdica
from hdica.errors import HdicaError
from hdica.systems.online_ica.system import mean_field
from hdica.systems.projected.density_values import antiderivative

A2 = {"source": "uniform", "tau": 0.04, "prior": {"sparse": 0.3}, "start": {"overlap": 0.7}}
NORMAL = {"normal": {"mean": 0.5**0.5, "var": 0.5}}


def ica(beta=0.1, **more):
    return hdica.OnlineICA(**{**A2, "regularizer": f"{beta}*sign(x)", **more})


def test_l1_regularised_ica_and_its_support_recovery():
    found = hdica.limit(ica(), times=[0, 40, 100], snapshots=[40], thresholds=[1.0])
    assert found["Q"].values[1:] == pytest.approx([0.808316846, 0.939066100], abs=1e-8)
    assert found["tpr"].item() == pytest.approx(0.773624, abs=1e-6)
    assert found["fpr"].item() == pytest.approx(0.083688, abs=1e-6)
    wrong = 0.3 * (1 - 0.773624) + 0.7 * 0.083688
    assert found["misclassified"].item() == pytest.approx(wrong, abs=1e-6)


def test_particles_agree_with_the_density():
    runs = hdica.simulate(ica(), n=20_000, times=[0, 20], seeds=range(6), method="particles")
    limit = hdica.limit(ica(), times=[0, 20])
    se = runs["Q"].std("seed", ddof=1).values[1] / np.sqrt(6)
    assert abs(float(runs["Q"].mean("seed")[1] - limit["Q"][1])) < 5 * se + 1e-4


def test_particles_keep_densities_too():
    x = np.linspace(-3, 4, 36)
    asked = {"times": [0, 5], "snapshots": [5], "x": x, "functionals": {"two": "x**2"}}
    runs = hdica.simulate(ica(), n=5000, seeds=[3], method="particles", **asked)
    limit = hdica.limit(ica(), **asked)
    assert np.max(np.abs(runs["cdf"].values[0] - limit["cdf"].values)) < 0.05
    assert runs["two"].values[0] == pytest.approx([1, 1], abs=1e-9)


@pytest.mark.parametrize(
    ("source", "beta", "curvature"),
    [("rademacher", 0.2, 4.760694e-4), ("rademacher", 0.5, -4.473526496e-3)],
)
def test_curvature_of_the_potential_at_the_start(source, beta, curvature):
    system = ica(beta, source=source, tau=0.02, start=NORMAL)
    found = hdica.limit(system, times=[0, 1])
    assert float(found["curvature"][0]) == pytest.approx(curvature, abs=1e-9)
    assert float(found["convex"][0]) == (curvature >= 0)


def test_slope_of_the_potential_is_minus_the_drift():
    system = ica(0.2, start=NORMAL)
    found = hdica.effective_potential(system, times=[5], x=np.linspace(0.5, 2, 301))
    force = -found["potential"].differentiate("x").isel(time=0)
    x, xi = found["x"], found["feature"]
    d, b = float(found["d"][0]), float(found["b"][0])
    drift = -d * (x - b * xi) - system.tau * 0.2
    inner = {"x": slice(5, -5)}
    assert np.allclose(force.isel(inner), drift.transpose("feature", "x").isel(inner), atol=1e-6)


def test_a_potential_that_is_not_convex_warns_and_a_convex_one_does_not():
    system = ica(0.5, source="rademacher", tau=0.02, start=NORMAL)
    with pytest.warns(UserWarning, match="not convex at t = 0"):
        hdica.effective_potential(system, times=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = hdica.effective_potential(ica(), times=[0, 1])
    assert bool(found["convex"].all())


def test_antiderivative_of_a_regularizer_with_several_kinks():
    field = mean_field(ica(regularizer="sign(x - 1) + 0.5*x + sign(x + 2)"))
    x = np.array([-3.0, -1.0, 0.0, 0.5, 2.0])
    exact = np.abs(x - 1) - 1 + x**2 / 4 + np.abs(x + 2) - 2
    assert antiderivative(field, x) == pytest.approx(exact, abs=1e-12)


def test_a_varying_step_size_is_the_limit_of_its_own_simulation():
    tau = {"steps": {"times": [5], "values": [0.04, 0.01]}}
    limit = hdica.limit(ica(tau=tau), times=[0, 5, 15])
    runs = hdica.simulate(ica(tau=tau), n=800, times=[0, 5, 15], seeds=range(16))
    se = runs["Q"].std("seed", ddof=1).values / 4
    gap = np.abs(runs["Q"].mean("seed") - limit["Q"]).values
    assert np.all(gap[1:] < 4 * se[1:] + 5 / 800)
    same = hdica.limit(ica(), times=[0, 5, 15])
    assert abs(float(same["Q"][2] - limit["Q"][2])) > 5e-3


@pytest.mark.parametrize("prior", ["gaussian", {"bernoulli_gaussian": 0.2}, {"sparse_sign": 0.3}])
def test_other_priors_against_simulation(prior):
    system = ica(prior=prior)
    limit = hdica.limit(system, times=[0, 10], thresholds=[0.5])
    runs = hdica.simulate(system, n=800, times=[0, 10], seeds=range(12), thresholds=[0.5])
    se = runs["Q"].std("seed", ddof=1).values / np.sqrt(12)
    assert abs(float(runs["Q"].mean("seed")[1] - limit["Q"][1])) < 4 * se[1] + 5 / 800
    rate = runs["tpr"].isel(snapshot=1).std("seed", ddof=1).values / np.sqrt(12)
    gap = np.abs(runs["tpr"].mean("seed") - limit["tpr"]).isel(snapshot=1).values
    assert np.all(gap < 4.5 * rate + 5 / 800)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"snapshots": [3]}, "snapshots: 3 is not one of the times"),
        ({"x": [1]}, "x = .*at least two points"),
        ({"thresholds": [-1, 2]}, "a threshold is >= 0"),
        ({"functionals": {"m": "x*y"}}, "'y' is neither"),
        ({"x": [2, 1]}, "x: 1 comes after 2"),
    ],
)
def test_what_is_kept_is_checked(asked, said):
    with pytest.raises(hdica.HdicaError, match=said):
        hdica.limit(ica(), times=[0, 1], **asked)


def test_fixed_point_of_l1_regularised_ica():
    found = hdica.fixed_points(ica())
    stable = found["Q"].values[found["stable"].values]
    assert np.min(np.abs(stable - 0.956714001)) < 1e-9


@pytest.mark.parametrize(
    ("source", "beta", "tau_c"),
    [("rademacher", 0.1, 0.169590111), ("uniform", 0.5, 0.066753152), ("uniform", 1, 0.0571023113)],
)
def test_critical_step_size_of_l1_regularised_ica(source, beta, tau_c):
    found = hdica.critical(ica(beta, source=source), "tau")
    folds = found["value"].values[found["kind"].values == "fold"]
    assert np.min(np.abs(folds - tau_c)) < 1e-8


@pytest.mark.deep
def test_critical_step_size_followed_over_the_strength_of_the_regularizer():
    system = hdica.OnlineICA(
        tau=0.05, regularizer="beta*sign(x)", prior={"sparse": 0.3}, constants={"beta": 0.1}
    )
    line = hdica.critical_curve(system, "tau", "beta", [0.01, 0.05, 0.1, 0.2, 0.5, 1.0])
    known = [0.059379986335, 0.060349989092, 0.061491469103, 0.063505420769, 0.066753152477]
    assert line["value"].values == pytest.approx([*known, 0.057102311497], abs=1e-10)
    assert line.attrs["kind"] == "fold"
    with pytest.raises(hdica.HdicaError, match="kind = 'transcritical' is not found at beta = 0.1"):
        hdica.critical_curve(system, "tau", "beta", [0.1], kind="transcritical")
    with pytest.raises(hdica.HdicaError, match="kind = 'swing' is not allowed"):
        hdica.critical_curve(system, "tau", "beta", [0.1], kind="swing")


OIST = {"tau": 0.5, "regularizer": "0.27*sign(x)", "prior": {"sparse": 0.05}}


@pytest.mark.parametrize(
    "system",
    [
        hdica.SparsePCA(**OIST, omega=0.6, start={"overlap": 0.8}),
        ica(0.1, source="rademacher", tau=0.1),
    ],
    ids=lambda system: type(system).__name__,
)
def test_the_density_ends_as_that_of_a_steady_state(system):
    asked = {"x": np.linspace(-4, 9, 27)}
    late = hdica.limit(system, times=[0, 90], snapshots=[90], method="pde", **asked)
    steady = hdica.fixed_points(system, **asked).isel(fixed_point=-1)
    assert bool(steady["stable"])
    for name in ("density", "cdf"):
        solved = late[name].isel(snapshot=0).values
        np.testing.assert_allclose(steady[name].values, solved, atol=1e-5)
    xr.testing.assert_equal(
        steady["xi"].reset_coords(drop=True), late["xi"].reset_coords(drop=True)
    )


def test_steady_densities_stand_beside_the_same_states():
    system, x = hdica.SparsePCA(**OIST, omega=0.25), [-1.0, 0.0, 2.0]
    with_them, plain = hdica.fixed_points(system, x=x), hdica.fixed_points(system)
    xr.testing.assert_identical(
        with_them[list(plain)].drop_dims(["x", "edge"], errors="ignore"), plain
    )
    condensed = with_them["kind"] == "condensed"
    assert condensed.any()
    assert with_them["density"].notnull().all()
    assert "bulk < 1" in with_them["density"].attrs["long_name"]
    swept = hdica.fixed_points(system, x=x, over={"rho": [0.05, 0.2]})
    assert swept["feature"].values.tolist() == [0, 1]  # of which xi differs
    np.testing.assert_allclose(swept["xi"].isel(feature=1), [20**0.5, 5**0.5])
    with pytest.raises(HdicaError, match="keeps no densities"):
        hdica.fixed_points(hdica.HebbianICA(mu=0.1, sources=["uniform"]), x=x)
