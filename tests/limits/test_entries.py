"""Uncoupled entries against plain NumPy, the exact law at phi = 0 and the solved density."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import hdica
from hdica.finite.random.streams import normal_numbers
from hdica.limits.mean_field.entries import Coefficients, Walk, first_entries, order_of
from hdica.systems.online_ica.system import mean_field

TAU, M4, M6 = 0.04, 1.8, 27 / 7
LASSO = hdica.OnlineICA(
    tau=TAU, regularizer="0.1*sign(x)", prior={"sparse": 0.3}, start={"overlap": 0.7}
)
PLAIN = LASSO.model_copy(update={"regularizer": "0"})


def g_of(q):
    """G of (12), with the sign that the paper's (14) needs."""
    return TAU * q**3 * (M4 - 3)


def power_of(q):
    """Lambda of (13)."""
    return TAU**2 * (15 + 15 * q**4 * (1 - q * q) * (M4 - 3) + q**6 * (M6 - 15))


def walked(system, last, count, n, *, seed=0, sign=1.0, noise=1.0):
    """Feature, entries at t = 0 and at ``last`` by some steps a unit of time."""
    field = mean_field(system)
    order, rng = order_of(field, last), np.random.default_rng(seed)
    xi = field.prior.feature(rng, count)
    first = first_entries(field, xi, rng)
    if sign < 0:
        object.__setattr__(field, "pull", field.pull.times(-1.0))
    coefficients = Coefficients(field, order, n)
    walk = Walk(coefficients, xi, first.copy(), lambda size: noise * rng.standard_normal(size))
    assert walk.advance(0, round(n * last)) == round(n * last)
    return xi, first, walk.z


@pytest.mark.parametrize(("sign", "same"), [(1.0, True), (-1.0, False)])
def test_steps_are_those_of_15(sign, same):
    field, n, steps = mean_field(LASSO), 50, 200
    order, rng = order_of(field, 4.0), np.random.default_rng(1)
    xi = field.prior.feature(rng, 40)
    # Of every row of 48 numbers the first 40 are used.
    first, w = first_entries(field, xi, rng), rng.standard_normal((steps, 48))
    flat = iter(w.ravel())
    walk = Walk(
        Coefficients(field, order, n),
        xi,
        first.copy(),
        lambda size: np.fromiter(flat, float, size),
    )
    # Whole or in parts, the steps are the same.
    assert walk.advance(0, 77) + walk.advance(77, steps) == steps
    z = first
    for k in range(steps):
        q, r = (float(one) for one in order.at(np.array(k / n)))
        # (10) with G of either sign.
        inert = z * (q * sign * g_of(q) + TAU * r - power_of(q) / 2)
        drift = inert - xi * sign * g_of(q) - TAU * 0.1 * np.sign(z)
        z = z + drift / n + np.sqrt(power_of(q) / n) * w[k, :40]
    assert (np.abs(walk.z - z).max() < 1e-10) == same


REGULARIZERS = ["0.1*sign(x)", "x/3 + 0.30000000000000004*sign(x)", "-0.7*x", "0", "tanh(x)"]


def numbers():
    """The same normal numbers, anew."""
    return normal_numbers(np.random.Generator(np.random.SFC64(3)))


def in_numpy(field, order, n, xi, z, steps):
    """Entries after some steps of (15), each term by itself in plain NumPy."""
    draw, z = numbers(), z.copy()
    for k in range(steps):
        q, r = (one.item() for one in order.at(np.array([k / n])))
        drift = field.pull(q, TAU) * xi - TAU * field.phi.value(z) - field.curvature(q, r, TAU) * z
        z += drift / n
        z += np.sqrt(2 * field.diffusion(q, TAU) / n) * draw(z.size)
    return z


@pytest.mark.parametrize("phi", [*REGULARIZERS, "0.1*sign(x) + sqrt(2)*sign(x)"])
def test_compiled_steps_are_those_of_plain_numpy_bit_for_bit(phi):
    field = mean_field(LASSO.model_copy(update={"regularizer": phi}))
    order, rng = order_of(field, 1.0), np.random.default_rng(2)
    xi = field.prior.feature(rng, 1003)
    first = first_entries(field, xi, rng)
    first[0] = 0.0
    walk = Walk(Coefficients(field, order, 1000), xi, first.copy(), numbers())
    assert walk.advance(0, 60) == 60
    assert np.array_equal(walk.z, in_numpy(field, order, 1000, xi, first, 60))
    near = replace(field, pull=lambda q, tau: field.pull(q, tau) * (1 + 1e-12))
    assert not np.array_equal(walk.z, in_numpy(near, order, 1000, xi, first, 60))


