"""Gabor functions are found again; waves, noise and colour leave what they must."""

import math

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.systems.patch_ica.patches import fitted_gabor, residuals


def gabor(width, frequency, direction, sizes, middle, phase):
    """A Gabor function of known parameters, shape (width, width)."""
    row, column = np.indices((width, width)) - np.reshape(middle, (2, 1, 1))
    along = math.cos(direction) * row + math.sin(direction) * column
    across = math.cos(direction) * column - math.sin(direction) * row
    envelope = np.exp(-0.5 * (along / sizes[0]) ** 2 - 0.5 * (across / sizes[1]) ** 2)
    return envelope * np.cos(2 * math.pi * frequency * along + phase)


@pytest.mark.parametrize("seed", range(8))
def test_a_gabor_function_is_found(seed):
    rng = np.random.default_rng(seed)
    frequency, direction = rng.uniform(0.08, 0.35), rng.uniform(0.1, 3.0)
    sizes, middle = rng.uniform(1.5, 3, 2), rng.uniform(4, 11, 2)
    picture = 7.0 * gabor(16, frequency, direction, sizes, middle, rng.uniform(0, 6))
    found = fitted_gabor(picture)
    assert found.residual < 1e-5
    assert found.frequency == pytest.approx(frequency, abs=1e-5)
    turn = (found.orientation - direction) % math.pi
    assert min(turn, math.pi - turn) < 1e-4
    assert found.pixels == pytest.approx(picture, abs=1e-4)


def test_what_is_left_of_a_noisy_one_is_the_noise():
    rng = np.random.default_rng(3)
    clean = gabor(16, 0.15, 0.7, (2.5, 3.0), (7.0, 8.5), 0.4)
    noise = rng.standard_normal((16, 16))
    noise *= 0.3 * np.linalg.norm(clean) / np.linalg.norm(noise)
    found = fitted_gabor(clean + noise)
    # A fit of 8 numbers to 256 takes about 8/256 of the noise's power.
    expected = 0.3 / math.sqrt(1.09) * math.sqrt(1 - 8 / 256)
    assert found.residual == pytest.approx(expected, rel=0.03)


def test_noise_is_no_gabor_function_and_a_fit_is_never_worse_than_nothing():
    rng = np.random.default_rng(0)
    left, frequency, orientation = residuals(rng.standard_normal((4, 12, 12)))
    assert np.all((left > 0.8) & (left < 1))
    assert np.all((frequency >= 0) & (frequency <= 0.5))
    assert np.all((orientation >= 0) & (orientation < math.pi))


def test_channels_share_all_but_their_amplitudes():
    one = gabor(10, 0.2, 1.2, (1.8, 2.2), (4.0, 5.0), 0.0)
    other = gabor(10, 0.2, 1.2, (1.8, 2.2), (4.0, 5.0), 1.0)
    assert fitted_gabor(np.stack([one, -0.5 * other, 0 * one], axis=-1)).residual < 1e-5
    turned = np.stack([one, one.T, 0 * one], axis=-1)
    assert fitted_gabor(turned).residual > 0.3


def test_size_and_sign_do_not_matter():
    picture = gabor(9, 0.2, 0.5, (2, 2), (4, 4), 0.3) + 0.1 * np.eye(9)
    first, second = fitted_gabor(picture), fitted_gabor(-1e6 * picture)
    assert second.residual == pytest.approx(first.residual, rel=1e-9)


@pytest.mark.parametrize("picture", [np.zeros((4, 4)), np.full((3, 3), np.nan), np.ones(5)])
def test_what_is_no_picture_is_refused(picture):
    with pytest.raises(HdicaError, match="rows by columns, finite and not zero"):
        fitted_gabor(picture)
