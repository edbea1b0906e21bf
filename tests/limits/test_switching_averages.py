"""Averages of functions that switch, against SciPy's quadrature between kinks, jumps by hand."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import averages, gain_at, power_at

SOURCES = {
    "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)),
    "laplace": stats.laplace(scale=1 / math.sqrt(2)),
}
MCP = "where(abs(x) < 1.2, 0.4*sign(x) - x/3, 0)"
STEP = "where(x > 0.3, x**2, -1 if x < -0.7 else x)"
CASES = [
    (MCP, lambda u: 0.4 * np.sign(u) - u / 3 if abs(u) < 1.2 else 0.0, [-1.2, 0.0, 1.2]),
    ("max(x, 0)", lambda u: max(u, 0.0), [0.0]),
    (
        "0.4*sign(x) if abs(x) <= 0.4 else max(1.48 - abs(x), 0)/2.7*sign(x)",
        lambda u: np.sign(u) * (0.4 if abs(u) <= 0.4 else max(1.48 - abs(u), 0) / 2.7),
        [-1.48, -0.4, 0.0, 0.4, 1.48],
    ),
    (STEP, lambda u: u * u if u > 0.3 else -1.0 if u < -0.7 else u, [-0.7, 0.3]),
    (
        "where(tanh(x) > 0.3, x, 0)",
        lambda u: u if math.tanh(u) > 0.3 else 0.0,
        [math.atanh(0.3)],
    ),
]


def _smoothed(f, kinks, q, order):
    """E f(c q + e s) and its derivatives in c q, of a normal e: f smoothed by a normal density."""
    s = math.sqrt(1 - q * q)

    def at(c):
        def integrand(e):
            # The smoothed function has derivatives that f itself need not have.
            return f(c * q + e * s) * (e / s) ** order * math.exp(-e * e / 2)

        ends = [-12.0, *sorted((k - c * q) / s for k in kinks), 12.0]
        ends = [e for e in ends if -12 <= e <= 12]
        parts = (
            integrate.fixed_quad(np.vectorize(integrand), low, high, n=60)[0]
            for low, high in pairwise(ends)
        )
        return sum(parts) / math.sqrt(2 * math.pi)

    return at


def _over(source, function):
    law = SOURCES[source]
    reach = math.sqrt(3) if source == "uniform" else 26.0
    cuts = [0.0] if source == "uniform" else [-6.0, -2.0, 0.0, 2.0, 6.0]
    ends = [-reach, *cuts, reach]
    return sum(
        integrate.fixed_quad(np.vectorize(lambda c: law.pdf(c) * function(c)), low, high, n=40)[0]
        for low, high in pairwise(ends)
    )


def _by_hand(f, kinks, source, q):
    mean, slope = _smoothed(f, kinks, q, 0), _smoothed(f, kinks, q, 1)
    gain = _over(source, lambda c: c * mean(c) - q * slope(c))
    return gain, _over(source, _smoothed(lambda u: f(u) ** 2, kinks, q, 0))


@pytest.mark.parametrize(("text", "plain", "kinks"), CASES)
@pytest.mark.parametrize(("source", "q"), [("uniform", 0.6), ("laplace", -0.35)])
def test_averages_of_functions_that_switch(text, plain, kinks, source, q):
    f, law = parse_formula(text), make_source(source)
    gain, power = _by_hand(plain, kinks, source, q)
    found = gain_at(f, law, q), power_at(f, law, q)
    assert found[0][0] == pytest.approx(gain, abs=2e-10)
    assert found[1][0] == pytest.approx(power, abs=2e-10)
    assert max(found[0][1], found[1][1]) < 1e-9
    whole = averages(f, law)
    assert float(whole.gain(np.array([q]))[0]) == pytest.approx(gain, abs=1e-8)
    assert float(whole.power(np.array([q]))[0]) == pytest.approx(power, abs=1e-8)


def test_a_kink_that_is_not_known_is_seen_in_the_average():
    f, law = parse_formula(STEP), make_source("uniform")
    blind = Formula("blind", f.expression, f.symbol)
    blind.__dict__["kinks"] = ()  # what the quadrature would take, were no switch found
    gain, _ = _by_hand(CASES[3][1], CASES[3][2], "uniform", 0.6)
    assert abs(gain_at(f, law, 0.6)[0] - gain) < 2e-10
    assert abs(gain_at(blind, law, 0.6)[0] - gain) > 5e-3
