"""The normal law of the estimate without a kink: against the PDE, its own moments, simulation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import norm

import hdica
from hdica.errors import HdicaError

X = np.linspace(-4, 5, 91).tolist()
KEPT = {"snapshots": [0.5, 2, 8], "x": X, "thresholds": [0.5, 1.0], "functionals": {"four": "x**4"}}
NORMAL = {"normal": {"mean": 0.5**0.5, "var": 0.5}}
STEPS = {"steps": {"times": [1.0], "values": [0.6, 0.2]}}
CASES = [
    hdica.SparsePCA(tau=0.5, omega=1.5, prior={"sparse": 0.3}, start=NORMAL),
    hdica.SparsePCA(tau="0.5/(1 + t)", omega=1.5, prior={"sparse": 0.3}, regularizer="0.3*x"),
    hdica.SparsePCA(tau=STEPS, omega=0.5, prior="gaussian", start={"overlap": 0.3}),
    hdica.OnlineICA(tau=0.04, source="uniform", start={"overlap": 0.7}),
    hdica.OnlineICA(
        tau=0.04, source={"chi2": 3}, nonlinearity="-x**2", prior={"sparse_sign": 0.3}, Q0=0.5
    ),
]


def limit(system, method, times=(0, 0.5, 2, 8), **kept):
    return hdica.limit(system, times=list(times), method=method, **kept)


@pytest.mark.parametrize("system", CASES)
def test_the_density_by_cells_is_the_normal_law_within_its_own_error(system):
    law, cells = (limit(system, name, **KEPT) for name in ("ornstein_uhlenbeck", "pde"))
    for name in ("Q", "four"):
        error = law[f"{name}_error"] + cells[f"{name}_error"]
        assert np.all(abs(law[name] - cells[name]) <= error + 1e-12), name
    for name in ("density", "cdf", "tpr", "fpr", "misclassified", "potential", "curvature"):
        assert float(abs(law[name] - cells[name]).fillna(0).max()) < 1e-6, name
    # The control, a pull that is wrong by 2 %, is not within it.
    assert float(abs(law["cdf_control"] - cells["cdf"]).max()) > 1e-4
    assert float(law["residual"].max()) < 1e-10


@pytest.mark.parametrize("t", [1.0, 6.0])
def test_mean_and_variance_of_an_entry_follow_their_own_equations(t):
    """Wang and Lu 2016, eq. (8)-(10) at phi = 0, written out for two entries of the feature."""
    tau, omega, rho, q0 = 0.5, 1.5, 0.3, 0.2
    xi = np.array([0.0, rho**-0.5])
    weights = np.array([1 - rho, rho])

    def rate(_, y):
        mean, variance = y[:2], y[2]
        q = float(np.sum(weights * xi * mean))
        g = tau**2 * (1 + omega * q * q) / 2
        d = g + tau * omega * q * q
        return [*(tau * omega * q * xi - d * mean), 2 * g - 2 * d * variance]

    begin = [*(q0 * xi), 1 - q0 * q0]
    solved = solve_ivp(rate, (0, t), begin, rtol=1e-11, atol=1e-12).y[:, -1]
    system = hdica.SparsePCA(tau=tau, omega=omega, prior={"sparse": rho}, start={"overlap": q0})
    found = limit(system, "ornstein_uhlenbeck", (0, t), snapshots=[t], x=X)
    expected = norm.pdf(np.array(X), solved[:2, None], np.sqrt(solved[2]))
    assert found.density.values[0] == pytest.approx(expected, abs=1e-8)


def test_means_with_a_kink_are_known_to_their_own_error():
    asked = {"functionals": {"size": "abs(x)", "far": "abs(x - 1)"}}
    found = limit(CASES[0], "ornstein_uhlenbeck", **asked)
    kept = limit(CASES[0], "ornstein_uhlenbeck", snapshots=[0.5, 2, 8], x=X)
    for k in range(3):
        for name, at in (("size", 0.0), ("far", 1.0)):
            exact = 0.0
            for row, weight in zip(kept.density.values[k], kept.weight.values, strict=True):
                top = row.argmax()
                curve = np.polyfit(X[top - 3 : top + 4], np.log(row[top - 3 : top + 4]), 2)
                mean, sd = -curve[1] / (2 * curve[0]), (-2 * curve[0]) ** -0.5
                z = (mean - at) / sd
                exact += weight * sd * (2 * norm.pdf(z) + z * (1 - 2 * norm.cdf(-z)))
            off = abs(float(found[name][k + 1]) - exact)
            assert off <= float(found[f"{name}_error"][k + 1]) + 1e-9
    assert float(found["size_error"].max()) < 1e-10
    assert float(found["far_error"].max()) > 1e-6


def test_entries_of_runs_follow_it_and_not_its_control():
    system = hdica.SparsePCA(tau=0.5, omega=1.5, prior={"sparse": 0.3}, start=NORMAL)
    asked = {"snapshots": [2], "x": [-1.0, 0.0, 1.0, 2.0], "functionals": {"four": "x**4"}}
    law = limit(system, "ornstein_uhlenbeck", (0, 2), **asked)
    runs = hdica.simulate(system, n=1000, times=[0, 2], seeds=60, method="vector", **asked)
    mean, error = runs.mean("seed"), runs.std("seed", ddof=1) / 60**0.5
    allowed = 4.5 * error + 6 / 1000  # the finite-n term: at most 3/n at three times this size
    assert np.all(abs(mean.cdf - law.cdf) <= allowed.cdf)
    assert abs(float(mean.four[1] - law.four[1])) <= float(allowed.four[1])
    wrong = limit(system.model_copy(update={"omega": 1.0}), "ornstein_uhlenbeck", (0, 2), **asked)
    assert np.any(abs(mean.cdf - wrong.cdf) > allowed.cdf)


def test_a_start_without_noise_is_a_step_at_first():
    system = hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 1.0})
    found = limit(system, "ornstein_uhlenbeck", (0, 1), snapshots=[0, 1], x=[0.0, 0.9, 1.1, 2.0])
    assert found.cdf.values[0, 0].tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert np.isfinite(found.density.values).all()
    assert 0 < found.cdf.values[1, 0, 1] < found.cdf.values[1, 0, 3] < 1


def test_a_regularizer_with_a_kink_is_refused_and_auto_takes_the_density_by_cells():
    with pytest.raises(HdicaError, match="the overlap alone does not close the limit"):
        limit(hdica.SparsePCA(tau=0.5, regularizer="0.1*sign(x)"), "ornstein_uhlenbeck")
    assert limit(CASES[0], "auto", snapshots=[2]).attrs["method"] == "pde"
