"""The sign of f that learns a source, chosen from the averages over both."""

import json

import numpy as np
import pytest

import hdica
from hdica.analysis.account.account import choices
from hdica.analysis.account.account import notes_of_choices as said
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import gain_at
from hdica.systems.trials import content_of
from tests.analysis import toy

SKEWED = {"chi2": 3}


def system(source="uniform", f="x**3", q0=0.7, sign="auto", **more):
    return hdica.OnlineICA(
        tau=0.02, source=source, nonlinearity=f, sign=sign, start={"overlap": q0}, **more
    )


def end(one):
    return float(hdica.limit(one, times=[0, 400])["Q"][-1])


@pytest.mark.parametrize(
    ("source", "f", "q0", "taken"),
    [
        ("uniform", "x**3", 0.7, "x**3"),
        ("uniform", "-(x**3)", 0.7, "x**3"),
        ("laplace", "x**3", 0.7, "-(x**3)"),
        ("laplace", "x**3", 0.0, "-(x**3)"),
        ("laplace", "tanh(x)", 0.7, "tanh(x)"),
        ("uniform", "tanh(x)", 0.7, "-(tanh(x))"),
        (SKEWED, "x**2", 0.5, "-(x**2)"),
        (SKEWED, "x**2", -0.5, "x**2"),
    ],
)
def test_the_sign_that_is_taken_learns_and_the_other_does_not(source, f, q0, taken):
    one = system(source, f, q0)
    attrs = hdica.limit(one, times=[0, 1]).attrs
    assert attrs["chosen"].startswith(f"nonlinearity = {taken!r} (sign = 'auto'")
    if q0 == 0:
        return
    assert end(one) * np.sign(q0) > abs(q0) + 0.05
    assert end(one) == end(system(source, taken, q0, sign="given"))
    other = taken[2:-1] if taken.startswith("-(") else f"-({taken})"
    assert end(system(source, other, q0, sign="given")) * np.sign(q0) < abs(q0) - 0.05


@pytest.mark.parametrize(("source", "f"), [("laplace", "x**3"), ("uniform", "tanh(x)")])
def test_it_is_the_sign_of_the_averages_at_one_overlap(source, f):
    """An independent quadrature: f learns if <c f> - Q <f'> pulls against the descent."""
    gain = gain_at(parse_formula(f), make_source(source), 0.9)[0]
    assert (system(source, f).sign, gain > 0) == ("auto", True)
    assert "-(" in hdica.limit(system(source, f), times=[0]).attrs["chosen"]


def test_near_zero_it_is_not_the_sign_of_the_kurtosis_alone():
    """The mean third derivative of x^5 - 20 x^3 is negative, as that of -x^3."""
    found = hdica.limit(system("uniform", "x**5 - 20*x**3"), times=[0]).attrs["chosen"]
    assert "'-(x**5 - 20*x**3)'" in found


def test_simulations_take_the_sign_too_and_the_given_sign_says_nothing():
    one, plain = system("laplace"), system("laplace", "-(x**3)", sign="given")
    times, n = [0, 50], 2000
    found = hdica.simulate(one, n=n, times=times, seeds=8)
    known = hdica.simulate(plain, n=n, times=times, seeds=8)
    assert "chosen" in found.attrs
    assert "chosen" not in known.attrs
    error = np.hypot(found["Q"].std("seed"), known["Q"].std("seed"))[-1] / np.sqrt(7)
    assert abs(float((found["Q"].mean("seed") - known["Q"].mean("seed"))[-1])) < 4 * error
    wrong = hdica.simulate(system("laplace", sign="given"), n=n, times=times, seeds=8)
    assert float((known["Q"].mean("seed") - wrong["Q"].mean("seed"))[-1]) > 8 * float(error)
    assert "sign" not in content_of(plain)


@pytest.mark.parametrize(("source", "f"), [("gaussian", "x**3"), ("uniform", "2*x")])
def test_where_neither_sign_learns_it_is_refused(source, f):
    with pytest.raises(hdica.HdicaError) as told:
        system(source, f)
    assert "sign = 'auto' is not allowed (no step size learns the source" in str(told.value)
    with pytest.raises(hdica.HdicaError, match="sign = 'both' is not allowed"):
        system(sign="both")


def test_another_system_is_given_the_sign():
    found = hdica.convert(system("laplace"), to=hdica.HebbianICA)
    assert (found.nonlinearity, found.sigma) == ("-(x**3)", [-1])


def test_the_page_says_what_was_taken_where():
    tree = toy.tree({"ode": toy.ode([0.02], [0.7], [0.0, 1.0], 0.1)}, {})
    written = json.loads(tree.attrs["study_yaml"])
    written["parameters"] = {"tau": 0.1, "sign": "auto"}
    written["grid"] = {"source": ["uniform", "laplace", "rademacher"]}
    tree.attrs["study_yaml"] = json.dumps(written)
    data = choices(tree)
    assert data["count"].values.tolist() == [1, 1, 1]
    assert [text[:25] for text in said(data)] == ["Chosen at 1 of 3 points: "] * 3
    assert "for laplace" in said(data)[1]
    written["parameters"]["sign"] = "given"
    tree.attrs["study_yaml"] = json.dumps(written)
    assert choices(tree) is None
