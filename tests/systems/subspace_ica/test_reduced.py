"""The reduced model and the thresholds of principal components: golden numbers and samples."""

import math

import numpy as np
import pytest

from hdica.ingredients.contrasts import make_contrast
from hdica.ingredients.sources import make_source
from hdica.systems.subspace_ica.prediction import (
    Reduction,
    best_strength,
    known_space,
    principal,
)
from tests.systems.subspace_ica.golden import GOLDEN, law

BBP, OVERLAPS = GOLDEN["bbp"], GOLDEN["predicted_overlaps"]


def equal(beta, rank, c):
    return Reduction(np.full(rank, beta), np.full(rank, rank**-0.5), c)


@pytest.mark.parametrize("case", BBP["values"], ids=lambda one: f"{one['c']}-{one['beta']}")
def test_thresholds(case):
    found = equal(case["beta"], 4, case["c"])
    tolerance = BBP["tol"]
    assert found.eigenvalues == pytest.approx(case["lambda"], abs=tolerance)
    assert found.phi2 == pytest.approx(case["phi2"], abs=tolerance)
    assert (case["beta"] > math.sqrt(case["c"])) is not case.get("below_threshold", False)
    if "gamma_c" in case:
        assert found.gamma == pytest.approx(case["gamma"], abs=tolerance)
        assert found.gamma_c == pytest.approx(case["gamma_c"], abs=tolerance)
        assert found.scores == pytest.approx(case["phiL2"], abs=tolerance)
    else:
        assert found.gamma_c == 0.0
        assert not found.direction_c.any()


def test_theorem_2():
    case = GOLDEN["theorem2"]
    alpha = np.array(case["params"]["alpha"])
    found = Reduction(np.array(case["params"]["beta"]), alpha, 0.0)
    for name, value in (("a", found.a), ("vtilde", found.direction)):
        assert value == pytest.approx(case["values"][name], abs=case["tol"])
    assert float(found.direction @ alpha) == pytest.approx(
        case["values"]["whitened_dir_dot_v"], abs=case["tol"]
    )
    white = found.gamma * np.outer(found.direction, found.direction) + found.noise
    assert np.max(np.abs(white - np.eye(3))) < 1e-15


@pytest.mark.parametrize("case", GOLDEN["beta_maximising_gamma_c"]["values"])
def test_the_best_strength(case):
    assert best_strength(case["c"]) == pytest.approx(case["beta_opt"], abs=1e-9)
    found = equal(best_strength(case["c"]), 3, case["c"])
    assert found.gamma_c == pytest.approx(case["gamma_c_max"], abs=1e-9)


@pytest.mark.parametrize("c", [1e-9, 0.01, 0.7, 1.0, 3.0, 100.0])
def test_the_best_strength_is_the_root_and_the_maximum(c):
    beta = best_strength(c)
    assert abs(beta**3 - 3 * c * beta - 2 * c) < 1e-12 * (beta**3 + 1e-300) * 10
    top = equal(beta, 2, c).gamma_c
    assert top > max(equal(0.99 * beta, 2, c).gamma_c, equal(1.01 * beta, 2, c).gamma_c)


@pytest.mark.parametrize("case", OVERLAPS["values"], ids=lambda one: one["h"])
def test_predicted_overlaps(case):
    given = make_contrast(case["G"]), make_source(law(case["h"]))
    count = case["ratio"] * case["D"]
    model = equal(case["beta"], case["r"], 1 / case["ratio"])
    assert model.gamma_c == pytest.approx(case["gamma_c"], abs=1e-12)
    found = principal(*given, model, count, case["r"])
    for name, value in (
        ("V", found.variance),
        ("m", found.reduced),
        ("ov", found.overlap),
        ("pc", found.correlation),
    ):
        assert value == pytest.approx(case[name], rel=OVERLAPS["tol"])


def test_unequal_strengths():
    """One spike below its threshold is lost; the others keep their shares, all by hand."""
    beta, alpha, c = np.array([3.0, 0.5, 0.2]), np.array([0.6, 0.64, 0.48]), 0.125
    found = Reduction(beta, alpha, c)
    kept = np.array([1 - c / 9, 1 - c / 0.25, 0.0])
    phi = np.sqrt(kept / (1 + c / beta))
    a = alpha / np.sqrt(1 + beta)
    gamma_c = float(np.sum(a**2 * kept))
    assert found.stands_out.tolist() == [True, True, False]
    assert found.gamma_c == pytest.approx(gamma_c, rel=1e-14)
    direction = alpha * np.sqrt(kept / (1 + beta)) / math.sqrt(gamma_c)
    assert found.direction_c == pytest.approx(direction, rel=1e-14)
    turned = float(np.sum(direction * phi * a)) / math.sqrt(float(a @ a))
    assert found.turned == pytest.approx(turned, rel=1e-14)
    assert found.length == pytest.approx(math.sqrt(float(np.sum(alpha**2 * phi**2))), rel=1e-14)
    fewer = Reduction(beta, alpha, c, size=1)
    assert fewer.gamma_c == pytest.approx(0.36 / 4 * kept[0], rel=1e-14)
    assert fewer.gamma == found.gamma


@pytest.mark.parametrize("c", [0.25, 0.5])
def test_eigenvectors_of_samples(c):
    """Eigenvalues, overlaps, and the signal in whitened scores of unequal spikes, D = 250."""
    size, beta, alpha = 250, np.array([4.0, 2.0]), np.array([0.6, 0.8])
    found, rng = Reduction(beta, alpha, c), np.random.default_rng(5)
    n, runs = round(size / c), 12
    kept = np.empty((runs, 5))
    for k in range(runs):
        x = rng.standard_normal((n, size))
        h = rng.integers(0, 2, n) * 2.0 - 1.0
        x[:, :2] += np.outer(h - x[:, :2] @ alpha, alpha)
        x[:, :2] += np.sqrt(beta) * rng.standard_normal((n, 2))
        values, vectors = np.linalg.eigh(x.T @ x / n)
        top = vectors[:, :-3:-1]
        scores = x @ top / np.sqrt(values[:-3:-1])
        signal = scores.T @ h / n
        kept[k] = [*values[:-3:-1], top[0, 0] ** 2, top[1, 1] ** 2, signal @ signal]
    expected = [*found.eigenvalues, *found.phi2, found.gamma_c]
    error = kept.std(axis=0, ddof=1) / math.sqrt(runs)
    assert np.all(np.abs(kept.mean(axis=0) - expected) < 4 * error + 3 / size)


def test_known_spaces_and_infinitely_many_samples():
    given = make_contrast("exp"), make_source("rademacher")
    model = equal(1.0, 4, 0.0)
    without = principal(*given, model, math.inf, 4)
    assert (without.overlap, without.correlation) == (pytest.approx(1.0), pytest.approx(1.0))
    inside = known_space(*given, 0.5, 1000.0, 4)
    outside = known_space(*given, 0.5, 1000.0, 4, in_sample=False)
    assert inside.correlation == pytest.approx((1 + 3 * inside.variance / 1000) ** -0.5)
    assert inside.overlap == pytest.approx((1 + 3 * (inside.variance + 0.25) / 1000) ** -0.5)
    assert outside.overlap == outside.correlation < inside.overlap


def test_nothing_is_predicted_below_all_thresholds():
    given = make_contrast("exp"), make_source("rademacher")
    found = principal(*given, equal(0.3, 4, 0.5), 1000.0, 4)
    assert (found.overlap, found.correlation, found.reduced) == (0.0, 0.0, 0.0)
    assert math.isinf(found.variance)
