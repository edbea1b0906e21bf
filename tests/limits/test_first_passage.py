import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import erf, k0e

from hdica.errors import HdicaError
from hdica.limits.numerics import first_passage as module
from hdica.limits.numerics.first_passage import Diffusion, first_passage

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/hebbian_escape.json").read_text())
TABLE = {float(g): row for g, row in GOLDEN["scaled_time"]["table"].items()}
BROWNIAN = Diffusion(lambda x: 0 * x, lambda x: 1 + 0 * x)


def quartic(g):
    return Diffusion(lambda r: r * (g * r * r - 0.5), lambda r: 1 + 0 * r)


def normal(y):
    return erf(y / math.sqrt(2))


def by_bessel(g):
    """F(g) = int exp(A/2) K0(g A^2/2) dA/2, from A = y^2 - z^2, B = y^2 + z^2 in the double one."""

    def integrand(a):
        return 0.5 * math.exp(a / 2 - g * a * a / 2) * k0e(g * a * a / 2)

    top = 1 / (2 * g)
    pieces = [(0, top), (top, math.inf)]
    return sum(quad(integrand, *p, epsabs=0, epsrel=1e-13, limit=400)[0] for p in pieces)


@pytest.mark.parametrize("g", TABLE)
def test_time_to_infinity(g):
    found = first_passage(quartic(g), 0.0, math.inf, 0.0)
    assert found.mean == pytest.approx(TABLE[g]["F0"], rel=2e-6)
    assert found.mean == pytest.approx(by_bessel(g), rel=1e-12)
    assert found.error < 1e-11
    averaged = first_passage(quartic(g), 0.0, math.inf, normal)
    assert averaged.mean == pytest.approx(TABLE[g]["Favg"], rel=1e-5)


@pytest.mark.deep
@pytest.mark.parametrize("g", [1.0, 0.2])
def test_an_averaged_start_against_another_integrator(g):
    def slope(t, z):
        y = math.exp(t)
        return [y * (2 + (y - 2 * g * y**3) * z[0]), y * normal(y) * z[0]]

    begin, end = math.log(1e-9), math.log(1e5)
    with np.errstate(over="ignore"):
        path = solve_ivp(slope, [begin, end], [2e-9, 0], "Radau", rtol=1e-11, atol=1e-16)
    want = path.y[1, -1] + 1 / (2 * g * 1e10)
    found = first_passage(quartic(g), 0.0, math.inf, normal)
    assert found.mean == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("exponent", [0.01, 0.3, 3.0, 30.0, 300.0, 700.0, 5000.0])
def test_any_exponent(exponent):
    g = 1 / (8 * exponent)
    found = first_passage(quartic(g), 0.0, math.inf, 0.0, scale=1 / math.sqrt(2 * g))
    assert found.error < 1e-10
    assert found.barrier == pytest.approx(exponent, rel=1e-6)
    if exponent <= 300:
        assert found.log_mean == pytest.approx(math.log(by_bessel(g)), abs=1e-11)
    if exponent >= 30:
        # Kramers: pi sqrt(2) exp(exponent), with a relative error of 3/(8 exponent).
        kramers = math.log(math.pi * math.sqrt(2)) + exponent
        assert (found.log_mean - kramers) * exponent == pytest.approx(0.375, rel=0.05)
        assert found.cv == pytest.approx(1, abs=1e-9)
    assert math.isfinite(found.mean) == (exponent < 705)


def test_a_free_path_in_closed_form():
    found = first_passage(BROWNIAN, 0.0, 2.0, 0.5)
    assert found.mean == pytest.approx(4 - 0.25, rel=1e-13)
    assert found.sd**2 == pytest.approx(2 / 3 * (16 - 0.5**4), rel=1e-12)
    # Even over [0, 2]: T is averaged over starts.
    even = first_passage(BROWNIAN, 0.0, 2.0, lambda y: y / 2)
    assert even.mean == pytest.approx(4 - 4 / 3, rel=1e-13)


def test_a_variance_that_depends_on_the_place():
    # Geometric Brownian motion dX = b X dt + s X dB from 1, reflected at 1, to high:
    # in y = log X it is Brownian with drift m = b - s^2/2.
    b, s, high = 0.3, 0.5, 4.0
    m, length = b - s * s / 2, math.log(high)
    want = length / m - s * s / (2 * m * m) * (1 - math.exp(-2 * m * length / s**2))
    found = first_passage(Diffusion(lambda x: b * x, lambda x: (s * x) ** 2), 1.0, high, 1.0)
    assert found.mean == pytest.approx(want, rel=1e-12)


def test_errors_fall_with_the_panels_at_the_order_of_radau(monkeypatch):
    monkeypatch.setattr(module, "STAGES", 2)
    exact = by_bessel(0.02)
    gaps, errors = [], []
    for halvings in (1, 2, 3):
        monkeypatch.setattr(module, "_HALVINGS", halvings)
        found = first_passage(quartic(0.02), 0.0, math.inf, 0.0, scale=5.0, tolerance=0.0)
        gaps.append(abs(found.mean / exact - 1))
        errors.append(found.error)
    # 2 STAGES - 1 = 3: a factor of eight.
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(3, abs=0.4)
    assert np.log2(gaps[1] / gaps[2]) == pytest.approx(3, abs=0.4)
    assert all(gap <= error for gap, error in zip(gaps, errors, strict=True))


def test_what_begins_beyond_the_end_takes_no_time():
    assert first_passage(BROWNIAN, 0.0, 1.0, 2.0).mean == 0.0
    half = first_passage(BROWNIAN, 0.0, 1.0, lambda y: 0.5 * (y >= 0))
    assert half.mean == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: first_passage(BROWNIAN, 0.0, math.inf, 0.0), "mean time to infinity is infinite"),
        (
            lambda: first_passage(Diffusion(lambda x: -x, lambda x: 1 + 0 * x), 0.0, 1e3, 0.0),
            "at most 10000 is computed",
        ),
        (lambda: first_passage(BROWNIAN, 1.0, 1.0, 1.0), r"range: \[1.0, 1.0\]"),
        (lambda: first_passage(BROWNIAN, 0.0, 1.0, -0.5), "start: -0.5"),
        (lambda: first_passage(Diffusion(lambda x: x, lambda x: 0 * x), 0.0, 1.0, 0.0), "positive"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(HdicaError, match=words):
        call()
