"""Bands of densities' limits: closed cases, numbers found otherwise, and what has none."""

import math
from itertools import pairwise

import numpy as np
import pytest

import hdica
from hdica.limits.averages.expectations import normal_products
from hdica.limits.bands.solve import common_noise, spreads
from hdica.limits.bands.sweep import means, overlap
from hdica.systems.sparse_pca.system import mean_field, noise

HALF = math.sqrt(0.5)
NORMAL = {"normal": {"mean": HALF, "var": 0.5}}
ICA = hdica.OnlineICA(
    tau=0.05, source="rademacher", regularizer="0.2*sign(x)", prior={"sparse": 0.3}, start=NORMAL
)
OIST = hdica.SparsePCA(
    tau=0.5, omega=1.0, regularizer="0.27*sign(x)", prior={"sparse": 0.05}, start=NORMAL
)
TIMES = [5.0, 20.0, 50.0]
SIZE = {"size": "abs(x)"}
MOVES = {"exchange": 0.1}
EXACT = {"overlap": 0.6, "exact": True}
CASES = [
    ({"sparse": 0.3}, NORMAL),
    ({"sparse": 0.3}, {"overlap": 0.6}),
    ({"sparse": 0.3}, EXACT),
    ({"sparse": 0.3, "iid": True}, NORMAL),
    ({"sparse": 0.3, "iid": True}, EXACT),
    ("gaussian", {"overlap": 0.6}),
]


# The sweep on a grid of its own at dx = .05, whose rates are 1 % high; 1,000 runs at n = 1000.
def test_the_bands_of_online_ica_with_an_l1_regularizer() -> None:
    found = hdica.limit(
        ICA, times=TIMES, bands=True, thresholds=[0.5], functionals=SIZE, method="pde"
    )
    np.testing.assert_allclose(found.Q_sd, [0.74956, 1.06347, 1.42988], rtol=1e-3)
    np.testing.assert_allclose(found.size_sd, [0.2007, 0.2207, 0.2360], rtol=1e-3)
    np.testing.assert_allclose(found.fpr_sd[:, 0], [0.526, 0.552, 0.562], rtol=0.025)
    np.testing.assert_allclose(found.tpr_sd[:, 0], [0.864, 0.910, 0.908], rtol=0.025)


def test_the_bands_of_sparse_pca() -> None:
    found = hdica.limit(OIST, times=[1, 3, 10], bands=True, thresholds=[1.0], functionals=SIZE)
    np.testing.assert_allclose(found.Q_sd, [1.322, 2.837, 0.2708], rtol=5e-3)
    np.testing.assert_allclose(found.size_sd, [0.2274, 0.3635, 0.2860], rtol=1e-2)
    np.testing.assert_allclose(found.fpr_sd[:, 0], [0.3507, 0.5854, 0.2444], rtol=5e-3)
    np.testing.assert_allclose(found.tpr_sd[:2, 0], [3.099, 4.188], rtol=5e-3)


@pytest.mark.deep
@pytest.mark.parametrize(("prior", "start"), CASES, ids=str)
def test_without_a_regularizer_they_are_those_of_the_overlap(prior: object, start: dict) -> None:
    ica = hdica.OnlineICA(tau=0.05, source="rademacher", prior=prior, start=start)
    times = [0.0, 2.0]
    one = hdica.limit(ica, times=times, bands=True, method="pde")
    other = hdica.limit(ica, times=times, method="ode")
    np.testing.assert_allclose(one.Q_sd, other.Q_sd, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(one.R_sd, 0.0, atol=1e-12)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tau", "omega", "batch"),
    [
        ("0.5/(1 + t/4)", 1.0, 1),
        ({"steps": {"times": [2], "values": [0.6, 0.2]}}, 1.0, 4),
        (0.5, "1 + t/4", 4),
    ],
)
def test_schedules_and_batches(tau: object, omega: object, batch: int) -> None:
    pca = hdica.SparsePCA(
        tau=tau, omega=omega, batch=batch, prior={"sparse": 0.3}, start={"overlap": 0.5}
    )
    times = [1.0, 3.0]
    one = hdica.limit(pca, times=times, bands=True, method="pde")
    other = hdica.limit(pca, times=times, method="ode")
    np.testing.assert_allclose(one.Q_sd, other.Q_sd, rtol=2e-3)


