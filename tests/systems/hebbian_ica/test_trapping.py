import json
import math
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import average, cumulants, mean_derivative
from hdica.systems.hebbian_ica.api import (
    conflict,
    conflict_intervals,
    near_zero,
    restoring,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_escape.json").read_text())
FORMULA = {"cubic": "x**3", "tanh": "tanh(x)"}
CUBIC, TANH = (parse_formula(text) for text in FORMULA.values())


def three_points(p):
    """Zero with probability 1 - p, +-1/sqrt(p) otherwise."""
    return make_source({"discrete": {"values": [-1.0, 0.0, 1.0], "weights": [p / 2, 1 - p, p / 2]}})


@pytest.mark.parametrize("name", GOLDEN["limit"])
def test_coefficients_and_barrier(name):
    source, phi, nu = name.split("_")
    trap, row = near_zero(parse_formula(FORMULA[phi]), make_source(source)), GOLDEN["limit"][name]
    nu = float(nu.removeprefix("nu"))
    assert trap.power == pytest.approx(row["P"], rel=1e-12)
    assert trap.pull == pytest.approx(row["C"], rel=1e-12)
    assert trap.depth(nu) == pytest.approx(row["g"], rel=1e-12)
    assert trap.summit(nu) == pytest.approx(row["rbar"], rel=1e-12)
    assert trap.exponent(nu) == pytest.approx(row["exponent"], rel=1e-12)
    assert trap.kramers(nu) == pytest.approx(row["Kramers"], rel=1e-12)


def test_the_barrier_is_the_maximum_of_the_potential():
    trap, nu = near_zero(TANH, make_source("laplace")), 3.0
    r = np.linspace(0, 2 * trap.summit(nu), 200_001)
    u = trap.potential(nu, r)
    assert r[u.argmax()] == pytest.approx(trap.summit(nu), rel=1e-4)
    assert u.max() == pytest.approx(trap.barrier(nu), rel=1e-8)
    # Kramers' exponent is 2 Delta U/D with the variance rate D = P nu^2; (27) prints half of it.
    assert trap.exponent(nu) == pytest.approx(2 * trap.barrier(nu) / (trap.power * nu**2))
    assert trap.exponent(nu) / 2 == pytest.approx(trap.barrier(nu) / (trap.power * nu**2))


def test_kinks_and_jumps_are_averaged_exactly():
    # By Stein's identity <phi'''> = <(z^3 - 3z) phi>, with E|z| = sqrt(2/pi), E|z|^3 = 2 E|z|.
    root = math.sqrt(2 / math.pi)
    trap = near_zero(parse_formula("x*abs(x)"), make_source("uniform"))
    assert (trap.power, trap.third) == pytest.approx((3.0, 2 * root), rel=1e-12)
    trap = near_zero(parse_formula("sign(x)"), make_source("uniform"))
    assert (trap.power, trap.third) == pytest.approx((1.0, -root), rel=1e-12)


def expansion(phi, source, overlap, terms):
    """<s phi(y)> by the first terms of sum_n kappa_{n+1} R^n/n! <phi^(n)(y)>, (22)."""
    kappa = cumulants(source, terms + 1)
    slopes = [mean_derivative(phi, source, overlap, n)[0] for n in range(terms + 1)]
    orders = range(1, terms + 1)
    return sum(kappa[n + 1] * overlap**n / math.factorial(n) * slopes[n] for n in orders)


@pytest.mark.parametrize("spec", ["uniform", "laplace", {"chi2": 3}])
def test_22_leaves_a_remainder_of_fifth_order(spec):
    source = make_source(spec)
    gaps = []
    for q in (0.05, 0.1):
        exact = average(lambda s, y: s * TANH.value(y), TANH, source, q)[0]
        gaps.append(abs(expansion(TANH, source, q, 3) - exact))
    assert math.log2(gaps[1] / gaps[0]) == pytest.approx(5, abs=0.25)
    assert expansion(CUBIC, source, 0.4, 3) == pytest.approx(
        3 * 0.4 + source.moment(4) * 0.4**3 - 3 * 0.4**3, rel=1e-12
    )


def test_cumulants():
    # chi2(3) standardised: kappa_k = 2^(k-1) (k-1)! 3/6^(k/2).
    kappa = cumulants(make_source({"chi2": 3}), 5)
    want = [2 ** (k - 1) * math.factorial(k - 1) * 3 / 6 ** (k / 2) for k in range(2, 6)]
    assert kappa[2:] == pytest.approx(want, rel=1e-12)


def test_signs_conflict_for_tanh_and_a_three_point_source():
    found = conflict(TANH, three_points(0.36))
    assert found.restoring == pytest.approx(-0.12923, abs=5e-6)
    assert (found.stability, found.escape, found.present) == (-1, 1, True)
    assert "sigma = +1 lets R leave 0" in found.sentence


def test_region_of_conflict():
    ((low, high),) = conflict_intervals(TANH, three_points, 0.1, 0.9)
    assert low == pytest.approx(1 / 3, abs=1e-10)  # kappa4 = 1/p - 3
    # <s tanh s> - <1 - tanh^2 s> in closed form at the upper end.
    a = 1 / math.sqrt(high)
    t = math.tanh(a)
    assert high * a * t - (1 - high) - high * (1 - t * t) == pytest.approx(0, abs=1e-10)
    assert high == pytest.approx(0.47634, abs=5e-6)
    assert conflict_intervals(CUBIC, three_points, 0.1, 0.9) == ()


def test_no_conflict_for_the_cubic_function():
    for spec in ("uniform", "rademacher", "laplace", {"chi2": 4}, {"bernoulli_gaussian": 0.3}):
        found = conflict(CUBIC, make_source(spec))
        assert not found.present
        assert found.restoring == pytest.approx(found.product / 6, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: near_zero(parse_formula("x**2"), make_source({"chi2": 3})), "skewed source"),
        (lambda: near_zero(CUBIC, make_source({"student": 3.5})), "no finite moment of order 4"),
        (lambda: near_zero(parse_formula("0*x"), make_source("uniform")), "vanishes"),
        (lambda: restoring(parse_formula("sign(x)"), make_source("uniform")), "it jumps at 0"),
        (lambda: hdica.conflict_region("x**3", three_points, 0.9, 0.1), "low < high"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(HdicaError, match=words):
        call()