def test_the_order_parameters_are_those_of_the_limit():
    order, times = order_of(mean_field(LASSO), 30.0), np.linspace(0, 30, 41)
    limit = hdica.limit(LASSO, times=times, method="pde")
    for found, name in zip(order.at(times), "QR", strict=True):
        assert np.abs(found - limit[name].values).max() < 1e-6
    jumps = LASSO.model_copy(update={"tau": {"steps": {"times": [10], "values": [0.04, 0.01]}}})
    times = np.array([5.0, 9.9, 10.0, 10.1, 20.0])
    limit = hdica.limit(jumps, times=[0, *times], method="pde")
    found = order_of(mean_field(jumps), 20.0).at(times)[0]
    assert np.abs(found - limit["Q"].values[1:]).max() < 1e-5


def distances(last, count, **wrong):
    """P-values of Kolmogorov and Smirnov's test for both groups of entries."""
    xi, _, z = walked(LASSO, last, count, 20, **wrong)
    x = np.linspace(-4, 6, 2001)
    limit = hdica.limit(LASSO, times=[0, last], snapshots=[last], x=x, method="pde")
    edges, cdf = limit["edge"].values, limit["cdf"].values[0]
    found = []
    for group, value in enumerate(limit["feature"].values):
        own = z[np.abs(xi - value) < 1e-2]
        law = lambda v, k=group: np.interp(v, edges, cdf[k])  # noqa: E731
        found.append(stats.kstest(own, law).pvalue)
    return np.array(found)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("wrong", "agree"), [({}, True), ({"sign": -1.0}, False), ({"noise": 1.1**0.5}, False)]
)
def test_their_law_is_the_density(wrong, agree):
    p = distances(40.0, 250_000, **wrong)
    # Steps of 1/20 move the law by some 2e-4, of which so many entries see nothing.
    assert p.min() > 1e-3 if agree else p.min() < 1e-8


def moments(last):
    """A, B and V of x_t | xi = A x_0 + B xi + sqrt(V) N at phi = 0."""

    def slope(t, y):
        a, b, v = y
        q = 0.7 * a + b
        d = power_of(q) / 2 - q * g_of(q)
        return [-d * a, -d * b - g_of(q), -2 * d * v + power_of(q)]

    return solve_ivp(slope, (0, last), [1.0, 0.0, 0.0], rtol=1e-11, atol=1e-12).y[:, -1]


def scores(system_noise, a, b, v):
    """Standard scores of the coefficients on x_0 and xi, and of the variance of what is left."""
    xi, first, z = walked(PLAIN, 8.0, 40_000, 100, noise=system_noise)
    rest = z - a * first - b * xi
    design = np.column_stack([first, xi])
    error = np.sqrt(v * np.diag(np.linalg.inv(design.T @ design)))
    slopes = np.linalg.lstsq(design, rest, rcond=None)[0] / error
    spread = (np.mean(rest**2) / v - 1) / np.sqrt(2 / rest.size)
    return np.array([*slopes, spread]), stats.kstest(rest / np.sqrt(v), "norm").pvalue


@pytest.mark.deep
def test_the_law_given_start_and_feature_is_exact_without_a_regularizer():
    a, b, v = moments(8.0)
    z, p = scores(1.0, a, b, v)
    assert np.abs(z).max() < 4
    assert p > 1e-3
    assert np.abs(scores(1.1**0.5, a, b, v)[0][2]) > 8
    assert np.abs(scores(1.0, a, -b, v)[0][1]) > 8


def test_the_error_of_a_step_falls_as_its_length():
    a, b, _ = moments(8.0)
    errors = []
    for n in (5, 10, 20, 40):
        xi, first, z = walked(PLAIN, 8.0, 40, n, noise=0.0)
        errors.append(np.abs(z - a * first - b * xi).max())
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert np.abs(ratios - 2).max() < 0.1
    assert errors[-1] * 40 < 0.5


def test_steps_end_where_the_limit_is_not_known():
    field = mean_field(PLAIN)
    order = order_of(field, 1.0)
    xi = field.prior.feature(np.random.default_rng(0), 20)
    walk = Walk(Coefficients(field, order, 10), xi, np.zeros(20), np.zeros)
    assert walk.advance(0, 30) == 11
