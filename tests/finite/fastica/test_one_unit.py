"""One-unit FastICA from many starts: golden numbers, plain NumPy, and the same bits."""

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.finite.fastica import iteration
from hdica.finite.fastica.iteration import Fit, accumulate, best, fastica, scores
from hdica.ingredients.contrasts import make_contrast
from tests.finite.fastica.reference import GOLDEN, golden_samples, plain_fastica, step, white

CONTRASTS = ["exp", "logcosh", "kurtosis", "he4", "log(cosh(2*s))/2", "s**3 + s**4/7"]
FIELDS = ("w", "iterations", "converged", "score", "path")


def starts(k, d, seed=5):
    return np.random.default_rng(seed).standard_normal((k, d))


@pytest.mark.parametrize(("name", "key"), [("exp", "exp"), ("kurtosis", "kurt")])
def test_golden_numbers(name, key):
    wanted, contrast = GOLDEN["fastica_deterministic"]["values"], make_contrast(name)
    sources, x, y = golden_samples()
    assert np.allclose(x[0], wanted["X_first"], atol=1e-13)
    start = np.ones((1, 3)) / np.sqrt(3)
    a, b = accumulate(y, start, contrast)
    assert np.allclose((a - b[:, None] * start)[0] / len(y), wanted[key]["wtilde_1"], atol=1e-13)
    found = fastica(y, start, contrast, tolerance=1e-15, path=True)
    assert found.converged[0]
    assert np.allclose(found.path[0, 1], wanted[key]["w_1"], atol=1e-12)
    last = np.array(wanted[key]["w_converged_up_to_sign"])
    assert abs(found.w[0] @ last) == pytest.approx(1, abs=1e-12)
    height = found.score[0] + contrast.gaussian_mean
    assert height == pytest.approx(wanted[key]["EG_at_w"], abs=1e-10)
    along = np.corrcoef(y @ found.w[0], sources[:, 0])[0, 1]
    assert abs(along) > 0.9999


@pytest.mark.parametrize("name", CONTRASTS)
@pytest.mark.parametrize(("n", "d"), [(3, 2), (8, 1), (61, 3), (400, 4), (777, 7), (1200, 70)])
def test_sums_are_those_of_numpy(n, d, name):
    contrast, rng = make_contrast(name), np.random.default_rng(n)
    y = rng.standard_normal((n, d))
    for k in (1, 2, 5):
        w = rng.standard_normal((k, d)) / np.sqrt(d)
        a, b = accumulate(y, w, contrast)
        s = y @ w.T
        curvature, rounding = contrast.curvature(s), np.abs(y) @ np.abs(w.T)
        size = np.abs(y).T @ (np.abs(contrast.slope(s)) + np.abs(curvature) * rounding)
        assert np.all(np.abs(a.T - y.T @ contrast.slope(s)) <= 1e-14 * size)
        assert np.all(np.abs(b - curvature.sum(0)) <= 1e-13 * (1 + np.abs(curvature)).sum(0))
        values = contrast.value(s)
        off = np.abs(scores(y, w, contrast) + contrast.gaussian_mean - values.mean(0))
        assert np.all(off <= 1e-13 * (1 + np.abs(values)).mean(0))


def sizes_of_terms(name, s):
    """Of the terms of g and g' that may cancel, and the error of the exponential."""
    e, rounding = np.exp(-s * s / 2), 1.5e-15
    if name == "exp":  # which inherits the rounding of s^2/2
        return abs(s) * e, (1 + s * s) * e, rounding + 2e-16 * s * s
    if name == "logcosh":
        return np.tanh(abs(s)), 1 / np.cosh(s) ** 2, rounding
    return 4 * abs(s) * (s * s + 3), 12 * (s * s + 1), rounding


@pytest.mark.parametrize("name", ["exp", "logcosh", "kurtosis", "he4"])
def test_contrasts_are_right_to_the_last_places_wherever_s_is(name):
    contrast, one = make_contrast(name), np.ones((1, 1))
    s = np.concatenate([np.geomspace(1e-300, 36, 201), np.linspace(0.01, 9, 200), [0.0]])
    for at in np.concatenate([-s, s]):
        a, b = accumulate(np.array([[at]]), one, contrast)
        g_size, slope_size, far = sizes_of_terms(name, at)
        assert abs(a[0, 0] - at * contrast.slope(at)) <= far * abs(at) * g_size
        assert abs(b[0] - contrast.curvature(at)) <= far * slope_size
        height = scores(np.array([[at]]), one, contrast)[0] + contrast.gaussian_mean
        terms = at**4 + 6 * at**2 + 3 if name in ("kurtosis", "he4") else 1 + abs(at)
        assert abs(height - contrast.value(at)) <= far * terms


@pytest.mark.parametrize("name", ["exp", "logcosh"])
def test_contrasts_end_where_they_are_flat(name):
    contrast, one = make_contrast(name), np.ones((1, 1))
    for at in (-700.0, -45.0, 45.0, 700.0, 1e150):
        a, b = accumulate(np.array([[at]]), one, contrast)
        assert a[0, 0] == pytest.approx(at * contrast.slope(at), abs=1e-290 * at * at)
        assert b[0] == pytest.approx(float(contrast.curvature(at)), abs=1e-290)