def test_the_length_of_the_estimate_does_not_fluctuate() -> None:
    field = mean_field(OIST)
    targets = [means(t, [lambda xi, x: x * x, overlap]) for t in (1.0, 5.0)]
    for one in spreads(field, noise(OIST), targets):
        assert abs(one.value[0]) < 1e-8 * one.value[1]
    # By hand: for h = x^2, whose slopes are 2 Q, 2 and 2, all noise together is zero.
    q, tau, slopes = np.array([0.4]), np.array([0.5]), np.array([0.8, 2.0, 2.0])
    form = slopes @ common_noise(normal_products(2.0, q), q, tau)[0] @ slopes
    own = tau[0] ** 2 * (1 + q[0] ** 2) * 4
    assert form + own == pytest.approx(0.0, abs=1e-12)


def test_a_sweep_converges_with_order_two() -> None:
    """Halving cells and steps takes off three quarters of the error."""
    from hdica.limits.bands import solve, sweep

    field = mean_field(OIST)
    problem, prior = solve.posed_whole(field)
    targets = [means(3.0, [overlap, lambda xi, x: x**4])]
    plan, _ = solve.coarse(problem, np.array([1e-3, 3.0]), 1e-5)
    plan = sweep.graded(plan, np.array([3.0]))
    task = (problem, prior, noise(OIST))
    levels = np.array([solve._level(task, targets, plan, 2**k)[0] for k in range(4)])
    steps = np.abs(np.diff(levels, axis=0))
    ratio = steps[:-1] / steps[1:]
    assert ((ratio > 3) & (ratio < 5)).all()


@pytest.mark.deep
def test_many_times_are_interpolated() -> None:
    times = np.linspace(0, 5, 101)
    many = hdica.limit(OIST, times=times, bands=True, method="pde")
    few = hdica.limit(OIST, times=times[[0, 13, 37, 71, 100]], bands=True, method="pde")
    np.testing.assert_allclose(many.Q_sd[[0, 13, 37, 71, 100]], few.Q_sd, rtol=3e-3)


@pytest.mark.deep
def test_what_has_no_bands_says_so() -> None:
    moving = hdica.SparsePCA(tau=0.5, regularizer="0.2*sign(x)", prior="gaussian", motion=MOVES)
    with pytest.raises(hdica.HdicaError, match="bands = True is not allowed with motion"):
        hdica.limit(moving, times=[1], bands=True)
    with pytest.raises(hdica.HdicaError, match="bands = 2 is not allowed"):
        hdica.limit(OIST, times=[1], bands=2)


def test_the_transposed_stage_is_solved_like_a_full_matrix():
    from hdica.limits.bands import kernels

    rng, offsets = np.random.default_rng(0), np.array([0, 5, 6, 13])
    right, left = rng.uniform(0.1, 2.0, (2, 13))
    matrix = np.zeros((13, 13))
    for first, end in pairwise(offsets):
        for i in range(first + 1, end):
            matrix[[i - 1, i], i - 1] += [-right[i], right[i]]
            matrix[[i - 1, i], i] += [left[i], -left[i]]
    mass, out = rng.uniform(size=13), np.zeros(13)
    kernels.answer(out, mass, right, left, offsets, 0.5)
    assert out == pytest.approx(0.5 * matrix @ mass, abs=1e-14)
    factors, values = np.zeros((3, 13)), rng.standard_normal((13, 2))
    solved = np.linalg.solve((np.eye(13) - matrix).T, values)
    kernels.eliminated(factors, right, left, offsets)
    kernels.transposed(values, factors, offsets)
    assert values == pytest.approx(solved, abs=1e-13)
