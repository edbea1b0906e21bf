"""First passages of a rule whose estimate has a length, by collocation in two variables."""

import math

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import Nodes, gauss
from hdica.ingredients.sources import make_source
from hdica.limits.passage.chain import FreeChain, exact_passage
from hdica.limits.passage.collocation import Collocation, _changes
from hdica.limits.passage.step import Grid, lengths_of, long_step


def against(y):
    return -(y**3)


def chain(nu, n, source="rademacher", threshold=0.8, alpha=0.5, f=against, even=True, odd=True):
    law = make_source(source)
    return FreeChain(f, law, nu / n**2, alpha, n, threshold, even, odd)


def mean_of(one, begin=0.0):
    return float(np.sum(one.at(np.array([begin]))[0] * one.mean))


def test_a_step_is_that_of_vectors():
    """Moments of A' - A and q' against samples of (13) in n dimensions; another n is seen."""
    n, eta, alpha, a, q, runs = 12, 0.02, 0.4, 0.45, 1.2, 400_000
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, runs))
    x[0] = rng.uniform(-math.sqrt(3), math.sqrt(3), runs)
    w = np.zeros((n, runs))
    w[0], w[1] = math.sqrt(q) * a, math.sqrt(q) * math.sqrt(1 - a * a)
    y = np.sum(w * x, axis=0)
    w = w - eta * y**3 * x + alpha * w * (1 - q)
    after = np.sum(w * w, axis=0)
    moved = w[0] / np.sqrt(after) - a

    def off(n):
        step = long_step(against, make_source("uniform"), (eta, alpha), n, Grid(96, 120, 12), True)
        change, length = step.moved(a, q)
        pairs = [(moved, change), (moved**2, change**2), (after, length)]
        pairs.append((after * moved, length * change))
        expected = [float(np.sum(step.weights * of)) for _, of in pairs]
        return [
            abs(seen.mean() - mean) / seen.std() * math.sqrt(runs)
            for (seen, _), mean in zip(pairs, expected, strict=True)
        ]

    assert max(off(n)) < 4
    assert max(off(n + 3)) > 8


def test_one_half_of_the_nodes_is_enough_where_both_move_alike():
    one, two = (chain(2.0, 30, "uniform", odd=odd).kernel(40, Grid()) for odd in (True, False))
    assert mean_of(one) == pytest.approx(mean_of(two), rel=1e-10)


@pytest.mark.parametrize("even", [True, False])
def test_changes_of_polynomials_keep_their_digits(even):
    """Against 60 digits, for steps from 1e-12 to the whole range."""
    import mpmath

    x, orders = 0.9371, (2 if even else 1) * np.arange(30)
    moved = np.array([1e-12, -1e-9, 1e-5, -0.3, 0.0628, -1.9])
    found = _changes(x, moved, np.cos(orders * math.acos(x)), even)
    with mpmath.workdps(60):
        for row, order in zip(found, orders.tolist(), strict=True):
            here = mpmath.chebyt(order, mpmath.mpf(x))
            for value, by in zip(row.tolist(), moved.tolist(), strict=True):
                exact = here - mpmath.chebyt(order, mpmath.mpf(x) + mpmath.mpf(by))
                assert abs(value - exact) <= 2e-12 * order**2 * min(abs(by), 1.0)


@pytest.mark.deep
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_nodes_of_the_length_are_those_of_its_law(alpha):
    """Gaussian nodes of a sample of chains whose direction stays; another alpha is seen."""
    n, eta, runs, order = 30, 1.5 / 900, 200_000, 4
    rng, q = np.random.default_rng(2), np.ones(runs)
    for _ in range(60):
        c = rng.uniform(-math.sqrt(3), math.sqrt(3), runs)
        e, rest = rng.standard_normal(runs), rng.chisquare(n - 2, runs)
        m, g = 1 + alpha * (1 - q), -eta * (np.sqrt(q) * e) ** 3
        q = m * m * q + 2 * m * g * np.sqrt(q) * e + g * g * (c * c + e * e + rest)

    def off(alpha):
        step = long_step(against, make_source("uniform"), (eta, alpha), n, Grid(), True)
        found = lengths_of(step, (0.0,), Grid(lengths=order))
        sample = Nodes(np.clip(q, found.low, found.high), np.full(runs, 1 / runs))
        expected = gauss(sample, order)
        heaviest = expected.points[np.argmax(expected.weights)]
        return abs((1 - found.points[0]) / (1 - heaviest) - 1)

    assert off(alpha) < 0.05
    assert off(alpha + 0.3) > 0.1


@pytest.mark.deep
def test_what_is_alike_on_both_sides_need_not_be_told():
    one, two = (exact_passage(chain(2.0, 30, even=even), "random") for even in (True, False))
    assert two.mean == pytest.approx(one.mean, rel=5e-3)
    assert two.sd == pytest.approx(one.sd, rel=5e-3)


@pytest.mark.deep
def test_a_survival_is_that_of_all_modes():
    """Arnoldi's method against all eigenvalues, and against the moments."""
    found = exact_passage(chain(0.5, 11), "zero")
    steps = np.arange(0, 40 * int(found.mean), dtype=float)
    alive = found.survival(steps)
    one = found.kernel
    whole = Collocation(one.reach, np.arange(found.weights.size), one.values, one.matrix)
    some = steps[:: len(steps) // 200]
    assert found.survival(some) == pytest.approx(whole.survival(found.weights, some), abs=5e-4)
    assert np.sum(alive) == pytest.approx(found.mean, rel=1e-3)
    square = np.sum((2 * steps + 1) * alive)
    assert square == pytest.approx(found.sd**2 + found.mean**2, rel=2e-3)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_error_covers(seed):
    """Random passages against polynomials and nodes of a far finer grid."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.integers(12, 60))
    three = {"discrete": {"values": [-1.2, 0, 1.2], "weights": [0.45, 0.1, 0.45]}}
    source = ["rademacher", "uniform", three][rng.integers(3)]
    nu, threshold = rng.uniform(0.2, min(0.05 * n, 2.0)), rng.uniform(0.5, 0.9)
    one = chain(nu, n, source, threshold, alpha=rng.uniform(0.1, 0.9))
    found = exact_passage(one, "zero")
    mean = mean_of(one.kernel(140, Grid(36, 200, 4, 9, 1e-8)))
    assert abs(found.mean / mean - 1) <= 2 * found.error + 1e-9


@pytest.mark.deep
def test_a_passage_too_long_says_so():
    with pytest.raises(HdicaError, match=r"n = 100 with eta = 0.001 is too long, .* allowed to"):
        exact_passage(chain(10.0, 100, "uniform"), "zero")
