"""Critical points of the objective: counts, values and Hessians."""

import itertools
import math

import numpy as np
import pytest

from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.rule import moments_of
from hdica.systems.tensorial_ica.transient import counts, drift, landscape, objective
from tests.systems.tensorial_ica.reference import representative, tangent_gradient, tangent_hessian


def tangents(v):
    """An orthonormal basis of the tangent space, shape (d, d - 1)."""
    return np.linalg.svd(v[None])[2][1:].T


def along(v, direction, step):
    """The great circle through v."""
    size = np.linalg.norm(direction)
    return np.cos(size * step) * v + np.sin(size * step) * direction / size


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_counts_by_enumeration(d):
    points = [p for p in itertools.product((-1, 0, 1), repeat=d) if any(p)]
    sizes = [sum(map(abs, p)) for p in points]
    assert [sizes.count(k) for k in range(1, d + 1)] == counts(d)
    assert counts(d) == [2**k * math.comb(d, k) for k in range(1, d + 1)]
    assert landscape(d)["multiplicity"].tolist() == counts(d)
    assert sum(counts(d)) == 3**d - 1 == len(points)
    for p in points:
        v = np.array(p) / math.sqrt(sum(map(abs, p)))
        assert np.abs(tangent_gradient(v)).max() < 1e-14


def test_no_other_point_is_critical():
    """At a critical point v_i^2 is zero or one number: three different sizes have a drift."""
    v = np.array([0.8, 0.6, 0.0])
    assert np.abs(tangent_gradient(v)).max() > 0.1


def test_counts_of_large_dimensions():
    known, exact = landscape(1000), counts(1000)
    assert sum(exact) == 3**1000 - 1
    assert exact[699] == 2**700 * math.comb(1000, 700)
    assert known["log10_multiplicity"].max() == pytest.approx(475.5, abs=2)
    k = int(np.argmax(known["log10_multiplicity"]))
    expected = (math.lgamma(1001) - math.lgamma(k + 2) - math.lgamma(1000 - k)) / math.log(10)
    assert known["log10_multiplicity"][k] == pytest.approx(
        expected + (k + 1) * math.log10(2), rel=1e-12
    )
    assert known["multiplicity"][0] == pytest.approx(2000)
    assert known["multiplicity"][k] == np.inf


@pytest.mark.parametrize(("d", "k"), [(5, 1), (5, 2), (5, 4), (5, 5), (2, 2), (3, 1)])
def test_hessians_by_finite_differences(d, k):
    rng = np.random.default_rng(d + k)
    v = representative(d, k, rng.choice([-1, 1], k))
    basis, h = tangents(v), 1e-4
    by_differences = np.zeros((d - 1, d - 1))
    for i, j in itertools.product(range(d - 1), repeat=2):
        a, b = basis[:, i], basis[:, j]
        # Polarisation of the second derivative along great circles.
        for sign in (1, -1):
            w = a + sign * b
            if np.any(w):
                ends = objective(along(v, w, h)) - 2 * objective(v) + objective(along(v, w, -h))
                by_differences[i, j] += sign * ends / h**2 / 4
    found = basis.T @ tangent_hessian(v) @ basis
    assert by_differences == pytest.approx(found, abs=1e-6)
    known = landscape(d)
    unstable = int(known["unstable"][k - 1])
    expected = [-4 * known["rate_inside"][k - 1]] * unstable
    expected += [-4 * known["rate_outside"][k - 1]] * (d - 1 - unstable)
    assert np.linalg.eigvalsh(found) == pytest.approx(np.sort(expected), abs=1e-12)
    assert objective(v) == pytest.approx(known["value"][k - 1])


def test_hessians_elsewhere_are_derivatives_of_the_gradient():
    v = np.array([0.5, -0.1, 0.7, 0.3])
    v /= np.linalg.norm(v)
    basis, h = tangents(v), 1e-5
    slopes = [
        (tangent_gradient(along(v, b, h)) - tangent_gradient(along(v, b, -h))) / (2 * h)
        for b in basis.T
    ]
    assert (
        pytest.approx(basis.T @ tangent_hessian(v) @ basis, abs=1e-8)
        == basis.T @ np.array(slopes).T
    )
    assert tangent_hessian(v) @ v == pytest.approx(np.zeros(4), abs=1e-14)
    assert tangent_gradient(v) == pytest.approx(-4 * drift(v))


def test_rates_of_the_drift():
    v, h = representative(6, 3), 1e-6
    known = landscape(6)
    for direction, rate in (
        (np.array([1, -1, 0, 0, 0, 0]) / 2**0.5, known["rate_inside"][2]),
        (np.eye(6)[4], known["rate_outside"][2]),
    ):
        moved = drift(along(v, direction, h)) - drift(along(v, direction, -h))
        assert moved / (2 * h) == pytest.approx(rate * direction, abs=1e-9)
    assert (known["rate_inside"] * known["support"])[1:].tolist() == [2.0] * 5
    assert (known["rate_outside"] * known["support"])[:-1].tolist() == [-1.0] * 5


def test_kinds():
    known = landscape(4)
    assert known["stable"].tolist() == [1, 0, 0, 0]
    assert known["kind"].tolist() == [0, 1, 1, 1]
    assert known["unstable"].tolist() == [0, 1, 2, 3]


def test_the_objective_is_the_fourth_moment_of_a_projection():
    m = moments_of(make_source("rademacher"))
    v = np.array([0.8, 0.36, -0.48])
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    assert 3 - (m.mu4 - 3) * objective(v) == pytest.approx(np.mean((signs @ v) ** 4))
