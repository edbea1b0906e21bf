"""The lanes' raw stream against NumPy's, and the law of the normal numbers made of it."""

import math

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from hdica.finite.random.gaussian import fill_words, lanes_of, normal_pair
from hdica.finite.random.lanes import load, pointer, store
from hdica.finite.random.streams import normal_numbers, point_stream, side_by_side
from tests.reference import LaneNormals, lane_generators

LEVEL = 1e-4
COUNT = 4 * 10**7
PART = 2**20
EDGES = np.array([-np.inf, -6.0, -5.5, -5.0, -4.0, -3.0, 3.0, 4.0, 5.0, 5.5, 6.0, np.inf])


def generator(seed=0):
    return point_stream({"test": "gaussian"}, "lanes", 1, seed, "noise")


def numbers(count, seed=0):
    return normal_numbers(generator(seed))(count)


def test_every_lane_is_numpy_s_sfc64_bit_for_bit():
    state, words = lanes_of(generator()), np.empty(8 * 5000, dtype=np.uint64)
    fill_words(state, words)
    for lane, reference in enumerate(lane_generators(generator())):
        assert np.array_equal(words[lane::8], reference.random_raw(5000))


def test_the_first_lane_is_the_generator_that_the_others_stand_beside():
    words = np.empty(8 * 100, dtype=np.uint64)
    fill_words(lanes_of(generator()), words)
    assert np.array_equal(words[::8], generator().bit_generator.random_raw(100))


def test_generators_side_by_side_keep_their_own_streams():
    for count in (1, 3, 8):
        state = side_by_side([generator(seed) for seed in range(count)])
        words = np.empty(8 * 50, dtype=np.uint64)
        fill_words(state, words)
        for lane in range(8):
            own = generator(lane if lane < count else 0).bit_generator.random_raw(50)
            assert np.array_equal(words[lane::8], own)


def test_a_stream_goes_on_where_it_stopped():
    whole, parts = np.empty(8 * 30, dtype=np.uint64), np.empty(8 * 30, dtype=np.uint64)
    fill_words(lanes_of(generator()), whole)
    state = lanes_of(generator())
    fill_words(state, parts[: 8 * 7])
    fill_words(state, parts[8 * 7 :])
    assert np.array_equal(whole, parts)


def test_normal_numbers_are_those_of_exact_functions():
    got, expected = numbers(200_000), LaneNormals(generator()).standard_normal(200_000)
    assert np.max(np.abs(got - expected)) < 3e-10


def test_the_ends_of_the_uniform_numbers_give_finite_normal_ones():
    # Words of zeros and of ones: the smallest and the largest uniform number, at both places.
    @numba.njit
    def pairs(first, second, out):
        one, other = normal_pair(load(pointer(first), 0), load(pointer(second), 0))
        store(pointer(out), 0, one)
        store(pointer(out), 8, other)

    low, high = np.zeros(8, dtype=np.uint64), np.full(8, 2**64 - 1, dtype=np.uint64)
    largest = math.sqrt(-2 * math.log(2.0**-53))
    for first, radius in ((low, largest), (high, math.sqrt(-2 * math.log1p(-(2.0**-53))))):
        for second in (low, high):
            out = np.empty(16)
            pairs(first, second, out)
            assert np.abs(out[:8]) == pytest.approx(radius, rel=1e-10)
            assert np.max(np.abs(out[8:])) < 1e-10


class Anderson:
    """Sum of Anderson and Darling's statistic over a sorted sample, a part at a time."""

    def __init__(self, count):
        self.count, self.sum = count, 0.0

    def add(self, first, ordered):
        weights = 2 * np.arange(first, first + ordered.size) + 1.0
        self.sum += float(np.sum(weights * log_ndtr(ordered)))
        self.sum += float(np.sum((2 * self.count - weights) * log_ndtr(-ordered)))

    @property
    def pvalue(self):
        return 1 - anderson_darling_limit(-self.count - self.sum / self.count)


