"""What online ICA with several features accepts, and how it says what it does not."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.update import descent, values_of


def test_the_spellings_of_a_start_are_one():
    one = hdica.SeveralICA(tau=0.1, Q1=0.5, Q2=0.25)
    assert one == hdica.SeveralICA(tau=0.1, start={"overlap": [0.5, 0.25]})
    assert one == hdica.SeveralICA(tau=0.1, start={"Q2": 0.25, "Q1": 0.5})
    assert one.dims() == {"source": (1, 2)}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"start": {"overlap": [0.5]}}, "one number a source"),
        ({"start": {"overlap": [0.9, 0.9]}}, "sum of the squares is 1.62"),
        ({"start": {"overlap": ["a", 1]}}, "start = "),
        ({"start": {"Q1": 0.5, "Q3": 0.5}}, "start = "),
        ({"start": "random"}, "start"),
        ({"sources": []}, "sources"),
        ({"sources": ["uniform", "unknown"]}, "'unknown' is not known"),
        ({"nonlinearity": "0"}, "nothing would be learned"),
        ({"tau": -1}, "step size"),
        ({"batch": 4}, "batch"),
        ({"sign": "auto"}, "sign"),
        ({"motion": {"drift": 1}}, "motion"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(given, says):
    with pytest.raises(HdicaError, match="(?s)" + says) as refused:
        hdica.SeveralICA(**{"tau": 0.1, **given})
    assert "\n" not in str(refused.value)


def test_a_start_on_a_feature_stays_within_its_rounding():
    hdica.SeveralICA(tau=0.1, start={"overlap": [0.6, 0.8]})


def test_the_limit_says_what_it_needs():
    heavy = hdica.SeveralICA(tau=0.1, sources=["uniform", {"student": 5}])
    with pytest.raises(HdicaError, match=r"mean of F\^2 over the source student.* is infinite"):
        hdica.limit(heavy, times=[0, 1])


@pytest.mark.parametrize("method", ["chain", "vector"])
def test_dimensions_that_leave_no_room_are_refused(method):
    with pytest.raises(HdicaError, match="n >= 4"):
        hdica.simulate(hdica.SeveralICA(tau=0.1), n=3, times=[0, 1], seeds=1, method=method)


def test_a_limit_that_stays_at_zero_says_why():
    found = hdica.limit(hdica.SeveralICA(tau=0.1, Q1=0, Q2=0), times=[0, 1])
    assert "overlap 0 with every feature" in found.attrs["note"]


def test_constants_of_the_nonlinearity_may_have_any_name() -> None:
    """Also those of the projections, which they are not mistaken for."""
    update = descent("u*x**3 + v1*tanh(x) + x", 2, {"u": 2.0, "v1": 0.5, "unused": 9.0})
    u, tau = np.array([-1.5, 0.2, 2.0]), 0.3
    arguments = np.array([*np.stack([u, 7 * u, -u]), np.ones(3), np.full(3, tau)])
    rows = np.vstack([arguments, *(np.full((1, 3), value) for value in update.numbers)])
    wanted = -tau * (2 * u**3 + 0.5 * np.tanh(u) + u)
    assert np.allclose(values_of(update, rows), wanted, rtol=1e-14)
    # One compiled function for all their values.
    assert descent("u*x**3 + v1*tanh(x) + x", 2, {"u": 3.0, "v1": 1.0}).address == update.address
