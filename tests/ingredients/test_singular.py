"""Formulas that are infinite or no number somewhere are refused; usual ones never are."""

import math
import time

import pytest

from hdica import HebbianICA, OnlineICA, SparsePCA
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula

REFUSED = {
    "1/x": 0.0,
    "log(abs(x))": 0.0,
    "log(x**2)": 0.0,
    "x**2*log(abs(x))": 0.0,
    "1/(x - 0.3)": 0.3,
    "1/(x - 1000)": 1000.0,
    "log(x + 100)": -100.0,
    "1/(x**2 - 2)": -math.sqrt(2),
    "1/(x**3 - pi)": math.pi ** (1 / 3),
    "1/(x - pi)**2": math.pi,
    "abs(x)**-0.5": 0.0,
    "1/sqrt(abs(x))": 0.0,
    "1/(exp(x) - 3)": math.log(3),
    "1/sinh(x - 1)": 1.0,
    "1/cos(x)": -math.pi / 2,
    "1/(1 + cos(x))": math.pi,
    "1/(x - abs(x))": 0.0,
    "x/abs(x)": 0.0,
    "sin(x)/x": 0.0,
    "exp(-1/x**2)": 0.0,
    "tanh(1/x)": 0.0,
    "1/((x - 1)**2*(x**2 + 1))": 1.0,
    "sqrt((x - 0.05)**2 - 1e-6)": 0.05,
}
NEGATIVE = ["sqrt(x)", "x**0.5", "log(x)", "sqrt(1 - x**2)", "sqrt(sin(x))", "sqrt(x - 2000)"]
ALLOWED = [
    *("x**3", "abs(x)**1.5", "abs(x)**0.3333", "sign(x)", "tanh(5*x)", "x*exp(-x**2/2)"),
    *(
        "1/(1 + x**2)",
        "x/sqrt(1 + x**2)",
        "log(1 + x**2)",
        "log(cosh(x))",
        "1/cosh(x)",
        "exp(x**2)",
    ),
    *("log(exp(x) + exp(-x))", "1/(1 + exp(-x))", "x/(1 + abs(x))", "1/(1.000001 + cos(x))"),
    *("1/(1 + tanh(5*x))", "sqrt(1 + tanh(x))", "sqrt(x**2)", "sqrt(abs(x))*sign(x)", "x**3/9 - x"),
    *("1/((x**2 + 0.123456789)**16 + 1)", "x**3/(x**32 + 0.5*x**2 + pi)", "1/log(2 + x**2)"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_pole_is_found_wherever_it_is(text):
    assert parse_formula(text).undefined_at == pytest.approx(REFUSED[text], abs=1e-6)


@pytest.mark.parametrize("text", NEGATIVE)
def test_roots_and_logarithms_of_negative_numbers_are_found(text):
    at = parse_formula(text).undefined_at
    value = float(parse_formula(text).value(at))
    assert not math.isfinite(value)


@pytest.mark.parametrize("text", ALLOWED)
def test_functions_that_are_finite_everywhere_are_allowed_at_once(text):
    begin = time.perf_counter()
    assert parse_formula(text).undefined_at is None
    # A tenth of a second is usual; the machine may be busy.
    assert time.perf_counter() - begin < 2


@pytest.mark.parametrize("text", ["1/x", "log(abs(x))"])
def test_systems_refuse_them_and_say_where(text):
    sentence = r"is not allowed \(it is infinite or no real number at x = 0"
    for name, system, rest in (
        ("nonlinearity", OnlineICA, {"tau": 0.1}),
        ("regularizer", OnlineICA, {"tau": 0.1}),
        ("regularizer", SparsePCA, {"tau": 0.1}),
        ("nonlinearity", HebbianICA, {"mu": 0.1, "sigma": [1]}),
    ):
        with pytest.raises(HdicaError, match=f"{name} = .* {sentence}"):
            system(**{name: text}, **rest)


@pytest.mark.parametrize("b", [0.5, 2.0])
def test_constants_decide_too(b):
    assert (parse_formula("1/(x**2 + b - 1)", constants={"b": b}).undefined_at is None) == (b > 1)