def anderson_darling_limit(z):
    """Limiting distribution function of the statistic (Marsaglia and Marsaglia 2004, adinf)."""
    if z < 2:
        coefficients = (2.00012, 0.247105, -0.0649821, 0.0347962, -0.0116720, 0.00168691)
        return (
            z**-0.5 * math.exp(-1.2337141 / z) * np.polynomial.polynomial.polyval(z, coefficients)
        )
    coefficients = (1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146)
    return math.exp(-math.exp(np.polynomial.polynomial.polyval(z, coefficients)))


@pytest.fixture(scope="module")
def sample():
    draw = normal_numbers(generator(1))
    return np.concatenate([draw(PART) for _ in range(COUNT // PART + 1)])[:COUNT]


@pytest.mark.deep
def test_moments_to_eighth_order(sample):
    sums = np.zeros(8)
    for part in np.array_split(sample, COUNT // PART):
        power = np.ones(part.size)
        for k in range(8):
            power *= part
            sums[k] += np.sum(power)
    exact = [math.prod(range(k - 1, 0, -2)) if k % 2 == 0 else 0 for k in range(17)]
    for k in range(1, 9):
        error = math.sqrt((exact[2 * k] - exact[k] ** 2) / COUNT)
        assert abs(sums[k - 1] / COUNT - exact[k]) < 4 * error, k


@pytest.mark.deep
def test_tails_beyond_five_sigma(sample):
    counts, _ = np.histogram(sample, EDGES)
    expected = COUNT * np.diff(ndtr(EDGES))
    for seen, mean in zip(counts, expected, strict=True):
        assert stats.binomtest(int(seen), COUNT, mean / COUNT).pvalue > LEVEL


@pytest.mark.deep
def test_kolmogorov_smirnov_and_anderson_darling(sample):
    ordered, worst, anderson = np.sort(sample), 0.0, Anderson(COUNT)
    for first in range(0, COUNT, PART):
        part = ordered[first : first + PART]
        p = ndtr(part)
        below = np.arange(first, first + part.size) / COUNT
        worst = max(worst, float(np.max(p - below)), float(np.max(below + 1 / COUNT - p)))
        anderson.add(first, part)
    assert stats.kstwobign.sf(worst * math.sqrt(COUNT)) > LEVEL
    assert anderson.pvalue > LEVEL


def test_anderson_darling_notices_a_scale_that_is_two_thousandths_off():
    # Negative control, on 10^7 numbers.
    ordered = np.sort(1.002 * numbers(10**7, seed=2))
    anderson = Anderson(ordered.size)
    anderson.add(0, ordered)
    assert anderson.pvalue < LEVEL
    assert anderson_darling_limit(2.492) == pytest.approx(0.95, abs=1e-4)
    assert anderson_darling_limit(1.933) == pytest.approx(0.90, abs=1e-4)


@pytest.mark.parametrize("power", [1, 2])
def test_lags_pairs_and_lanes_are_uncorrelated(power):
    # Lag 8 joins the two numbers of a pair, lags below it the lanes, lag 16 one lane to itself.
    z = numbers(2**22, seed=3) ** power
    z = (z - z.mean()) / z.std()
    lags = [*range(1, 40), 64, 127, 128, 1000, 1024]
    scores = np.array([np.sum(z[lag:] * z[:-lag]) / math.sqrt(z.size - lag) for lag in lags])
    assert np.max(np.abs(scores)) < stats.norm.isf(LEVEL / 2 / len(lags))


def test_lanes_are_independent_in_rank():
    z = numbers(2**20, seed=4).reshape(-1, 2, 8)
    for pair in range(2):
        cells = (ndtr(z[:, pair]) * 8).astype(int)
        for one in range(8):
            for other in range(one):
                table = np.bincount(8 * cells[:, one] + cells[:, other], minlength=64).reshape(8, 8)
                assert stats.chi2_contingency(table).pvalue > LEVEL / 28


def test_the_two_numbers_of_a_pair_are_independent():
    z = numbers(2**22, seed=5).reshape(-1, 2, 8)
    cells = (ndtr(z) * 16).astype(int)
    table = np.bincount((16 * cells[:, 0] + cells[:, 1]).ravel(), minlength=256).reshape(16, 16)
    assert stats.chi2_contingency(table).pvalue > LEVEL


def test_streams_of_other_points_share_nothing():
    words = np.concatenate([numbers(4096, seed=seed) for seed in range(20)])
    assert np.unique(words).size == words.size
