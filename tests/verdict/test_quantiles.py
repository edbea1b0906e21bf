"""Quantiles and first passages: known cases, and coverage over random ones."""

import math

import numpy as np
import pytest
from scipy import stats

from hdica.verdict.resample import quantile, share_interval
from hdica.verdict.survival import first_below

LAWS = (stats.expon(), stats.lognorm(1.2), stats.uniform(-1, 2), stats.t(2))
CASES = 1500


def cases(rng):
    """Random laws, numbers of runs and shares, each with a draw in order."""
    for _ in range(CASES):
        law, many = LAWS[rng.integers(len(LAWS))], int(rng.integers(6, 120))
        share = float(rng.choice([0.05, 0.25, 0.5, 0.75, 0.95]))
        yield law, share, np.sort(law.rvs(many, random_state=rng))


def covered(wrong=0.0):
    """Share of intervals with the true quantile inside, and what they should cover at least."""
    hits = []
    for law, share, values in cases(np.random.default_rng(1)):
        found = quantile(values, share)
        hits.append(found.low <= law.ppf(min(share + wrong, 0.999)) <= found.high)
    return float(np.mean(hits))


def test_intervals_of_quantiles_cover_whatever_the_law():
    rate, error = covered(), math.sqrt(0.95 * 0.05 / CASES)
    assert 0.95 - 3 * error < rate < 0.99  # ranks are whole numbers: some cover more


def test_intervals_of_another_quantile_do_not_cover():
    assert covered(wrong=0.2) < 0.7


def test_errors_of_medians_are_as_large_as_medians_scatter():
    rng, many = np.random.default_rng(2), 40
    z = []
    for _ in range(600):
        found = quantile(np.sort(rng.exponential(size=many)), 0.5)
        z.append((found.value - math.log(2)) / found.error)
    # The error is a spacing of order statistics, itself known to a fifth: scores have wide tails.
    assert 0.85 < np.std(z) < 1.25
    assert abs(np.mean(z)) < 0.3


def test_a_quantile_by_hand():
    values = np.arange(1.0, 21.0)
    found = quantile(values, 0.5)
    assert float(found.value) == 10.5
    assert (float(found.low), float(found.high)) == (6.0, 15.0)  # Thompson's table
    reach = stats.norm.isf(stats.binom(20, 0.5).cdf(5))
    assert float(found.error) == pytest.approx(9 / (2 * reach))
    assert float(quantile(values, 0.25).value) == 5.5
    assert float(quantile(np.arange(1.0, 12.0), 0.5).value) == 6.0


def test_runs_that_never_arrive_are_above_all_others():
    values = np.concatenate([np.arange(1.0, 13.0), np.full(8, math.inf)])
    full = np.arange(1.0, 21.0)
    for share in (0.25, 0.5):
        assert float(quantile(values, share).value) == float(quantile(full, share).value)
    found = quantile(values, 0.5)
    assert float(found.low) == 6.0
    assert math.isinf(found.high)
    assert math.isnan(found.error)
    assert math.isinf(quantile(values, 0.75).value)
    assert math.isnan(quantile(np.full(20, math.inf), 0.5).error)


def test_few_or_no_runs_bound_nothing():
    found = quantile(np.array([1.0, 2.0]), 0.5)
    assert (float(found.value), float(found.low), float(found.high)) == (1.5, -math.inf, math.inf)
    assert np.isnan(quantile(np.zeros((0, 4)), 0.5).value).all()


def test_quantiles_of_many_times_are_those_of_each():
    values = np.sort(np.random.default_rng(3).random((30, 5)), axis=0)
    found = quantile(values, 0.25)
    for k in range(5):
        one = quantile(values[:, k], 0.25)
        for name in ("value", "low", "high", "error"):
            assert getattr(found, name)[k] == getattr(one, name)


def test_intervals_of_shares_are_exact():
    low, high = share_interval(np.array([0.0, 3.0, 10.0, np.nan]), 10)
    exact = stats.binomtest(3, 10).proportion_ci(method="exact")
    assert (low[1], high[1]) == pytest.approx((exact.low, exact.high))
    assert (low[0], high[2]) == (0.0, 1.0)
    assert high[0] == pytest.approx(1 - 0.025**0.1)
    assert np.isnan([low[3], high[3]]).all()


def test_first_passages_of_exponential_curves_are_exact():
    time = np.array([0.0, 1.0, 4.0, 5.0])
    values = np.exp(-np.outer([0.5, 1.0, 0.01], time))
    found = first_below(time, values, 0.1)
    assert found[:2] == pytest.approx(math.log(10) / np.array([0.5, 1.0]))
    assert found[2] == math.inf


def test_first_passages_at_the_start_of_what_returns_and_of_what_is_not_known():
    time = np.arange(4.0)
    values = np.array([[0.1, 5, 5, 5], [4, 1, 4, 1], [4, np.nan, 1, 1], [3, 1, 0, 0]])
    found = first_below(time, values, 2.0)
    assert found[:2].tolist() == [0.0, 0.5]
    assert math.isnan(found[2])
    assert found[3] == pytest.approx(math.log(1.5) / math.log(3))
    assert first_below(time, values, 0.5)[3] == pytest.approx(1.5)  # straight, for a 0 has no log
    assert first_below(time, np.array([3.0, -1.0, 0, 0]), 0.0) == pytest.approx(0.75)
