"""The overlap in closed form against its equation, and against integrals of its own."""

import numpy as np
import pytest
from scipy.integrate import quad

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.overlap.nonlinear import closed_overlap, rates

TIMES = np.linspace(0.0, 200.0, 21)
CASES = [
    ("rademacher", "x**3"),
    ("uniform", "x**3"),
    ("laplace", "-x**3"),
    ("gaussian", "x**3"),
    ("uniform", "x**3 - 3*x"),
    ({"chi2": 3}, "x**3"),
    ("rademacher", "x**5 - x**3"),
]


def system(source="uniform", f="x**3", tau=0.04, q0=0.7, **more):
    return hdica.OnlineICA(tau=tau, source=source, nonlinearity=f, start={"overlap": q0}, **more)


@pytest.mark.deep
@pytest.mark.parametrize(("source", "f"), CASES, ids=str)
@pytest.mark.parametrize("tau", [0.03, 0.05, 0.2])
def test_it_agrees_with_the_equation_below_and_above_the_fold(source, f, tau):
    """From both sides of the unstable state; above the fold two roots are off the real line."""
    for q0 in (0.3, 0.7, -0.9, 1.0, 0.0):
        found = hdica.limit(system(source, f, tau, q0), times=TIMES, method="closed")
        other = hdica.limit(system(source, f, tau, q0), times=TIMES, method="ode")
        off = np.abs(found["Q"] - other["Q"]).values
        assert off.max() < 1e-10
        assert np.all(off <= (found["Q_error"] + other["Q_error"]).values)
        assert float(found["Q_error"].max()) < 1e-9


def test_it_agrees_with_the_equation_of_a_batch_and_not_with_that_of_one_sample():
    found = hdica.limit(system(batch=4), times=TIMES, method="closed")["Q"]
    same = hdica.limit(system(batch=4), times=TIMES, method="ode")["Q"]
    other = hdica.limit(system(), times=TIMES, method="ode")["Q"]
    assert float(np.abs(found - same).max()) < 1e-10
    assert float(np.abs(found - other).max()) > 1e-2


def test_a_limit_with_its_drift_wrong_by_a_millionth_does_not_agree():
    found = hdica.limit(system(), times=TIMES, method="closed")["Q"]
    other = hdica.limit(system(tau=0.04 * (1 + 1e-6)), times=TIMES, method="ode")["Q"]
    assert float(np.abs(found - other).max()) > 1e-7


def test_the_polynomials_are_those_of_the_cubic_in_closed_form():
    law = make_source("uniform")
    m4, m6 = law.moment(4), law.moment(6)
    learning, loss = rates(parse_formula("x**3"), law)
    q = np.linspace(0, 1, 7)
    np.testing.assert_allclose(learning(q), 2 * (3 - m4) * q * (1 - q), atol=1e-14)
    expected = 15 + 15 * q**2 * (1 - q) * (m4 - 3) + q**3 * (m6 - 15)
    np.testing.assert_allclose(loss(q), -expected, rtol=1e-13)


@pytest.mark.parametrize("tau", [0.04, 0.08])
def test_times_are_integrals_of_the_inverse_rate(tau):
    path = closed_overlap(parse_formula("x**3"), make_source("uniform"), tau, 0.8)
    reached = path.at(np.array([0.0, 7.0, 30.0]))
    for q, t in zip(reached, (0.0, 7.0, 30.0), strict=True):
        taken = quad(lambda s: 1 / (s * path.rate(s)), reached[0], q, epsabs=1e-13)[0]
        assert taken == pytest.approx(t, abs=1e-10)
    assert np.any(path.roots.imag != 0) == (tau > 0.0591301670315968)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"f": "tanh(x)", "source": "rademacher"}, "'tanh(x)' (allowed: odd polynomials)"),
        ({"f": "x**2", "source": {"chi2": 3}}, "'x**2' (allowed: odd polynomials)"),
        ({"tau": "0.1/(1 + t)"}, "tau = '0.1/(1 + t)' is not allowed for the closed form"),
        ({"regularizer": "0.1*sign(x)"}, "does not close the limit"),
        ({"tau": 0.0591301670315968}, "two steady states all but coincide"),
    ],
)
def test_what_has_no_closed_form_is_refused_in_one_sentence(more, part):
    with pytest.raises(hdica.HdicaError) as told:
        hdica.limit(system(**more), times=TIMES, method="closed")
    assert part in str(told.value)


def test_a_linear_regularizer_does_not_matter():
    plain = hdica.limit(system(), times=TIMES, method="closed")
    decayed = hdica.limit(system(regularizer="0.3*x"), times=TIMES, method="closed")
    np.testing.assert_array_equal(plain["Q"], decayed["Q"])
    assert float(decayed["R"][0]) == 0.3