@pytest.mark.parametrize("name", CONTRASTS[:5])
def test_iterates_are_those_of_numpy(name):
    y, contrast = white(600, 5), make_contrast(name)
    w = starts(4, 5)
    found = fastica(y, w, contrast, tolerance=1e-8, most=60, path=True)
    for j in range(4):
        way, converged = plain_fastica(y, w[j], contrast, 1e-8, 60)
        assert converged == found.converged[j]
        assert len(way) == found.iterations[j]
        assert np.allclose(found.path[j, 1 : len(way) + 1], way, atol=1e-9)
        assert np.array_equal(
            found.path[j, len(way) :], np.tile(found.w[j], (len(found.path[j]) - len(way), 1))
        )
        height = np.mean(contrast.value(y @ found.w[j])) - contrast.gaussian_mean
        assert found.score[j] == pytest.approx(height, abs=1e-12)


@pytest.mark.parametrize("name", ["exp", "logcosh", "log(cosh(2*s))/2"])
@pytest.mark.parametrize(("n", "d"), [(501, 4), (900, 13), (640, 129)])
def test_each_start_has_the_bits_that_it_has_alone(n, d, name, monkeypatch):
    y, contrast, w = white(n, d), make_contrast(name), starts(7, d)
    options = {"tolerance": 1e-9, "most": 9}
    whole = fastica(y, w, contrast, **options)
    assert len({*whole.iterations}) > 1 or d > 100  # starts drop out
    for j in range(7):
        alone = fastica(y, w[j : j + 1], contrast, **options)
        for field in FIELDS[:4]:
            assert np.array_equal(getattr(alone, field)[0], getattr(whole, field)[j]), field
    monkeypatch.setattr(iteration, "KEPT", 1)
    anew = fastica(y, w, contrast, **options)
    assert all(np.array_equal(getattr(anew, f), getattr(whole, f)) for f in FIELDS[:4])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["abs(s)**1.5", "sqrt(s**4 + s**6)"])
@pytest.mark.parametrize("n", [7, 61, 64])
def test_a_formula_is_not_asked_where_there_is_no_sample(name, n):
    """The curvature of one is infinite at 0, the slope of the other no number: 0/0."""
    contrast, rng = make_contrast(name), np.random.default_rng(n)
    y, w = rng.standard_normal((n, 3)), rng.standard_normal((2, 3))
    a, b = accumulate(y, w, contrast)
    s = y @ w.T
    np.testing.assert_allclose(a.T, y.T @ contrast.slope(s), rtol=1e-10, atol=1e-10)
    assert b == pytest.approx(contrast.curvature(s).sum(0), rel=1e-10)
    height = contrast.value(s).mean(0) - contrast.gaussian_mean
    assert scores(y, w, contrast) == pytest.approx(height, rel=1e-10)


def test_sums_of_blocks_make_the_same_iterate():
    y, contrast, w = white(1000, 6), make_contrast("logcosh"), starts(3, 6)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    each = [accumulate(block, w, contrast) for block in (y[:300], y[300:301], y[301:])]
    a, b = sum(one[0] for one in each), sum(one[1] for one in each)
    for j in range(3):
        assert np.allclose((a[j] - b[j] * w[j]) / 1000, step(y, w[j], contrast), atol=1e-13)


def test_the_best_start_is_the_least_gaussian_of_those_that_converged():
    score = np.array([0.1, -0.5, 0.3, np.nan])
    w, count = np.zeros((4, 2)), np.ones(4, dtype=np.int64)

    def of(*converged):
        return best(Fit(w, count, np.array(converged), score))

    assert of(True, True, True, True) == 1
    assert of(True, False, True, True) == 2
    assert of(False, False, False, False) == 1


def test_an_iterate_that_overflows_stays_where_it_is():
    y = white(50, 2) * 1e120
    found = fastica(y, np.array([[1.0, 2.0]]), make_contrast("kurtosis"))
    assert not found.converged[0]
    assert found.iterations[0] == 0
    assert np.allclose(found.w[0], np.array([1.0, 2.0]) / np.sqrt(5))


@pytest.mark.parametrize(
    ("y", "w", "words"),
    [
        (np.ones(3), np.ones((1, 3)), "samples of shape"),
        (np.ones((0, 3)), np.ones((1, 3)), "samples of shape"),
        (np.ones((4, 3)), np.ones((1, 2)), "starts of shape"),
        (np.ones((4, 3)), np.ones((0, 3)), "starts of shape"),
        (np.ones((4, 3)), np.zeros((1, 3)), "start of length 0"),
        (np.ones((4, 3)), np.full((1, 3), np.nan), "start of length nan"),
    ],
)
def test_refusals(y, w, words):
    with pytest.raises(HdicaError, match=words):
        fastica(y, w, make_contrast("exp"))


@pytest.mark.parametrize("text", ["s**3 + s**4/7", "log(cosh(2*s))/2"])
def test_a_slope_alone_does_what_its_contrast_does_and_has_no_score(text):
    contrast, y, w = make_contrast(text), white(300, 5), starts(3, 5)
    whole, alone = (fastica(y, w, aim) for aim in (contrast, contrast.formula.derivative))
    for name in ("w", "iterations", "converged"):
        assert np.array_equal(getattr(whole, name), getattr(alone, name))
    assert np.isfinite(whole.score).all()
    assert np.isnan(alone.score).all()
