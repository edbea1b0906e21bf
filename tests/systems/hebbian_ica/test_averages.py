"""Averages over y = R s + z: closed forms, quadrature, Monte Carlo."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.quadrature import Nodes, gauss, gaussian_nodes
from hdica.ingredients.sources import make_source
from hdica.systems.hebbian_ica.averages import (
    COARSE,
    FINE,
    mean_function,
    product,
    quadrature,
    source_rule,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_limit.json").read_text())
PHI = {"cubic": "x**3", "tanh": "tanh(x)"}
MIXED = np.array([[0.6, 0.1], [-0.2, 0.5]])
TURN = np.array([[0.6, 0.8], [-0.8, 0.6]])
SKEWED = [{"chi2": 3}, {"discrete": {"values": [-1, 0, 3], "weights": [5, 3, 1]}}]


def laws(*specs):
    return [make_source(spec) for spec in specs]


def means(r, phi, sources):
    """The averages at one R with an estimate of their error: a coarser quadrature's difference."""
    found = mean_function(phi, sources)(r)
    rough = mean_function(phi, sources, COARSE, False)(r)
    phi_s, phi_y, phi_phi = found
    error = largest(found, rough) + FINE
    return SimpleNamespace(phi_s=phi_s, phi_y=phi_y, phi_phi=phi_phi, error=error)


