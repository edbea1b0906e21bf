"""Gradient flow of the overlap: golden times and paths, the closed form, the bound."""

import math

import numpy as np
import pytest

from hdica.ingredients.contrasts import make_contrast
from hdica.ingredients.sources import make_source
from hdica.systems.subspace_ica import loss as flow
from hdica.systems.subspace_ica.loss import Loss, direction_of
from tests.systems.subspace_ica.golden import GOLDEN, ingredients, title

FLOWS = GOLDEN["gradient_flow"]
CLOSED = GOLDEN["gradient_flow_kurt_closed"]


def kurtosis_time(kappa4, gamma, start, end):
    """The time in closed form for G = s^4 - 3 and s^4 - 6 s^2 + 3.

    (-1/(2 a^2) + ln a - ln(1 - a^2)/2)/(4 abs(kappa_4) gamma^2) between both overlaps.
    """

    def at(a):
        return -1 / (2 * a * a) + math.log(a) - math.log((1 - a) * (1 + a)) / 2

    return (at(end) - at(start)) / (4 * abs(kappa4) * gamma**2)


def moves_of(contrast, source, gamma, sign=None):
    given = make_contrast(contrast), make_source(source)
    return flow.Flow(Loss(*given, gamma), sign or direction_of(*given))


@pytest.mark.parametrize("case", FLOWS["values"], ids=title)
def test_flows(case):
    given = ingredients(case)
    sign = direction_of(*given)
    assert ("ascent" if sign > 0 else "descent") == case["direction"]
    moves, start = flow.Flow(Loss(*given, case["gamma"]), sign), case["alpha0"]
    took, errors = moves.times(start, np.array([0.9, 0.99]))
    expected = [case["t_to_0.9"], case["t_to_0.99"]]
    assert took == pytest.approx(expected, rel=FLOWS["tol"])
    assert np.all(errors < 1e-9 * took)
    known = case["alpha_at_t"]
    path, error = moves.path(start, np.array([float(t) for t in known]))
    assert path == pytest.approx(list(known.values()), abs=FLOWS["tol"])
    assert np.all(error < 1e-9)
    least = moves.least_slope(start, 0.9)
    assert least == pytest.approx(case["C_f"], rel=1e-6)
    bound = flow.bound_time(least, start, np.array(0.9))
    assert float(bound) == pytest.approx(case["f_bound_t_to_0.9"], rel=FLOWS["tol"])


@pytest.mark.parametrize("case", CLOSED["values"], ids=title)
def test_the_closed_form_of_the_kurtosis(case):
    law, a0, a1 = make_source(case["h"]), case["alpha0"], case["alpha1"]
    closed = kurtosis_time(law.moment(4) - 3, case["gamma"], a0, a1)
    assert closed == pytest.approx(case["t"], rel=CLOSED["tol"])
    for contrast in ("kurtosis", "he4"):
        took, _ = moves_of(contrast, case["h"], case["gamma"]).times(a0, np.array([a1]))
        assert took[0] == pytest.approx(case["t"], rel=1e-12)


@pytest.mark.parametrize(
    ("contrast", "source"), [("exp", "rademacher"), ("logcosh", "laplace"), ("exp", {"chi2": 4})]
)
def test_the_bound_is_below_the_flow(contrast, source):
    moves, times = moves_of(contrast, source, 0.5), np.linspace(0, 2000, 21)
    path, _ = moves.path(0.1, times)
    bound = flow.bound(moves.least_slope(0.1, 1.0), 0.1, times)
    assert np.all(bound <= path + 1e-12)
    assert np.all(bound[1:] < path[1:])


def test_the_solver_and_the_quadrature_agree():
    """Each solves the flow alone: the time at which the path is somewhere, and the path."""
    moves = moves_of("logcosh", {"bernoulli_gaussian": 0.1}, 0.4)
    times = np.array([1.0, 20.0, 60.0])
    path, _ = moves.path(0.2, times)
    took, _ = moves.times(0.2, path)
    assert took == pytest.approx(times, rel=1e-8)


def test_the_flow_is_that_of_the_equation():
    moves = moves_of("exp", "uniform", 0.7)
    times = np.array([40.0, 40.1])
    (one, other), _ = moves.path(0.4, times)
    slope = float(moves.loss.at(np.array((one + other) / 2)).slope)
    assert (other - one) / 0.1 == pytest.approx(slope * (1 - one * other), rel=1e-5)


def test_the_wrong_direction_leads_away():
    moves = moves_of("exp", "laplace", 0.5, sign=1)
    path, error = moves.path(0.8, np.array([0.0, 100.0, 1000.0]))
    assert path[0] == pytest.approx(0.8)
    assert np.all(np.diff(path) < 0)
    assert np.all(error < 1e-9)
    assert moves.times(0.8, np.array([0.9]))[0][0] == np.inf
    least = moves.least_slope(0.8, 1.0)
    assert least < 0
    assert float(flow.bound_time(least, 0.8, np.array(0.9))) == np.inf


def test_the_flow_rests_at_its_ends():
    moves, times = moves_of("exp", "rademacher", 0.5), np.array([0.0, 10.0])
    for end in (0.0, 1.0):
        assert moves.path(end, times)[0].tolist() == [end, end]
    assert moves.times(0.0, np.array([0.5]))[0][0] == np.inf


def test_times_from_small_overlaps():
    """2 sqrt(2)/(gamma a0)^2 for the exponential contrast and random signs."""
    moves = moves_of("exp", "rademacher", 0.5)
    took, _ = moves.times(1e-4, np.array([0.5]))
    leading = flow.leading_time(moves.loss, 1e-4)
    assert leading == pytest.approx(2 * 2**0.5 / (0.5e-4) ** 2, rel=1e-12)
    assert took[0] == pytest.approx(leading, rel=1e-5)


def test_steps_of_b5_on_infinitely_many_samples_tend_to_the_flow():
    """(B.6): the error of w' = (w + eta L'(a) vt)/|...| after a fixed time is of order eta."""
    moves, a0, end = moves_of("exp", "rademacher", 0.5), 0.5, 40.0
    (target,), _ = moves.path(a0, np.array([end]))

    def stepped(eta):
        a = a0
        for _ in range(round(end / eta)):
            move = eta * float(moves.loss.at(np.array(a)).slope)
            # The spherical gradient (vt - a w) L', then back to the sphere.
            a, across = a + move * (1 - a * a), (1 - a * a) ** 0.5 * (1 - move * a)
            a /= (a * a + across * across) ** 0.5
        return a - target

    first, second = stepped(0.2), stepped(0.1)
    assert abs(second) < 1e-3
    assert first / second == pytest.approx(2, rel=0.05)
