"""Population losses: golden numbers, series, signs of the slope and errors that are told."""

import math

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import make_contrast
from hdica.ingredients.sources import make_source
from hdica.systems.subspace_ica import loss
from hdica.systems.subspace_ica.loss import Loss, direction_of
from hdica.systems.subspace_ica.prediction import variance
from tests.systems.subspace_ica.golden import GOLDEN, ingredients, title

TABLE = GOLDEN["population_loss_table"]
LEMMA_5 = GOLDEN["lemma5_corrected"]
VARIANCES = GOLDEN["fastica_asymptotic_variance"]


def loss_of(contrast, source, gamma):
    return Loss(make_contrast(contrast), make_source(source), gamma)


@pytest.mark.parametrize("gamma", [0.25, 0.5, 0.75, 1.0])
def test_lemma_5_corrected(gamma):
    cases = [one for one in LEMMA_5["values"] if one["gamma"] == gamma]
    found = loss_of("exp", "rademacher", gamma).at(np.array([one["alpha"] for one in cases]))
    for values, key in ((found.loss, "L"), (found.slope, "dL")):
        expected = np.array([one[key] for one in cases])
        assert np.max(np.abs(values - expected)) < LEMMA_5["tol"]


@pytest.mark.parametrize("case", TABLE["values"], ids=title)
def test_losses_of_any_law_and_contrast(case):
    found = Loss(*ingredients(case), case["gamma"]).at(np.array(case["alpha"]))
    for value, error, key in (
        (found.loss, found.loss_error, "L"),
        (found.slope, found.slope_error, "dL"),
    ):
        assert abs(float(value) - case[key]) < TABLE["tol"]
        assert float(error) < 1e-11


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.95])
def test_the_closed_form_is_the_quadrature(gamma):
    known, a = loss_of("exp", "rademacher", gamma), np.linspace(-1, 1, 9)
    same = loss_of("-exp(-s**2/2)", "rademacher", gamma)
    assert known.closed
    assert not same.closed
    one, other = known.at(a), same.at(a)
    assert np.max(np.abs(one.loss - other.loss)) < 1e-14
    assert np.max(np.abs(one.slope - other.slope)) < 1e-14


@pytest.mark.parametrize("source", ["laplace", {"chi2": 4}, {"bernoulli_gaussian": 0.1}])
@pytest.mark.parametrize("contrast", ["logcosh", "exp"])
def test_the_slope_is_the_derivative(source, contrast):
    loss, a, h = loss_of(contrast, source, 0.6), np.array([-0.7, 0.2, 0.9]), 1e-3
    around = loss.at(a[:, None] + h * np.array([-2, -1, 1, 2])).loss
    slope = around @ np.array([1, -8, 8, -1]) / (12 * h)
    assert loss.at(a).slope == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("source", ["uniform", "laplace", {"student": 6}])
def test_small_overlaps_keep_their_digits(source):
    """L' ~ c_4 kappa_4 gamma^2 a^3/6, where quadrature alone has lost all digits."""
    given, law = make_contrast("logcosh"), make_source(source)
    a, kappa4 = 1e-5, law.moment(4) - 3
    found = Loss(given, law, 0.5).at(np.array(a))
    leading = given.hermite(4) * kappa4 * 0.25 * a**3 / 6
    assert float(found.slope) == pytest.approx(leading, rel=1e-8 if source != {"student": 6} else 1)


def test_errors_are_those_that_are_made():
    """At overlaps where the series and quadrature are both known they differ by no more."""
    given, law = make_contrast("exp"), make_source("uniform")
    a = np.array([0.15, 0.2, 0.3])
    found = Loss(given, law, 0.5)
    slope, error = loss.series(given, law).slope(math.sqrt(0.5) * a)
    direct = np.array([found._quadrature(one)[1] for one in a])
    quadrature_error = np.array([found._quadrature(one)[3] for one in a])
    root = math.sqrt(0.5)
    assert np.all(np.abs(root * slope - direct) <= root * error + quadrature_error)


def test_hermite_coefficients():
    for name, known in GOLDEN["hermite_coeff"]["values"].items():
        found = loss.contrast_coefficients(make_contrast(name))
        for k, c in known.items():
            value = found[int(k)] * math.factorial(int(k)) if int(k) < len(found) else 0.0
            assert value == pytest.approx(c, abs=GOLDEN["hermite_coeff"]["tol"])


