import math

import numpy as np
import pytest
from scipy import stats

from hdica.verdict.survival import (
    EscapeTimes,
    exponential_mean,
    exponential_p,
    judge_escapes,
    restricted_mean,
    survival_curve,
)


def drawn(rng, runs, mean=1.0, end=math.inf, shape=1.0):
    times = mean * rng.weibull(shape, runs) / math.gamma(1 + 1 / shape)
    return EscapeTimes(np.minimum(times, end), times <= end)


SMALL = EscapeTimes(np.array([1.0, 2.0, 2.0, 3.0, 4.0]), np.array([True, True, False, True, False]))


def test_survival_by_hand():
    curve = survival_curve(SMALL)
    assert curve.times.tolist() == [1, 2, 3, 4]
    assert curve.survival == pytest.approx([0.8, 0.6, 0.3, 0.3])
    assert curve.median == 3
    assert survival_curve(EscapeTimes(SMALL.times, SMALL.times < 2)).median == math.inf
    inside = slice(0, 3)
    assert np.all(curve.low[inside] < curve.survival[inside])
    assert np.all(curve.survival[inside] < curve.high[inside])


def test_intervals_of_the_curve_cover_the_law():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(300):
        curve = survival_curve(drawn(rng, 60, end=1.5))
        at = np.searchsorted(curve.times, 0.8, side="right") - 1
        hits += curve.low[at] <= math.exp(-0.8) <= curve.high[at]
    assert 0.91 < hits / 300 < 0.985  # binomial standard error 0.013


@pytest.mark.parametrize(("end", "low", "high"), [(math.inf, 0.93, 0.97), (0.7, 0.925, 0.985)])
def test_the_exponential_mean_has_an_exact_interval(end, low, high):
    rng, found = np.random.default_rng(2), []
    for _ in range(1500):
        found.append(exponential_mean(drawn(rng, 12, mean=2.0, end=2 * end)))
    hits = np.mean([e.low <= 2.0 <= e.high for e in found if e.value < math.inf])
    assert low < hits < high  # standard error 0.006
    if end == math.inf:
        values = np.array([e.value for e in found])
        assert abs(values.mean() - 2) < 4 * values.std() / math.sqrt(1500)


def test_without_an_escape_there_is_a_lower_bound():
    found = exponential_mean(EscapeTimes(np.full(10, 3.0), np.zeros(10, bool)))
    assert (found.value, found.high) == (math.inf, math.inf)
    # exp(-30/low) = 0.025: no escape in 30 is that unlikely.
    assert found.low == pytest.approx(-30 / math.log(0.025), rel=1e-12)


def test_restricted_mean_by_hand():
    found = restricted_mean(SMALL)
    assert found.value == pytest.approx(1 + 0.8 + 0.6 + 0.3)
    terms = 1.7**2 / (5 * 4) + 0.9**2 / (4 * 3) + 0.3**2 / (2 * 1)
    reach = stats.norm.ppf(0.975) * math.sqrt(terms)
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))


def test_restricted_mean_of_complete_data_is_the_plain_mean():
    rng = np.random.default_rng(3)
    times = rng.exponential(1.0, 40)
    found = restricted_mean(EscapeTimes(times, np.ones(40, bool)))
    assert found.value == pytest.approx(times.mean())
    reach = stats.norm.ppf(0.975) * times.std() / math.sqrt(40)
    assert found.high - found.value == pytest.approx(reach, rel=1e-9)


def test_restricted_mean_covers_under_censoring():
    rng, hits = np.random.default_rng(4), 0
    want = 1 - math.exp(-1.2)
    for _ in range(400):
        times = rng.exponential(1.0, 80)
        ends = np.minimum(rng.uniform(0.5, 3.0, 80), 1.2)
        ends[0] = 1.2
        times[0] = max(times[0], 1.3)  # someone is observed until then
        runs = EscapeTimes(np.minimum(times, ends), times <= ends)
        found = restricted_mean(runs)
        hits += found.low <= want <= found.high
    assert 0.9 < hits / 400 < 0.98  # standard error 0.011


@pytest.mark.parametrize("end", [math.inf, 1.0])
def test_exponential_law_is_accepted_at_its_level(end):
    rng = np.random.default_rng(5)
    p = np.array([exponential_p(drawn(rng, 40, end=end)) for _ in range(600)])
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert abs((p < 0.05).mean() - 0.05) < 0.03  # standard error 0.009


@pytest.mark.parametrize("shape", [0.6, 1.8])
def test_other_laws_are_found(shape):
    rng = np.random.default_rng(6)
    p = [exponential_p(drawn(rng, 150, end=2.0, shape=shape)) for _ in range(40)]
    assert np.mean(np.array(p) < 0.01) > 0.9


def test_a_known_law():
    rng = np.random.default_rng(8)
    found = [judge_escapes(drawn(rng, 100, end=0.5), lambda t: t, 0.01) for _ in range(300)]
    assert 0.01 < np.mean(np.array([f.p_value for f in found]) < 0.05) < 0.1
    many = [np.sum(drawn(rng, 100, end=0.5).escaped) for _ in range(300)]
    expected = np.array([f.expected for f in found])
    assert expected.mean() == pytest.approx(np.mean(many), rel=0.02)
    runs = drawn(rng, 400, 0.7)
    faster = judge_escapes(runs, lambda t: t, 0.01)
    assert runs.events == 400 > faster.expected
    assert faster.verdict == "differs"
    assert faster.p_value < 0.001


def test_too_few_escapes_are_not_tested():
    assert math.isnan(exponential_p(SMALL))
