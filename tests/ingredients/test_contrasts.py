import math

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import NAMED, make_contrast


@pytest.mark.parametrize("name", [*NAMED, "s**6/10 - s", "abs(s)**3"])
def test_slope_and_curvature_are_the_derivatives_of_the_value(name):
    contrast, s, h = make_contrast(name), np.linspace(-3.05, 3.15, 41), 1e-5
    slope = (contrast.value(s + h) - contrast.value(s - h)) / (2 * h)
    curvature = (contrast.slope(s + h) - contrast.slope(s - h)) / (2 * h)
    np.testing.assert_allclose(contrast.slope(s), slope, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(contrast.curvature(s), curvature, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "exp",
            [-0.7071067811865475, 0.35355339059327373, -0.5303300858899107, 1.3258252147247758],
        ),
        ("he4", [0.0, 0.0, 24.0, 0.0]),
        ("kurtosis", [0.0, 12.0, 24.0, 0.0]),
    ],
)
def test_even_hermite_coefficients(name, expected):
    found = [make_contrast(name).hermite(k) for k in (0, 2, 4, 6)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_logcosh_is_finite_and_exact_far_out():
    contrast = make_contrast("logcosh")
    assert contrast.value(np.array([2000.0]))[0] == pytest.approx(2000 - math.log(2))
    assert contrast.curvature(np.array([2000.0]))[0] == 0
    assert contrast.hermite(4) == pytest.approx(-0.363595, abs=1e-6)


def test_a_kink_in_the_curvature_is_met():
    assert make_contrast("abs(s)**3").gaussian_mean == pytest.approx(4 / math.sqrt(2 * math.pi))


def test_a_steep_slope_is_not_a_jump():
    """The slope 3/2 |s|^1/2 sign(s) is continuous, though its own slope is infinite at 0."""
    contrast = make_contrast("abs(s)**1.5")
    assert contrast.slope(np.array([-4.0, 0.0, 4.0])) == pytest.approx([-3.0, 0.0, 3.0])
    mean = 2**0.75 * math.gamma(1.25) / math.sqrt(math.pi)
    assert contrast.gaussian_mean == pytest.approx(mean, rel=1e-8)
    assert make_contrast("abs(s - 2)**1.1").slope(np.array([2.0]))[0] == 0


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("1/s", "s = 0"),
        ("abs(s)", "its slope jumps at s = 0"),
        ("abs(s - 2)*s", "its slope jumps at s = 2"),
        ("s**2 + abs(s)/1000", "its slope jumps at s = 0"),
        ("2*s", "its slope is constant"),
        ("s*q", "q"),
    ],
)
def test_what_is_no_contrast_is_refused(spec, why):
    with pytest.raises(HdicaError, match=why):
        make_contrast(spec)


def test_other_spellings_name_the_same_contrast():
    assert make_contrast("He4") == make_contrast("he4")
