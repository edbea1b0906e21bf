"""Formulas that switch: branches, comparisons, max and min, against plain NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula, parse_functional
from hdica.ingredients.grammar import constants_used
from hdica.ingredients.schedules import make_schedule

C = {"l": 0.4, "g": 3.0, "a": 3.7}
MCP = "where(abs(x) < g*l, l*sign(x) - x/g, 0)"
SCAD = "l*sign(x) if abs(x) <= l else max(a*l - abs(x), 0)/(a - 1)*sign(x)"


def _mcp(x):
    return np.where(np.abs(x) < 1.2, 0.4 * np.sign(x) - x / 3, 0.0)


def _scad(x):
    outer = np.maximum(3.7 * 0.4 - np.abs(x), 0) / 2.7
    return np.where(np.abs(x) <= 0.4, 0.4, outer) * np.sign(x)


PLAIN = [
    (MCP, _mcp, (-1.2, 0.0, 1.2)),
    (SCAD, _scad, (-1.48, -0.4, 0.0, 0.4, 1.48)),
    ("max(x, 0)", lambda x: np.maximum(x, 0), (0.0,)),
    ("max(x, 1, 2*x, -3)", lambda x: np.maximum(np.maximum(x, 1), 2 * x), (0.5,)),
    ("min(abs(x), 2, x + 3)", lambda x: np.minimum(np.minimum(abs(x), 2), x + 3), (-1.5, 0.0, 2.0)),
    ("clip(x, -1, 1)", lambda x: np.clip(x, -1, 1), (-1.0, 1.0)),
    ("relu(x) - 0.1*relu(-x)", lambda x: np.where(x > 0, x, 0.1 * x), (0.0,)),
    ("sigmoid(x)", lambda x: 1 / (1 + np.exp(-x)), ()),
    ("arctan(x)", np.arctan, ()),
    ("abs(abs(x) - 1)", lambda x: np.abs(np.abs(x) - 1), (-1.0, 0.0, 1.0)),
    ("max(abs(x) - 1, 0)*sign(x)", lambda x: np.maximum(abs(x) - 1, 0) * np.sign(x), (-1.0, 1.0)),
    ("where(sign(abs(x) - 1) > 0, x, 0)", lambda x: np.where(np.abs(x) > 1, x, 0), (-1.0, 1.0)),
    ("x if -1 < x <= 2 else 0", lambda x: np.where((x > -1) & (x <= 2), x, 0), (-1.0, 2.0)),
    ("(x > -1) & (x <= 2)", lambda x: 1.0 * ((x > -1) & (x <= 2)), (-1.0, 2.0)),
    (
        "where(not x > 0 or x >= 2, x, 1)",
        lambda x: np.where(~(x > 0) | (x >= 2), x, 1),
        (0.0, 2.0),
    ),
    ("where(tanh(x) > 0.3, x, 0)", lambda x: np.where(np.tanh(x) > 0.3, x, 0), (math.atanh(0.3),)),
    ("abs(tanh(2*x - 1))", lambda x: np.abs(np.tanh(2 * x - 1)), (0.5,)),
    (
        "where(cosh(x) > 1.0000001, x, 0)",
        lambda x: np.where(np.cosh(x) > 1.0000001, x, 0),
        (-math.acosh(1.0000001), math.acosh(1.0000001)),
    ),
    ("sign(x + sin(x)/2)*x", np.abs, (0.0,)),
    ("where(x > 0, sqrt(x), 0)", lambda x: np.sqrt(np.maximum(x, 0)), (0.0,)),
    (
        "where(abs(x) > 0.001, sin(x)/x, 1)",
        lambda x: np.where(np.abs(x) > 0.001, np.sinc(x / np.pi), 1.0),
        (-0.001, 0.001),
    ),
    ("where(abs(x) < 1, abs(x - 5), 0)", lambda x: np.where(abs(x) < 1, 5 - x, 0), (-1.0, 1.0)),
]


def _points(kinks):
    near = [k + d for k in kinks for d in (-1e-6, 1e-6)]
    return np.sort(np.concatenate([np.linspace(-3.3, 3.3, 101), [-40.0, 40.0], near]))


@pytest.mark.parametrize(("text", "plain", "kinks"), PLAIN)
def test_values_and_kinks_are_those_of_numpy(text, plain, kinks):
    f = parse_formula(text, "x", C)
    x = _points(kinks)
    assert np.allclose(f.value(x), plain(x), rtol=1e-13, atol=1e-15)
    assert np.allclose(f.kinks, kinks, rtol=1e-9 if "cosh" in text else 1e-15, atol=0)
    assert len(f.kinks) == len(kinks)
    assert f.undefined_at is None


@pytest.mark.parametrize(("text", "plain", "kinks"), PLAIN)
def test_compiled_code_agrees_with_arrays_and_blocks(text, plain, kinks):
    f = parse_formula(text, "x", C)
    x = _points(kinks) if "cosh" in text or "tanh" in text else np.append(_points(kinks), kinks)
    one = np.array([f.compiled.ctypes(float(v)) for v in x])
    pair = np.array([f.compiled_pair.ctypes(float(v), 9.0) for v in x])
    assert np.allclose(one, f.value(x), rtol=1e-14, atol=1e-15)
    assert np.array_equal(one, pair)


def _is_kink(f, at):
    """Whether a second difference does not become small with the distance."""
    h = np.array([1e-3, 1e-4])
    second = f(at + h) - 2 * f(at + h / 1e3) + f(at - h)
    return bool(np.all(np.abs(second) > 0.05 * h))


@pytest.mark.parametrize(("text", "plain", "kinks"), PLAIN)
def test_kinks_are_where_the_second_difference_explodes(text, plain, kinks):
    if "1.0000001" in text or "0.001" in text or "sqrt" in text:
        pytest.skip("kinks closer to each other than the differences, or smaller than they see")
    found = [k for k in kinks if _is_kink(plain, k)]
    assert found == list(kinks)
    between = np.setdiff1d(np.round(np.linspace(-3.3, 3.3, 661), 6) + 0.0037, kinks)
    between = [x for x in between if all(abs(x - k) > 2e-3 for k in kinks)]
    assert not any(_is_kink(plain, x) for x in between)


_LEAVES = st.sampled_from(["x", "x", "1", "0.5", "-2", "x**2", "x/2 - 1", "tanh(x)"])


def _more(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"max({p[0]}, {p[1]})"),
        pair.map(lambda p: f"min({p[0]}, {p[1]})"),
        pair.map(lambda p: f"({p[0]} + {p[1]})"),
        pair.map(lambda p: f"({p[0]} - {p[1]})"),
        inner.map(lambda p: f"abs({p})"),
        inner.map(lambda p: f"relu({p})"),
        inner.map(lambda p: f"sign({p})"),
        st.tuples(inner, inner, inner, st.sampled_from("<>")).map(
            lambda p: f"where({p[0]} {p[3]} 0.3, {p[1]}, {p[2]})"
        ),
    )


def _by_numpy(text, x):
    names = {
        "x": x,
        "max": np.maximum,
        "min": np.minimum,
        "abs": np.abs,
        "sign": np.sign,
        "relu": lambda v: np.maximum(v, 0),
        "where": np.where,
        "tanh": np.tanh,
    }
    return np.broadcast_to(eval(text, {"__builtins__": {}}, names), x.shape)  # noqa: S307


@given(st.recursive(_LEAVES, _more, max_leaves=6), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_random_formulas_agree_with_numpy_and_differences_off_their_kinks(text, seed):
    if len(text) > 200:
        return
    f = parse_formula(text)
    x = np.random.default_rng(seed).normal(scale=2, size=40)
    kinks = np.array([*f.kinks, np.inf])
    x = x[np.min(np.abs(x[:, None] - kinks), axis=1) > 1e-4]
    assert np.allclose(f.value(x), _by_numpy(text, x), rtol=1e-12, atol=1e-12)
    h = 1e-6
    slope = (_by_numpy(text, x + h) - _by_numpy(text, x - h)) / (2 * h)
    # A kink that was missed would be seen here: no difference reaches across one that is known.
    assert np.allclose(f.derivative.value(x), slope, rtol=1e-6, atol=1e-6)
    dense = np.linspace(-4, 4, 4001)
    dense = dense[np.min(np.abs(dense[:, None] - kinks), axis=1) > 1e-5]
    jumps = np.abs(_by_numpy(text, dense + 1e-9) - _by_numpy(text, dense - 1e-9))
    assert jumps.max(initial=0.0) < 1e-4


def test_what_is_known_of_formulas_holds_with_switches():
    f = parse_formula(MCP, "x", C)
    assert f.is_odd
    assert parse_formula(SCAD, "x", C).is_odd
    assert parse_formula("clip(x, -1, 1)").is_odd
    assert not parse_formula("clip(x, -1, 2)").is_odd
    assert not parse_formula("where(x > 0, x, 1.0000001*x)").is_odd
    assert f.coefficients is None
    assert f.slope_if_linear is None
    assert f.elastic_net is None
    assert parse_formula("where(x > 0, 0, 0*x)").is_zero
    assert parse_formula("max(x, 0) - x*(x > 0)").is_zero
    assert not parse_formula("max(x - 50, 0)").is_zero


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("where(x > 0, log(x), 0)", 0.0),
        ("where(x > 1, 1/x, 1/(x - 3))", None),
        ("where(x > 1, 1/x, 1/(x + 3))", -3.0),
        ("1/max(x, 1)", None),
        ("1/max(x, 0)", 0.0),
        ("sqrt(max(x, 0))", None),
        ("sqrt(max(x, -1))", -1.0),
        ("1/where(x > 0.3, 1, -1)", None),
        ("1/where(x > 0.3, 1, x - 0.2)", 0.2),
    ],
)
def test_only_branches_that_are_taken_can_be_infinite(text, at):
    found = parse_formula(text).undefined_at
    if at is None:
        assert found is None
    else:
        assert found is not None
        assert found <= 0 if text == "sqrt(max(x, -1))" else found == pytest.approx(at, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("where(x, 1, 2)", "'x' is not a condition such as x > 0"),
        ("1 if x else 2", "'x' is not a condition such as x > 0"),
        ("where(x > 0, 1)", "'where' takes a condition and two values"),
        ("max(x)", "'max' takes 2 or more arguments, not 1"),
        ("clip(x, 1)", "'clip' takes 3 arguments, not 2"),
        ("x > 0 and x", "'x > 0 and x' is not part of the grammar"),
        ("+".join(["(x > 1)"] * 13), "more than 12 comparisons"),
    ],
)
def test_what_is_no_condition_is_refused_in_a_sentence(text, part):
    with pytest.raises(HdicaError) as caught:
        parse_formula(text)
    assert part in str(caught.value)
    assert "allowed are" in str(caught.value)


def test_a_condition_that_changes_for_ever_is_refused():
    with pytest.raises(HdicaError, match="changes sign more than 64 times"):
        _ = parse_formula("where(sin(x) > 0, 1, -1)").kinks


def test_a_comparison_keeps_its_value_where_both_sides_are_equal():
    x = np.array([-1.0, 0.0, 1.0])
    for text, values in [("x < 1", [1, 1, 0]), ("x <= 1", [1, 1, 1]), ("x >= 0", [0, 1, 1])]:
        f = parse_formula(text)
        assert f.value(x).tolist() == values
        assert [f.compiled.ctypes(v) for v in x] == values
    # Half-way at a kink, as sign(0) = 0; in a branch that is 0 on an interval, its own slope.
    assert float(parse_formula("max(x, 0)").derivative.value(0.0)) == 0.5
    assert float(parse_formula("where(relu(x) > 0, x**2, x)").derivative.value(-1.0)) == 1.0


def test_names_of_functions_may_still_be_constants():
    assert constants_used("max*x + min(x, clip)") == {"max", "clip"}
    f = parse_formula("max*x + min(x, clip)", "x", {"max": 2.0, "clip": 1.0})
    assert f.value(np.array([3.0])).tolist() == [7.0]


def test_functionals_and_schedules_may_switch():
    f = parse_functional("(abs(x) > 0.5)*(xi > 0)")
    assert f.mean(np.array([1.0, 1.0, 0.0]), np.array([0.6, 0.4, 0.7])) == pytest.approx(1 / 3)
    tau = make_schedule("where(t < 10, 0.1, max(1/(1 + t), 0.01))")
    assert tau.breaks == (10.0, 99.0)
    assert tau.value(np.array([9.0, 10.0, 200.0])) == pytest.approx([0.1, 1 / 11, 0.01])


def test_many_nested_switches_are_read_at_once():
    text = "x"
    for k in range(1, 30):
        text = f"max({text},{k})"
    f = parse_formula(text)
    assert f.kinks == (29.0,)
    assert f.derivative.value(np.array([0.0, 30.0])).tolist() == [0.0, 1.0]