@pytest.mark.parametrize("name", ["rademacher", "laplace", "chi2_4"])
def test_the_fourth_hermite_mean_is_the_fourth_cumulant(name):
    source = make_source({"chi2": 4} if name == "chi2_4" else name)
    expected = GOLDEN["kappa4"]["values"][name]
    assert loss.hermite_mean(source, 4) == pytest.approx(expected, abs=1e-9)
    assert loss.hermite_mean(source, 2) == 0.0


@pytest.mark.parametrize("contrast", ["exp", "logcosh", "kurtosis", "he4"])
@pytest.mark.parametrize("source", ["rademacher", "laplace", {"chi2": 1}])
def test_even_contrasts_have_information_exponent_four(contrast, source):
    given, law = make_contrast(contrast), make_source(source)
    assert loss.information_exponent(given, law) == 4
    ratio = Loss(given, law, 0.5).at(np.array([2e-3, 1e-3])).slope
    assert ratio[0] / ratio[1] == pytest.approx(8, rel=1e-3)


def test_other_information_exponents():
    assert loss.information_exponent(make_contrast("s**3"), make_source({"chi2": 2})) == 3
    assert loss.information_exponent(make_contrast("s**3"), make_source("laplace")) is None
    assert loss.information_exponent(make_contrast("exp"), make_source("gaussian")) is None
    sixth = make_source(
        {"discrete": {"values": [-math.sqrt(3), 0.0, math.sqrt(3)], "weights": [1, 4, 1]}}
    )  # the moments of a normal variable up to the fifth
    assert loss.information_exponent(make_contrast("exp"), sixth) == 6


SIGNS = [
    ("rademacher", {"exp": 1, "logcosh": 1, "kurtosis": -1, "he4": -1}),
    ("uniform", {"exp": 1, "logcosh": 1, "kurtosis": -1, "he4": -1}),
    ("laplace", {"exp": -1, "logcosh": -1, "kurtosis": 1, "he4": 1}),
    ({"chi2": 1}, {"exp": -1, "logcosh": -1, "kurtosis": 1, "he4": 1}),
    ({"bernoulli_gaussian": 0.1}, {"exp": -1, "logcosh": -1, "kurtosis": 1, "he4": 1}),
]


@pytest.mark.parametrize(("source", "signs"), SIGNS, ids=[str(one[0]) for one in SIGNS])
def test_directions_and_no_turn(source, signs):
    law, a = make_source(source), np.array([0.05, 0.3, 0.6, 0.95, 1.0])
    for contrast, sign in signs.items():
        given = make_contrast(contrast)
        assert direction_of(given, law) == sign
        for gamma in (0.1, 0.5, 0.95):
            assert np.all(sign * Loss(given, law, gamma).at(a).slope > 0)


def test_directions_without_a_leading_term():
    """A fourth moment that is infinite, and a contrast that is odd."""
    assert direction_of(make_contrast("exp"), make_source({"student": 3})) == -1
    assert direction_of(make_contrast("s**3"), make_source({"chi2": 2})) == 1
    assert direction_of(make_contrast("-s**3"), make_source({"chi2": 2})) == -1


def test_there_is_no_direction_to_nothing():
    with pytest.raises(HdicaError, match="does not depend on the overlap"):
        direction_of(make_contrast("logcosh"), make_source("gaussian"))


@pytest.mark.parametrize("source", ["laplace", {"chi2": 0.5}])
def test_a_loss_that_turns_has_no_direction_of_its_own(source):
    """G = He_6 - 2 He_4 and terms of no effect: L falls with Q^4 and rises with Q^6."""
    given, law = make_contrast("s**6 - 17*s**4"), make_source(source)
    slopes = Loss(given, law, 1.0).at(np.array([0.05, 1.0])).slope
    assert slopes[0] < 0 < slopes[1]
    with pytest.raises(HdicaError, match="turns before overlap"):
        direction_of(given, law)


def test_infinite_losses_are_refused():
    with pytest.raises(HdicaError, match="tails are too heavy"):
        loss_of("kurtosis", {"student": 4}, 0.5).at(np.array(0.5))
    with pytest.raises(HdicaError, match="tails are too heavy"):
        variance(make_contrast("kurtosis"), make_source({"student": 5}), 0.5)


@pytest.mark.parametrize("case", VARIANCES["values"], ids=title)
def test_variances(case):
    found, error = variance(*ingredients(case), case["gamma"])
    assert found == pytest.approx(case["V"], rel=VARIANCES["tol"])
    assert error < 1e-10 * found


def test_variance_without_whitening_is_larger():
    given = make_contrast("exp"), make_source("rademacher")
    inside, outside = (variance(*given, 0.5, one)[0] for one in (True, False))
    assert 2 < outside / inside < 23
