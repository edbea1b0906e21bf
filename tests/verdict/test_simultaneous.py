import numpy as np
import pytest
from scipy import stats

from hdica.verdict.ladder import critical_score, exceedance, normal_score

MANY = 1e9


def chain(rho, count, draws, rng):
    z = rng.standard_normal((draws, count))
    for i in range(1, count):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * z[:, i]
    return z


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_bound_covers_the_maximum_of_a_gaussian_chain(rho):
    draws = 40_000
    largest = np.abs(chain(rho, 20, draws, np.random.default_rng(3))).max(axis=1)
    dof = np.full(20, MANY)
    for level in (2.0, 2.5, 3.0):
        true = (largest > level).mean()
        error = 4 * np.sqrt(true / draws)
        bound = exceedance(level, np.full(19, rho), dof)
        assert true - error <= bound <= 1.5 * true + error


def test_identical_neighbours_cost_nothing_and_independent_ones_full_price():
    one = 2 * stats.norm.sf(2.5)
    dof = np.full(5, MANY)
    assert exceedance(2.5, np.ones(4), dof) == pytest.approx(one, rel=1e-9)
    assert exceedance(2.5, np.zeros(4), dof) == pytest.approx(one + 4 * one * (1 - one), rel=1e-6)


def test_few_degrees_of_freedom_cross_more_often():
    rho = np.full(9, 0.9)
    assert exceedance(2.5, rho, np.full(10, 9.0)) > 1.05 * exceedance(2.5, rho, np.full(10, MANY))


def test_critical_score_inverts_the_bound():
    rho, dof = np.full(9, 0.8), np.full(10, 15.0)
    level = critical_score(0.003, rho, dof)
    assert exceedance(level, rho, dof) == pytest.approx(0.003, rel=1e-6)


def test_normal_score_keeps_the_tail_probability():
    t, dof = np.array([0.5, -3.0, 8.0]), np.array([4.0, 9.0, 9.0])
    score = normal_score(t, dof)
    assert stats.norm.sf(score) == pytest.approx(stats.t.sf(np.abs(t), dof), rel=1e-9)
