"""The offline problem (7): conditions, an independent solver, and what it finds of the feature."""

import numpy as np
import pytest
from scipy.optimize import minimize

import hdica
from hdica.errors import HdicaError
from hdica.systems.sparse_pca.baselines import (
    Penalty,
    iterated,
    objective,
    on_sphere,
    penalised,
    penalty_of,
    residual,
    run_penalised,
    run_sample_pca,
)
from tests.systems.sparse_pca.test_rule import make_pca, streams, trials


def covariance(seed, n=12, samples=30, omega=2.0):
    rng = np.random.default_rng(seed)
    xi = np.zeros(n)
    xi[:3] = np.sqrt(n / 3)
    y = np.sqrt(omega / n) * rng.standard_normal(samples)[:, None] * xi
    y += rng.standard_normal((samples, n))
    return y.T @ y / samples


def energy(s, a, x):
    """E/n of (7), written anew: any vector, brought to the sphere."""
    x = x * np.sqrt(x.size / (x @ x))
    return (a * np.abs(x).sum() - x @ s @ x / 2) / x.size


def searched(s, a, starts=60):
    """The lowest E/n by SciPy from many random starts, smoothed less and less."""
    rng, lowest = np.random.default_rng(0), np.inf
    for _ in range(starts):
        x = rng.standard_normal(len(s)) * (rng.random(len(s)) < 0.5) + 1e-3
        for width in (0.1, 1e-2, 1e-4):

            def smooth(z, width=width):
                z = z * np.sqrt(z.size / (z @ z))
                return (a * np.sqrt(z * z + width**2).sum() - z @ s @ z / 2) / z.size

            x = minimize(smooth, x, method="BFGS", options={"maxiter": 300}).x
            x *= np.sqrt(x.size / (x @ x))
        lowest = min(lowest, energy(s, a, x), energy(s, a, np.where(np.abs(x) < 1e-2, 0.0, x)))
    return lowest


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("a", [0.1, 0.6])
def test_no_other_solver_finds_a_lower_objective(seed, a):
    s = covariance(seed)
    x = penalised(s, Penalty(a, 0.0))
    assert x @ x == pytest.approx(len(s))
    assert objective(s, Penalty(a, 0.0), x) == pytest.approx(energy(s, a, x), abs=1e-12)
    assert energy(s, a, x) <= searched(s, a) + 1e-6
    assert residual(s, a, x) < 1e-7
    # Control: the eigenvector is neither as low nor stationary.
    eigen = np.linalg.eigh(s)[1][:, -1] * np.sqrt(len(s))
    assert energy(s, a, eigen) > energy(s, a, x) + 1e-4
    assert residual(s, a, eigen) > 1e-2


def test_the_step_is_the_maximiser_on_the_sphere():
    rng = np.random.default_rng(4)
    for a in (0.0, 0.7, 50.0):  # the last leaves nothing above the threshold
        v = rng.standard_normal(6)
        best = on_sphere(v, a)
        tried = rng.standard_normal((20_000, 6))
        tried *= np.sqrt(6 / np.sum(tried**2, axis=1))[:, None]
        assert (
            best @ v - a * np.abs(best).sum() >= (tried @ v - a * np.abs(tried).sum(axis=1)).max()
        )


def test_the_objective_never_rises():
    s, x = covariance(7), np.ones(12)
    values = []
    for _ in range(30):
        values.append(energy(s, 0.5, x))
        x = on_sphere(s @ x, 0.5)
    assert np.all(np.diff(values) <= 1e-14)
    assert energy(s, 0.5, iterated(s, 0.5, np.ones(12))) <= values[-1] + 1e-12


@pytest.mark.parametrize("phi", ["0", "0.7*x"])
def test_without_a_kink_it_is_sample_pca_on_the_same_samples(phi):
    times, n = np.array([0.0, 0.5, 3.0]), 60
    rule = make_pca(phi, prior={"sparse": 0.2}, omega=1.5)
    one = run_penalised(rule, times, n, streams(n))[0]
    other = run_sample_pca(rule, times, n, streams(n))[0]["Q"]
    assert np.isnan(one["Q"][0])
    assert one["Q"][1:] == pytest.approx(other[1:], abs=1e-13)
    assert np.all(one["nonzero"][1:] == 1)
    kink = run_penalised(make_pca("0.2*sign(x)", {"sparse": 0.2}, omega=1.5), times, n, streams(n))
    assert np.all(np.abs(kink[0]["Q"] - other)[1:] > 1e-3)


def test_a_sparse_feature_is_found_with_fewer_samples_than_by_pca():
    times, n = np.array([1.0, 2.0]), 200
    sparse, plain = (make_pca(phi, {"sparse": 0.05}, omega=1.5) for phi in ("0.5*sign(x)", "0"))
    with_it, without = (trials(run_penalised, one, times, n, 12) for one in (sparse, plain))
    gain = with_it - without
    error = gain.std(axis=0, ddof=1) / np.sqrt(12)
    assert np.all(gain.mean(axis=0) > 5 * error)


def test_the_scale_of_the_penalty_is_that_of_the_rule():
    # (7) has phi/tau: a step of the rule is a step on E of size tau.
    assert penalty_of(make_pca("0.3*sign(x) + 0.1*x", tau=0.5)).a == pytest.approx(0.6)
    one, two = (
        run_penalised(make_pca(phi, {"sparse": 0.1}, tau=tau), np.array([2.0]), 40, streams(40))[0]
        for phi, tau in (("0.3*sign(x)", 0.5), ("0.6*sign(x)", 1.0))
    )
    assert one["Q"] == two["Q"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"regularizer": "tanh(x)"}, "penalised_pca' is not allowed for the regularizer"),
        ({"regularizer": "-0.1*sign(x)"}, "penalised_pca' is not allowed for the regularizer"),
        ({"regularizer": "0.1*sign(x)", "tau": "0.5/(1 + t)"}, "step size that varies"),
    ],
)
def test_what_it_does_not_solve_is_refused(more, said):
    system = hdica.SparsePCA(**{"tau": 0.5, **more})
    with pytest.raises(HdicaError, match=said):
        hdica.simulate(system, n=20, times=[1], seeds=2, method="penalised_pca")
