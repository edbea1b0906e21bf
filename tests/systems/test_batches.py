"""Mini-batches of the two projected rules: the limit, its steady states, and simulation."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

TIMES = np.array([0.0, 1.0, 4.0, 12.0])


def ica(m=1, tau=0.05, **more):
    return hdica.OnlineICA(**{"tau": tau, "start": {"overlap": 0.7}, "batch": m} | more)


def pca(m=1, tau=0.5, **more):
    fields = {"tau": tau, "omega": 1.0, "start": {"overlap": 0.4}, "batch": m}
    return hdica.SparsePCA(**fields | more)


@pytest.mark.parametrize(
    ("system", "more"),
    [
        (ica, {}),
        (ica, {"nonlinearity": "-tanh(x)", "source": "laplace", "tau": 0.3, "other": 0.075}),
        (ica, {"tau": "0.1/(1 + t/5)", "other": "0.025/(1 + t/20)"}),
        (pca, {}),
        (pca, {"tau": "0.4/(1 + t/5)", "other": "0.1/(1 + t/20)"}),
    ],
    ids=["cubic", "tanh", "cubic, falling", "oja", "oja, falling"],
)
def test_a_batch_is_as_steps_of_its_share_of_tau_to_the_order_of_the_limit(system, more):
    """Q and its central limit theorem: m at tau and t, or 1 at tau/m and m t."""
    m, fields = 4, {k: v for k, v in more.items() if k != "other"}
    of_batch = hdica.limit(system(m, **fields), times=TIMES, method="ode")
    other = more.get("other", system().tau / m)
    of_one = hdica.limit(system(1, **fields | {"tau": other}), times=m * TIMES, method="ode")
    for name in ("Q", "Q_sd"):
        assert of_batch[name].values == pytest.approx(of_one[name].values, abs=1e-8)
    ignored = hdica.limit(system(1, **fields), times=TIMES, method="ode")
    assert abs(ignored["Q"].values[-1] - of_batch["Q"].values[-1]) > 0.01


def test_oja_in_closed_form_solves_its_equation():
    steps = {"steps": {"times": [50.0], "values": [0.5, 0.4]}}
    exact, solved = (
        hdica.limit(pca(3, tau), times=TIMES, method="ode")["Q"].values for tau in (0.5, steps)
    )
    assert exact == pytest.approx(solved, abs=1e-9)


CASES = [
    ica(4, tau=0.2),
    ica(4, tau=1.0, nonlinearity="-tanh(x)", source="laplace"),
    pca(4, tau=2.0),
]


@pytest.mark.deep
@pytest.mark.parametrize("system", CASES, ids=range(3))
def test_simulation_follows_the_limit_and_its_fluctuations(system):
    """With standard errors: the mean to O(1/n), sqrt(n) sd, and a Lambda that is not divided."""
    n, seeds = 4000, 400
    times = [0.0, 1.0, 4.0]
    found = hdica.simulate(system, n=n, times=times, seeds=seeds, method="chain")["Q"]
    limit = hdica.limit(system, times=times, method="ode")
    mean, sd = found.mean("seed").values[1:], found.std("seed").values[1:]
    spread = limit["Q_sd"].values[1:] / np.sqrt(n)
    assert sd == pytest.approx(spread, rel=4 / np.sqrt(2 * seeds))
    error = spread / np.sqrt(seeds)
    assert np.all(np.abs(mean - limit["Q"].values[1:]) < 4 * error + 10 / n)
    wrong = hdica.limit(system.model_copy(update={"batch": 1}), times=times, method="ode")
    assert np.any(np.abs(mean - wrong["Q"].values[1:]) > 12 * error + 20 / n)
    assert np.any(np.abs(sd * np.sqrt(n) / wrong["Q_sd"].values[1:] - 1) > 0.3)


SPARSE = {"prior": {"sparse": 0.3}}


@pytest.mark.parametrize(
    "system",
    [
        ica(4, 0.2, regularizer="0.3*sign(x)", **SPARSE),
        pca(4, 2.0, regularizer="0.3*sign(x)", **SPARSE),
    ],
    ids=["ica", "pca"],
)
def test_vector_follows_the_density(system):
    n, seeds, times = 1500, 48, [0.0, 1.0, 4.0]
    asked = {"times": times, "functionals": {"fourth": "x**4", "sign": "xi*sign(x)"}}
    found = hdica.simulate(system, n=n, seeds=seeds, method="vector", **asked)
    limit = hdica.limit(system, method="pde", **asked)
    wrong = hdica.limit(system.model_copy(update={"batch": 1}), method="pde", **asked)
    apart = []
    for name in ("Q", "R", "fourth", "sign"):
        mean, sd = (getattr(found[name], of)("seed").values[1:] for of in ("mean", "std"))
        error = sd / np.sqrt(seeds)
        assert np.all(np.abs(mean - limit[name].values[1:]) < 4.5 * error + 6 / n), name
        apart.append(np.abs(mean - wrong[name].values[1:]) / (error + 6 / n))
    assert np.max(apart) > 12


@pytest.mark.parametrize("more", [{}, {"nonlinearity": "tanh(x)", "source": "rademacher"}], ids=str)
def test_critical_step_sizes_are_m_times_those_of_one_sample(more):
    one, several = (hdica.critical(ica(m, **more), "tau") for m in (1, 8))
    assert several["value"].values == pytest.approx(8 * one["value"].values, rel=1e-12)
    assert several["Q"].values.tolist() == one["Q"].values.tolist()
    assert several["error"].values == pytest.approx(8 * one["error"].values)


def test_critical_step_sizes_with_a_regularizer():
    """phi is times tau in online ICA, as G is: T scales with m there, too."""
    more = {"regularizer": "0.1*sign(x)", **SPARSE}
    one, several = (
        hdica.critical(ica(m, **more), "tau", low=0.01 * m, high=1.0 * m) for m in (1, 4)
    )
    assert one.sizes["transition"] >= 1
    assert several["value"].values == pytest.approx(4 * one["value"].values, rel=1e-6)


def test_critical_signal_of_oja_is_tau_over_2m():
    found = hdica.critical(pca(5, tau=1.0), "omega")
    assert found["value"].values == pytest.approx([0.1], rel=1e-6)


def test_fixed_points_are_those_of_a_share_of_tau():
    several, one = hdica.fixed_points(ica(4, 0.2)), hdica.fixed_points(ica(1, 0.05))
    for name in ("Q", "stable", "bulk"):
        assert several[name].values == pytest.approx(one[name].values, abs=1e-10)


def test_the_baseline_sees_as_many_samples_as_the_rule():
    several, one = (
        hdica.simulate(pca(m), n=40, times=times, method="sample_pca", seeds=60)["Q"].values
        for m, times in ((4, [1.0, 3.0]), (1, [4.0, 12.0]))
    )
    error = np.hypot(several.std(axis=0), one.std(axis=0)) / np.sqrt(60)
    assert np.all(np.abs(several.mean(axis=0) - one.mean(axis=0)) < 4 * error)
    limits = [hdica.limit(pca(m), times=[12.0 / m], method="sample_pca_limit") for m in (4, 1)]
    assert limits[0]["Q"].values == pytest.approx(limits[1]["Q"].values)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "four", 10**7, None, float("inf")])
@pytest.mark.parametrize("system", [ica, pca])
def test_other_batches_are_refused(system, value):
    with pytest.raises(HdicaError, match="batch = .* is not allowed"):
        system(value)


def test_a_batch_of_one_is_the_rule_without():
    for system, plain in (
        (ica(1.0), hdica.OnlineICA(tau=0.05, start={"overlap": 0.7})),
        (pca(1), hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 0.4})),
    ):
        assert system == plain
        for method in ("vector", "chain"):
            one, other = (
                hdica.simulate(s, n=20, times=[2.0], method=method)["Q"].values
                for s in (system, plain)
            )
            assert one.tobytes() == other.tobytes()


def test_batches_of_a_grid_have_the_bits_that_each_has_alone():
    asked = {"n": 30, "times": [0.0, 2.0], "seeds": 2, "method": "vector", "noise": "shared"}
    grid = hdica.simulate(ica(), over={"batch": [1, 3], "tau": [0.05, 0.1]}, **asked)
    assert grid["Q"].dims == ("batch", "tau", "seed", "time")
    alone = hdica.simulate(ica(3, tau=0.1), **asked)
    assert grid["Q"].sel(batch=3, tau=0.1).values.tobytes() == alone["Q"].values.tobytes()


def test_a_batch_is_no_parameter_of_a_search():
    with pytest.raises(
        HdicaError, match=r"parameter = 'batch' is not known \(allowed: tau, threshold\)"
    ):
        hdica.critical(ica(4), "batch")


def test_conversion_and_notes_know_of_it():
    with pytest.raises(HdicaError, match="batch = 4 is not allowed for HebbianICA"):
        hdica.convert(ica(4), to=hdica.HebbianICA)
    found = hdica.limit(pca(4, tau=1.0, omega=0.1), times=[0.0, 10.0])
    assert "omega = 0.1 is at most tau/8 = 0.125" in found.attrs["note"]
    assert "note" not in hdica.limit(pca(4, tau=1.0, omega=0.2), times=[0.0, 10.0]).attrs
    stuck = hdica.limit(ica(4, tau=0.3), times=[0.0, 10.0]).attrs["note"]
    assert "take tau below its critical value 0.2365" in stuck
