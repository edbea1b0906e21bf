import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.grammar import constants_used

HOSTILE = [
    "__import__('os')",
    "__import__('os').system('touch /tmp/hdica_was_here')",
    "x.__class__",
    "x.real",
    "x**10**10",
    "((x**20)**20)**20",
    "9**9**9**9",
    "(lambda: 1)()",
    "[x for x in x]",
    "open('f')",
    "x if x else 1",
    "f'{x}'",
    "x[0]",
    "x := 1",
    "1e400",
    "1/0",
    "0**-1",
    "sqrt(-1)",
    "log(-x**2 - 1)",
    "True",
    "x; x",
    "x = 1",
    "",
    "x" * 10_000,
    "(" * 400 + "x" + ")" * 400,
    "-" * 200 + "x",
    "x^3",
    "exp(x, x)",
    "exp",
    "beta*x",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_outside_the_grammar_is_refused_with_one_sentence(text):
    with pytest.raises(HdicaError) as refused:
        parse_formula(text)
    message = str(refused.value)
    assert "\n" not in message
    assert "allowed are" in message
    assert len(message) < 500


@given(st.text(alphabet="x0123456789+-*/(). e^sinhtanexp_[]{}'\",", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        formula = parse_formula(text)
    except HdicaError:
        return
    assert np.shape(formula.value(np.linspace(-1, 1, 5))) == (5,)


FORMULAS = ["x**3", "x**3 - 0.1*x", "tanh(x)", "x*exp(-x**2/2)", "erf(x) + atan(x)", "log(cosh(x))"]


@pytest.mark.parametrize("text", FORMULAS)
def test_derivative_agrees_with_finite_differences(text):
    f = parse_formula(text)
    x, h = np.linspace(-2, 2, 9), 1e-5
    slope = (f.value(x + h) - f.value(x - h)) / (2 * h)
    assert np.allclose(f.derivative.value(x), slope, atol=1e-8)


@pytest.mark.parametrize("text", [*FORMULAS, "sign(x)", "x*abs(x - 1)"])
def test_compiled_equals_vectorised(text):
    f = parse_formula(text)
    for x in (-2.3, -0.1, 0.0, 1.0, 2.2):
        assert math.isclose(f.compiled.ctypes(x), float(f.value(x)), rel_tol=1e-13, abs_tol=1e-15)


def test_sign_vanishes_at_zero_in_both_forms():
    f = parse_formula("sign(x)")
    assert f.compiled.ctypes(0.0) == 0.0
    assert float(f.value(0.0)) == 0.0


def test_polynomials_kinks_parity_and_slopes_are_recognised():
    assert parse_formula("2*x**3 - x/2").coefficients.tolist() == [0.0, -0.5, 0.0, 2.0]
    assert parse_formula("tanh(x)").coefficients is None
    assert parse_formula("abs(x - 1)*sign(x**2 - 4)").kinks == (-2.0, 1.0, 2.0)
    assert parse_formula("x**3 + x").is_odd
    assert not parse_formula("x**3 + x**2").is_odd
    assert parse_formula("beta*x", constants={"beta": 0.3}).slope_if_linear == pytest.approx(0.3)
    assert parse_formula("0*sign(x)").slope_if_linear == 0.0
    assert parse_formula("sign(x)").slope_if_linear is None


def test_constants_are_found_without_reading_the_formula():
    assert constants_used("beta*sign(x) + pi*gamma") == {"beta", "gamma"}
    assert constants_used("((") == frozenset()


@pytest.mark.parametrize(
    ("text", "correct"),
    [("x^3", "x**3"), (" 2*x^3 - x^2 ", "2*x**3 - x**2"), ("(x+1)^2", "(x+1)**2")],
)
def test_a_power_written_with_a_hat_is_shown_as_it_is_written(text, correct):
    with pytest.raises(HdicaError) as caught:
        parse_formula(text)
    assert f"write {correct};" in str(caught.value)
    assert parse_formula(correct).value(2.0) == eval(correct, {"x": 2.0})  # noqa: S307


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x % 2", "the operator % is"),
        ("x // 2", "the operator // is"),
        ("x @ x", "the operator @ is"),
        ("x << 1", "the operator << is"),
        ("1 + (x == 2)", "'x == 2' is"),
        ("x != 0", "'x != 0' is"),
        ("lambda x: x", "'lambda x: x' is"),
        ("max(x, *x)", "'*x' is"),
        ("x.real", "'x.real' is"),
        ("not x", "'not x' is"),
        ("[x]", "'[x]' is"),
    ],
)
def test_what_is_refused_is_shown_as_it_is_written(text, part):
    with pytest.raises(HdicaError) as caught:
        parse_formula(text)
    assert f"{part} not part of the grammar" in str(caught.value)
