"""Noise of the C kernel: Box-Muller on a published generator, right to the stated error."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest, norm

from benchmarks.harness import missing

if missing("gcc"):
    pytest.skip(missing("gcc"), allow_module_level=True)

from benchmarks.rivals.c_vector import BLOCK, LANES, Noise, library, normals

Words = NDArray[np.uint64]
HALF = BLOCK // 2


def rotated(word: Words, by: int) -> Words:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


def xoshiro(state: Words, count: int) -> Words:
    """Shape (count, lanes): numbers of xoshiro256++ for a state of shape (4, lanes)."""
    a, b, c, d = (row.copy() for row in state)
    drawn = np.empty((count, a.size), np.uint64)
    for row in drawn:
        row[:] = rotated(a + d, 23) + a
        t = b << np.uint64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = rotated(d, 45)
    return drawn


def expected(seed: int, blocks: int, noise: Noise) -> NDArray[np.float64]:
    """The same numbers from NumPy's functions."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 2**64, 4 * LANES, dtype=np.uint64).reshape(4, LANES)
    if noise == "float64":
        first, second = np.split(xoshiro(state, blocks * HALF // 8), 2, axis=1)
        uniform = 1 - (first >> np.uint64(12)) * 2.0**-52
        turn = (second >> np.uint64(12)) * 2.0**-51 - 1
    else:
        words = xoshiro(state, blocks * HALF // 16).view(np.uint32)
        first, second = np.split(words, 2, axis=1)
        uniform = (first + 0.5) * 2.0**-32
        turn = second.view(np.int32) * 2.0**-31
    sign = 1 - 2 * (second & second.dtype.type(1)).astype(float)
    radius = sign * np.sqrt(-2 * np.log(uniform))
    angle = math.pi / 2 * turn
    pair = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    return pair.reshape(2, blocks, HALF).transpose(1, 0, 2).ravel()


def test_reference_generator_gives_the_published_numbers() -> None:
    # First numbers of xoshiro256++ from the state (1, 2, 3, 4).
    state = np.array([[1], [2], [3], [4]], np.uint64)
    known = [41943041, 58720359, 3588806011781223, 3591011842654386]
    assert xoshiro(state, 4)[:, 0].tolist() == known


@pytest.mark.parametrize(("noise", "error"), [("float64", 5e-10), ("float32", 2e-5)])
def test_numbers_are_box_muller_of_the_generator(noise: Noise, error: float) -> None:
    found = normals(40, np.random.default_rng(3), noise)
    assert found.dtype == noise
    assert np.abs(found - expected(3, 40, noise)).max() < error


@pytest.mark.parametrize("noise", ["float64", "float32"])
def test_numbers_are_standard_normal(noise: Noise) -> None:
    z = normals(4000, np.random.default_rng(1), noise).astype(float)
    assert kstest(z[: 2**19], "norm").pvalue > 1e-3
    for k in range(1, 9):
        mean, square = norm.moment(k), norm.moment(2 * k)
        assert abs((z**k).mean() - mean) < 4.5 * math.sqrt((square - mean**2) / z.size), k
    beyond = z.size * 2 * norm.sf(4)
    assert abs((np.abs(z) > 4).sum() - beyond) < 4.5 * math.sqrt(beyond)


@pytest.mark.parametrize("noise", ["float64", "float32"])
def test_numbers_are_independent_of_those_near_and_of_their_pair(noise: Noise) -> None:
    z = normals(2000, np.random.default_rng(2), noise).astype(float)
    for lag in (1, 2, 7, 8, 16, HALF, BLOCK):
        now, later = z[:-lag], z[lag:]
        assert abs((now * later).mean()) < 4.5 / math.sqrt(z.size), lag
        # E (z^2 - 1)(w^2 - 1) = 0 with variance 4.
        assert abs(((now**2 - 1) * (later**2 - 1)).mean()) < 9 / math.sqrt(z.size), lag


def test_loading_the_kernel_leaves_subnormal_numbers_alone() -> None:
    library()
    assert np.array([5e-324]) * np.array([1.0]) > 0
