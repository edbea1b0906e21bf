"""First passages of the exact chain of one overlap, by collocation."""

import math

import numpy as np
import pytest
from scipy import stats

from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.limits.passage.chain import NormalisedChain, exact_passage
from hdica.limits.passage.collocation import collocated
from hdica.limits.passage.step import Points, chi2_nodes, sphere_nodes, step_of


def cube(u):
    return u**3


def chain(nu, n, source="rademacher", threshold=0.8, f=cube, even=True):
    return NormalisedChain(f, make_source(source), nu / n, n, threshold, even)


@pytest.mark.parametrize("freedom", [1, 3, 98, 5000])
def test_nodes_of_chi2_have_its_moments(freedom):
    rule = chi2_nodes(freedom, 6)
    for order in range(1, 12):
        moment = math.prod(1 + 2 * i / freedom for i in range(order))
        found = np.sum(rule.weights * (rule.points / freedom) ** order)
        assert found == pytest.approx(moment, rel=1e-12)


@pytest.mark.parametrize("n", [3, 20, 4000])
def test_nodes_of_a_random_direction_have_its_moments(n):
    rule = sphere_nodes(n, 12)
    for order in range(1, 12):
        moment = math.prod((1 + 2 * i) / (n + 2 * i) for i in range(order))
        assert np.sum(rule.weights * rule.points ** (2 * order)) == pytest.approx(moment, rel=1e-12)
        assert np.sum(rule.weights * rule.points ** (2 * order - 1)) == pytest.approx(0, abs=1e-14)


def test_a_step_is_that_of_vectors():
    """Mean, variance and third moment of Q' - Q against samples of the update in n dimensions."""
    n, tau, q, runs = 12, 0.3, 0.45, 400_000
    rng = np.random.default_rng(1)
    y = rng.standard_normal((n, runs))
    y[0] = rng.uniform(-math.sqrt(3), math.sqrt(3), runs)
    x = np.zeros((n, runs))
    x[0], x[1] = math.sqrt(n) * q, math.sqrt(n) * math.sqrt(1 - q * q)
    u = np.sum(x * y, axis=0) / math.sqrt(n)
    x = x - tau / math.sqrt(n) * u**3 * y
    moved = x[0] / np.linalg.norm(x, axis=0) - q
    step = step_of(cube, make_source("uniform"), tau, n, Points(96, 120, 12))
    change = step.change(q)
    for power in (1, 2, 3):
        values = moved**power
        expected = np.sum(step.weights * change**power)
        assert abs(values.mean() - expected) < 4 * values.std() / math.sqrt(runs)
    wrong = step_of(cube, make_source("uniform"), tau, n + 3, Points(96, 120, 12)).moments(q)[0]
    assert abs(moved.mean() - wrong) > 4 * moved.std() / math.sqrt(runs)


def test_polynomials_converge_faster_than_any_power():
    step = step_of(cube, make_source("uniform"), 0.03, 100, Points())
    at = [collocated(step, 0.8, terms, True) for terms in (16, 24, 32, 64)]
    means = [float(np.sum(one.at(np.zeros(1))[0] * one.mean)) for one in at]
    errors = [abs(mean / means[-1] - 1) for mean in means[:-1]]
    assert errors[1] < errors[0] / 10
    assert errors[2] < errors[1] / 10


def test_what_is_alike_on_both_sides_need_not_be_told():
    one, two = (exact_passage(chain(2.0, 30, even=even), "random") for even in (True, False))
    assert two.mean == pytest.approx(one.mean, rel=3e-5)
    assert two.sd == pytest.approx(one.sd, rel=3e-5)


@pytest.mark.deep
def test_a_one_sided_rule_leaves_on_its_side():
    """Of x^2 and a skewed source Q and -Q are not alike: against paths of the chain itself."""
    n, tau, runs = 16, 0.16, 4000
    values, weights = [-0.5, 2.0], [0.8, 0.2]
    skewed = {"discrete": {"values": values, "weights": weights}}
    found = exact_passage(
        NormalisedChain(lambda u: -(u**2), make_source(skewed), tau, n, 0.8, False), "zero"
    )
    rng, q, times = np.random.default_rng(3), np.zeros(runs), np.zeros(runs)
    for step in range(1, 200_000):
        going = times == 0
        if not going.any():
            break
        c = rng.choice(values, runs, p=weights)
        e, rest = rng.standard_normal(runs), rng.chisquare(n - 2, runs)
        u = q * c + e * np.sqrt(1 - q * q)
        h = tau / n * u**2
        moved = (q + h * c) / np.sqrt(1 + 2 * h * u + h * h * (c * c + e * e + rest))
        q = np.where(going, moved, q)
        times[going & (np.abs(q) >= 0.8)] = step
    assert times.min() > 0
    assert abs(times.mean() - found.mean) < 4 * times.std() / math.sqrt(runs)
    law = stats.kstest(times, lambda t: 1 - found.survival(t))
    assert law.pvalue > 1e-3
    assert stats.kstest(times * 1.1, lambda t: 1 - found.survival(t)).pvalue < 1e-3


@pytest.mark.deep
def test_survival_has_the_mean_and_begins_at_one():
    found = exact_passage(chain(1.2, 12), "zero")
    steps = np.arange(0, 30 * int(found.mean), dtype=float)
    alive = found.survival(steps)
    assert alive[0] == pytest.approx(1.0, abs=1e-9)
    assert np.all(np.diff(alive) <= 1e-4)
    assert np.sum(alive) == pytest.approx(found.mean, rel=1e-5)
    square = np.sum((2 * steps + 1) * alive)
    assert square == pytest.approx(found.sd**2 + found.mean**2, rel=1e-4)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 7))
def test_the_error_covers(seed):
    """Random passages against polynomials and nodes of a far finer grid."""
    rng = np.random.default_rng([7, seed])
    n = int(rng.integers(8, 50))
    three = {"discrete": {"values": [-1.2, 0, 1.2], "weights": [0.45, 0.1, 0.45]}}
    source = ["rademacher", "uniform", three][rng.integers(3)]
    one = chain(rng.uniform(0.3, 3.0), n, source, threshold=rng.uniform(0.5, 0.9))
    found = exact_passage(one, "zero")
    finest = one.kernel(140, Points(36, 200, 8))
    mean = float(np.sum(finest.at(np.zeros(1))[0] * finest.mean))
    assert abs(found.mean / mean - 1) <= 2 * found.error + 1e-9


@pytest.mark.deep
def test_a_long_passage_keeps_its_digits():
    """By the asymptotics n C exp(n S) at tau = 0.04, whose error falls as 1/n."""
    s, c = 0.116148535054, 110.018244465
    ratios = {
        n: exact_passage(chain(0.04 * n, n, "uniform"), "zero").mean / (n * c * math.exp(n * s))
        for n in (150, 240)
    }
    assert ratios[240] * 240 * c * math.exp(240 * s) > 1e14
    assert ratios[240] - 1 == pytest.approx((ratios[150] - 1) * 150 / 240, rel=0.1)


@pytest.mark.deep
def test_a_passage_too_long_says_so():
    with pytest.raises(HdicaError, match="too long, or its samples too rough"):
        exact_passage(chain(0.04 * 400, 400, "uniform"), "zero")