def largest(one, other):
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def sampled(r, phi, sources, count, seed):
    """Monte Carlo of the three averages: means and standard errors."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(np.eye(len(r)) - r @ r.T)
    root = vectors * np.sqrt(np.maximum(values, 0))
    s = np.stack([law.sample(rng, count) for law in sources], axis=1)
    y = s @ r.T + rng.standard_normal((count, len(r))) @ root.T
    p = phi.value(y)
    products = [p[:, :, None] * other[:, None] for other in (s, y, p)]
    return [(one.mean(0), one.std(0) / math.sqrt(count)) for one in products]


def scores(found, drawn):
    return [np.abs(a - m) / se for a, (m, se) in zip(found, drawn, strict=True)]


@pytest.mark.parametrize("name", GOLDEN["averages"])
def test_averages_match_independent_numbers(name):
    kind, *sources = name.split("_")
    row = GOLDEN["averages"][name]
    found = means(np.array(row["R"]), parse_formula(PHI[kind]), laws(*sources))
    tolerance = {"cubic": 1e-13, "tanh": 1e-11}[kind]
    for part in ("phi_s", "phi_y", "phi_phi"):
        assert getattr(found, part) == pytest.approx(np.array(row[part]), abs=20 * tolerance)
    assert found.error < 1e-9


def test_cubic_of_symmetric_sources_has_the_closed_forms():
    sources = laws("uniform", "laplace")
    k4, k6 = [], []
    for law in sources:
        m4, m6 = law.moment(4), law.moment(6)
        k4.append(m4 - 3)
        k6.append(m6 - 15 * m4 + 30)
    r = np.array([[0.5, 0.3], [-0.4, 0.6], [0.1, -0.2]])
    found = means(r, parse_formula("x**3"), sources)
    assert found.phi_s == pytest.approx(3 * r + k4 * r**3, abs=1e-14)
    assert found.phi_y == pytest.approx(3 * np.eye(3) + (k4 * r**3) @ r.T, abs=1e-14)
    crossed = (k4 * r) @ (r**3).T
    expected = 3 * (crossed + crossed.T) + (k6 * r**3) @ (r**3).T
    own = 15 + 15 * (r**4) @ k4 + (r**6) @ k6
    np.fill_diagonal(expected, own)
    assert found.phi_phi == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("text", ["x**3", "x**2", "x**5 - 2*x**2 + 0.3", "x + 0.1*x**4"])
@pytest.mark.parametrize("r", [MIXED, TURN, np.eye(2)[:, :1], 0 * MIXED], ids=str)
def test_closed_forms_of_polynomials_equal_quadrature(text, r):
    phi, sources = parse_formula(text), laws({"chi2": 3}, "laplace")[: r.shape[1]]
    exact, numeric = mean_function(phi, sources)(r), quadrature(phi, sources)(r)
    scale = max(float(np.abs(one).max()) for one in exact)
    assert largest(exact, numeric) < 1e-11 * scale


@pytest.mark.parametrize("text", ["x**3", "tanh(x)", "x**2 - x"])
def test_skewed_sources_agree_with_monte_carlo(text):
    phi, sources = parse_formula(text), laws(*SKEWED)
    found = mean_function(phi, sources)(MIXED)
    drawn = sampled(MIXED, phi, sources, 400_000, 11)
    assert max(float(z.max()) for z in scores(found, drawn)) < 4.5


def test_monte_carlo_rejects_the_symmetric_form_for_skewed_sources():
    # Without the third cumulants <y_1^3 y_2^3> is wrong, and the sample must be able to tell.
    pair = {"discrete": {"values": [0, 1], "weights": [4, 1]}}
    phi, sources = parse_formula("x**3"), laws(pair, pair)
    r = np.array([[0.7, 0.6], [0.6, -0.7]])
    k4 = np.array([law.moment(4) - 3 for law in sources])
    k6 = np.array([law.moment(6) - 15 * law.moment(4) + 30 for law in sources])
    a, b = r
    printed = 3 * np.sum(k4 * (a * b**3 + a**3 * b)) + np.sum(k6 * a**3 * b**3)
    mean, error = sampled(r, phi, sources, 400_000, 12)[2]
    exact = mean_function(phi, sources)(r)[2]
    assert abs(exact[0, 1] - mean[0, 1]) < 4.5 * error[0, 1]
    assert abs(printed - mean[0, 1]) > 10 * error[0, 1]


@pytest.mark.parametrize("pair", [(0.6, 0.8), (0.6, 0.79), (0.9, 0.43), (0.3, 0.2)], ids=str)
@pytest.mark.parametrize("text", ["tanh(x)", "x*exp(-x**2/2)"])
def test_correlated_and_singular_noise_agrees_with_a_plain_product_rule(pair, text):
    # The first pair leaves a noise of rank one: z_2 is a multiple of z_1.
    r, phi, law = np.array(pair)[:, None], parse_formula(text), make_source("uniform")
    rest = np.eye(2) - r @ r.T
    values, vectors = np.linalg.eigh(rest)
    root = vectors * np.sqrt(np.maximum(values, 0))
    points, weights = product([law.nodes, gaussian_nodes(80), gaussian_nodes(80)], 10**7)
    y = points[:, :1] @ r.T + points[:, 1:] @ root.T
    p = phi.value(y)
    plain = [p.T @ (weights[:, None] * other) for other in (points[:, :1], y, p)]
    found = means(r, phi, [law])
    assert largest((found.phi_s, found.phi_y, found.phi_phi), plain) < 1e-11
    assert found.error < 1e-7


@pytest.mark.parametrize("text", ["sign(x)", "abs(x)", "x - sign(x)"])
@pytest.mark.parametrize("sources", [["uniform", "laplace"], ["rademacher", {"student": 9}]])
def test_kinks_and_heavy_tails_agree_with_monte_carlo(text, sources):
    phi, known = parse_formula(text), laws(*sources)
    found = means(MIXED, phi, known)
    drawn = sampled(MIXED, phi, known, 400_000, 13)
    parts = (found.phi_s, found.phi_y, found.phi_phi)
    # sign(y)^2 is 1 in every draw.
    z = [np.abs(a - m) / np.maximum(se, 1e-9) for a, (m, se) in zip(parts, drawn, strict=True)]
    assert max(float(one.max()) for one in z) < 4.5
    assert found.error < 1e-4


def test_kinked_averages_on_the_boundary_say_that_they_are_inaccurate():
    phi, sources = parse_formula("sign(x)"), laws("uniform", "laplace")
    found = means(np.eye(2), phi, sources)
    exact = math.sqrt(3) / 2  # <|s|> of the uniform law
    assert abs(found.phi_s[0, 0] - exact) <= found.error
    assert found.error > 1e-3


@pytest.mark.deep
def test_error_is_an_upper_bound_away_from_kinks():
    phi, sources = parse_formula("tanh(2*x)"), laws("laplace", "uniform")
    fine = mean_function(phi, sources, 1e-13)(MIXED)
    found = means(MIXED, phi, sources)
    assert largest((found.phi_s, found.phi_y, found.phi_phi), fine) <= found.error
    assert found.error < 1e-6


def test_a_source_that_no_projection_sees_leaves_exactly_zero():
    r = np.array([[0.6, 0.0], [-0.2, 0.0]])
    for text in ("x**3", "tanh(x)", "x**2"):
        phi_s, _, _ = mean_function(parse_formula(text), laws({"chi2": 3}, "laplace"))(r)
        assert np.all(phi_s[:, 1] == 0.0)


def test_gauss_rules_are_exact_for_polynomials_and_short():
    law = make_source("laplace")
    rule = gauss(law.nodes, 7)
    for p in range(14):
        scale = float(rule.mean(np.abs(rule.points) ** p))
        assert rule.mean(rule.points**p) == pytest.approx(law.moment(p), abs=1e-12 * scale)
    few = Nodes(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    assert gauss(few, 7) is few
    phi = parse_formula("tanh(x)")
    short, loose = (source_rule(phi, law, tolerance) for tolerance in (1e-11, 1e-7))
    assert loose.points.size < short.points.size < law.nodes.points.size / 3
    assert short.weights.sum() == pytest.approx(1.0, abs=1e-11)


def test_what_cannot_be_averaged_is_refused_in_one_sentence():
    with pytest.raises(HdicaError, match="no finite moment of order 5"):
        means(np.array([[0.5]]), parse_formula("x**3"), laws({"student": 5}))
    with pytest.raises(HdicaError, match="quadrature points"):
        means(np.full((1, 5), 0.1), parse_formula("tanh(x)"), laws(*["laplace"] * 5))
    with pytest.raises(HdicaError, match="tails are too heavy"):
        means(np.array([[0.5, 0.5]]), parse_formula("x*abs(x)"), laws("uniform", {"student": 3}))
