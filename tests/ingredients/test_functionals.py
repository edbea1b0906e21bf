import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula, parse_functional
from tests.ingredients.test_formula import HOSTILE

CASES = {
    "(x - xi)**2": lambda xi, x: (x - xi) ** 2,
    "abs(x)*sign(xi)": lambda xi, x: np.abs(x) * np.sign(xi),
    "x": lambda xi, x: x + 0 * xi,
    "xi**3": lambda xi, x: xi**3 + 0 * x,
    "0.5": lambda xi, x: 0.5 + 0 * x * xi,
    "tanh(x)*exp(-xi**2) - pi": lambda xi, x: np.tanh(x) * np.exp(-(xi**2)) - np.pi,
}


@pytest.mark.parametrize("text", CASES)
def test_values_broadcast(text):
    xi, x = np.array([0.0, 1.5, -2.0]), np.array([[-1.0], [0.0], [0.3], [2.0]])
    found = parse_functional(text).value(xi, x)
    assert found.shape == (4, 3)
    assert found == pytest.approx(CASES[text](xi, x), rel=1e-14)


def test_xi_comes_first_and_the_mean_is_over_entries():
    f = parse_functional("x - 10*xi")
    assert float(f.value(1.0, 3.0)) == -7.0
    assert f.mean(np.array([0.0, 1.0]), np.array([4.0, 2.0])) == -2.0


def test_named_constants():
    f = parse_functional("(abs(x) - theta)*xi", {"theta": 0.5})
    assert float(f.value(2.0, -1.5)) == 2.0
    with pytest.raises(HdicaError, match=r"'theta' is neither a variable nor a constant"):
        parse_functional("abs(x) - theta")


@pytest.mark.parametrize("text", [h for h in HOSTILE if h != "x.real"])
def test_what_is_outside_the_grammar_is_refused_with_one_sentence(text):
    with pytest.raises(HdicaError, match="the variables xi and x") as refused:
        parse_functional(text)
    assert "\n" not in str(refused.value)


def test_one_formula_reads_only_its_own_variable():
    with pytest.raises(HdicaError, match=r"'xi' is neither a variable"):
        parse_formula("x*xi")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.27*sign(x)", (0.27, 0.0)),
        ("b*(sign(2*x) + x) - x/5", (0.3, 0.1)),
        ("3*x", (0.0, 3.0)),
        ("0", (0.0, 0.0)),
        ("x*sign(x) + x", None),
        ("1 + x", None),
        ("sign(x - 1)", None),
        ("tanh(x)", None),
        ("x**2", None),
    ],
)
def test_elastic_net_regularizers_are_recognised(text, expected):
    found = parse_formula(text, constants={"b": 0.3}).elastic_net
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-12))


def test_a_sum_of_sign_and_x_is_not_compiled_to_be_looked_at():
    """A search in its coefficient asks a thousand of them: it took half of that time."""
    regularizer = parse_formula("0.2817*sign(x) + 0.0923*x")
    assert regularizer.undefined_at is None
    assert "value" not in vars(regularizer)
    assert regularizer.elastic_net == (0.2817, 0.0923)
