"""Samples of online tensorial ICA: bit for bit those of the kernels, and of the stated laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest, laplace
from scipy.stats import uniform as uniform_law

from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.kernels import (
    FROM_ARRAY,
    LAPLACE,
    RADEMACHER,
    UNIFORM,
    tensorial_steps,
)
from hdica.systems.tensorial_ica.rule import Lanes, block_of, draws, kind_of
from tests.systems.tensorial_ica.cases import SOURCES, rule_of, stream_of

LAWS = {
    "uniform": uniform_law(-math.sqrt(3), 2 * math.sqrt(3)),
    "laplace": laplace(scale=math.sqrt(0.5)),
}


def sampled(source, count, d, seed=0):
    return draws(make_source(source), d, stream_of(seed)("source"))(count)


@pytest.mark.parametrize("d", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_portions_do_not_change_a_number(source, d):
    whole = sampled(source, 2500, d)
    assert whole.shape == (2500, d)
    assert whole.dtype == float
    draw = draws(make_source(source), d, stream_of(0)("source"))
    parts = [draw(count) for count in (0, 1, 2, 497, 1, 1999)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("d", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("source", ["uniform", "laplace"])
def test_numbers_are_those_of_the_kernel_bit_for_bit(source, d):
    seeds = range(5)
    lanes = Lanes([rule_of(source, d)] * 5, [stream_of(k) for k in seeds])
    expected = [sampled(source, 3, d, k) for k in seeds]
    for step in range(3):
        lanes.advance(np.array([[1e-3]]), step, 1)
        room = lanes.z[: 8 * d].reshape(d, 8)
        for k in seeds:
            assert room[:, k].tobytes() == expected[k][step].tobytes()


@pytest.mark.parametrize("d", [1, 7, 63, 64, 65, 200])
def test_signs_are_those_of_the_kernel(d):
    """A step adds the signs, all with one weight."""
    seeds = range(5)
    rule = rule_of("rademacher", d, start=lambda rng: np.eye(d)[0])
    lanes = Lanes([rule] * 5, [stream_of(k) for k in seeds])
    made, eta = np.empty(8, dtype=np.int64), np.full((1, 1), 0.01)
    arrays = (lanes.x, lanes.z, lanes.words, lanes.law)
    for step in range(3):
        before = lanes.x.copy()
        tensorial_steps(RADEMACHER, lanes.generators, *arrays, eta, (step, 1), made)
        for k in seeds:
            moved = lanes.x[:, k] - before[:, k]
            z = sampled("rademacher", 3, d, k)[step]
            assert np.sign(moved / moved[0]).tolist() == (z / z[0]).tolist()


def test_signs_are_bits_of_numpy_s_words_from_the_highest_on():
    words = [int(w) for w in stream_of(3)("source").bit_generator.random_raw(6)]
    z = sampled("rademacher", 3, 70, 3)
    for step in range(3):
        bits = f"{words[2 * step]:064b}{words[2 * step + 1]:064b}"[:70]
        assert z[step].tolist() == [-1.0 if bit == "1" else 1.0 for bit in bits]


def test_other_numbers_are_inverse_distributions_of_numpy_s_words():
    words = stream_of(3)("source").bit_generator.random_raw(4000)
    u = ((words & np.uint64(2**52 - 1)).astype(float) + 0.5) / 2.0**52
    z = sampled("uniform", 1000, 4, 3).ravel()
    assert np.max(np.abs(z - math.sqrt(3) * (2 * u - 1))) < 1e-15
    z = sampled("laplace", 1000, 4, 3).ravel()
    expected = -np.log(u) * math.sqrt(0.5) * np.where(words >> np.uint64(63), -1.0, 1.0)
    np.testing.assert_allclose(z, expected, rtol=1e-10)


@pytest.mark.parametrize("source", LAWS)
def test_numbers_have_their_law(source):
    z = sampled(source, 50_000, 8)
    assert kstest(z.ravel(), LAWS[source].cdf).pvalue > 1e-3
    assert (
        ks_2samp(z.ravel(), make_source(source).sample(np.random.default_rng(1), z.size)).pvalue
        > 1e-3
    )


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_moments_are_those_of_the_source(source):
    z, law = sampled(source, 40_000, 10), make_source(source)
    highest = 4 if isinstance(source, dict) else 6
    for k in range(1, highest + 1):
        exact, square = law.moment(k), law.moment(2 * k)
        error = math.sqrt((square - exact**2) / z.size)
        assert abs(np.mean(z**k) - exact) <= 4.5 * error + 1e-12, k


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_coordinates_steps_and_seeds_are_independent(source):
    d, count = 70, 4000
    z = sampled(source, count, d)
    bound = 4.5 / math.sqrt(count * (d - 1))
    for gap in (1, 2, 8, 63, 64):
        pairs = z[:, :-gap] * z[:, gap:]
        assert abs(np.mean(pairs)) < 4.5 / math.sqrt(pairs.size), gap
    for later in (1, 2, 16):
        assert abs(np.mean(z[:-later] * z[later:])) < bound, later
    assert abs(np.mean(z * sampled(source, count, d, 1))) < bound


def test_a_source_of_a_known_name_that_draws_otherwise_is_asked_itself():
    known = {"rademacher": RADEMACHER, "uniform": UNIFORM, "laplace": LAPLACE}
    for name, kind in known.items():
        assert kind_of(make_source(name)) == kind
        assert kind_of(replace(make_source(name))) == FROM_ARRAY
    assert kind_of(make_source({"student": 5})) == FROM_ARRAY


def test_blocks_depend_on_the_dimension_alone():
    assert [block_of(d) for d in (1, 16, 17, 1000, 10**5)] == [1024, 1024, 963, 16, 1]
