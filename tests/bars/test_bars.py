"""A few random cases of every kind lie within their bars, and the references stand on their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from tests.bars.averages import law_averages, learning_and_power
from tests.bars.campaign import Outcome, compared, good, outcomes, table_of
from tests.bars.cases import Case
from tests.bars.functions import Function
from tests.bars.laws import (
    LawOf,
    arcsine,
    bernoulli_gaussian,
    beta,
    chi2,
    laplace,
    rademacher,
    student,
    uniform,
)
from tests.bars.passages import scaled_time
from tests.bars.paths import StepSize, overlap_table, reference_path

CUBE = Function("x**3", lambda x: x**3)
SIGN = Function("sign(x)", np.sign, (0.0,))


def cubic_moments(law: LawOf) -> tuple[float, float]:
    """Fourth and sixth moments, by hand."""
    known = {"uniform": (9 / 5, 27 / 7), "laplace": (6.0, 90.0), "rademacher": (1.0, 1.0)}
    return known[law.spec]


@pytest.mark.parametrize("law", [uniform(), laplace(), rademacher()], ids=lambda law: law.spec)
@pytest.mark.parametrize("q", [0.03, -0.6, 0.97])
def test_averages_of_a_cubic(law, q):
    m4, m6 = cubic_moments(law)
    (learning, power), error = learning_and_power(CUBE, law, q)
    assert learning == pytest.approx((1 - q * q) * (m4 - 3) * q**3, abs=1e-14)
    closed = 15 + 15 * q**4 * (1 - q * q) * (m4 - 3) + q**6 * (m6 - 15)
    assert power == pytest.approx(closed, rel=2e-14)
    assert np.all(error < 1e-12)


@pytest.mark.parametrize("q", [0.1, -0.8, 0.99])
def test_averages_of_a_jump(q):
    """<c sign(u)> - Q <2 delta(u)>, with the density of u at 0 in closed form for two atoms."""
    s = math.sqrt(1 - q * q)
    (learning, power), _ = learning_and_power(SIGN, rademacher(), q)
    at_zero = math.exp(-((q / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
    closed = (1 - q * q) * (math.erf(q / s / math.sqrt(2)) - 2 * q * at_zero)
    assert learning == pytest.approx(closed, abs=2e-16)
    assert power == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("law", [uniform(), student(4.9), chi2(0.8), beta(0.46, 1.93)])
def test_laws_are_standardised_to_rounding(law):
    found = law_averages(law, lambda c: [np.ones_like(c), c, c * c])
    np.testing.assert_allclose(found, [1, 0, 1], atol=1e-15)


@pytest.mark.parametrize("law", [arcsine(), chi2(1.3), bernoulli_gaussian(0.2)])
def test_laws_have_their_moments(law):
    """f = x**2 sees mean, variance, and the third and fourth cumulants that are written down."""
    square = Function("x**2", lambda x: x * x)
    (learning, power), _ = learning_and_power(square, law, 0.7)
    assert learning == pytest.approx((1 - 0.49) * 0.49 * law.kappa3, abs=1e-13)
    assert power == pytest.approx(3 + 0.7**4 * law.kappa4, rel=1e-13)


def test_an_exponential_decay():
    """Of a normal source nothing is learned, and Q falls as exp(-tau**2 P t/2)."""
    table = overlap_table(SIGN, bernoulli_gaussian(1.0))
    step = StepSize("0.4/(1 + t)", lambda t: 0.4 / (1 + t))
    times = np.array([0.5, 4.0])
    found, known = reference_path(table, step, -0.8, times)
    np.testing.assert_allclose(found, -0.8 * np.exp(-0.08 * times / (1 + times)), rtol=2e-13)
    assert np.all(known < 1e-12)


def test_a_scaled_time_of_a_low_barrier():
    """By nested adaptive quadrature, the tail from y = 10 on being 1/(2 b) in closed form."""
    g = 0.4

    def inner(y: float) -> float:
        def before(v: float) -> float:
            return math.exp(v * (2 * y - v) / 2 * (1 - g * ((y - v) ** 2 + y * y)))

        return quad(before, 0, y, points=[min(y / 2, 1 / (1 + y**3)), y / 2], epsabs=1e-13)[0]

    tail = -math.log1p(-1 / (2 * g * 10**2))
    mean = 2 * quad(inner, 0, 10, points=[1, 3], epsabs=1e-10)[0] + tail
    assert scaled_time(g) == pytest.approx(mean, rel=2e-6)


@pytest.mark.parametrize(
    ("kind", "cases", "seed"),
    [
        ("limit", 3, 36),
        ("limit", 3, 53),
        ("critical", 1, 56),
        ("critical", 1, 4),
        ("fixed_points", 3, 21),
        ("escape", 2, 3),
        ("hebbian", 2, 3),
    ],
)
def test_bars_hold(kind, cases, seed):
    found = list(outcomes(kind, cases, seed))
    assert good(found), table_of(found)
    assert any(math.isfinite(one.bar) for one in found)


def test_a_bar_that_is_too_small_is_seen():
    case = Case("limit", "OnlineICA", {"tau": 0.1})
    held = compared("limit", case, [1.0, 2.0], [1e-3, 1e-3], [1.0, 2.0009], 0.0)
    beyond = compared("limit", case, [1.0, 2.0], [1e-3, 1e-3], [1.0, 2.002], 0.0)
    lost = compared("limit", case, [1.0, 2.0], [1e-3, 1e-3], [1.0, 2.004], 0.0)
    nothing = compared("limit", case, [1.0, math.nan], [1e-3, 1e-3], [1.0, 2.0], 0.0)
    assert good([held])
    assert good([held] * 99 + [beyond])
    assert not good([held] * 98 + [beyond])
    assert not good([held] * 999 + [lost])
    assert not good([held] * 999 + [nothing])
    assert not good([held] * 999 + [Outcome("critical", "", wrong="missing one")])
    assert case.line() == "hdica.limit(hdica.OnlineICA(tau=0.1))"
