"""Critical points of the objective: counts, values and Hessians."""

import itertools
import math

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.limit.landscape import (
    count,
    fourth_moment,
    kind,
    landscape,
    objective,
    representative,
    tangent_gradient,
    tangent_hessian,
    total,
)
from hdica.systems.tensorial_ica.limit.moments import moments_of
from hdica.systems.tensorial_ica.limit.transient import drift


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
    known = landscape(d)
    assert [sizes.count(k) for k in range(1, d + 1)] == known.count.tolist()
    assert known.count.tolist() == [count(d, k) for k in range(1, d + 1)]
    assert sum(known.count) == total(d) == len(points)
    for p in points:
        v = np.array(p) / math.sqrt(sum(map(abs, p)))
        assert np.abs(tangent_gradient(v)).max() < 1e-14


def test_no_other_point_is_critical():
    """At a critical point v_i^2 is zero or one number: three different sizes have a drift."""
    v = np.array([0.8, 0.6, 0.0])
    assert np.abs(tangent_gradient(v)).max() > 0.1


def test_counts_of_large_dimensions():
    known = landscape(1000)
    assert sum(known.count) == 3**1000 - 1
    assert known.count[699] == 2**700 * math.comb(1000, 700)
    assert known.log10_count.max() == pytest.approx(475.5, abs=2)
    huge = landscape(5000)
    k = np.argmax(huge.log10_count)
    assert huge.log10_count[k] == pytest.approx(math.log10(count(5000, int(k) + 1)), rel=1e-12)
    assert huge.count[0] == pytest.approx(10_000)
    assert huge.count[k] == np.inf


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
    expected = [known.inside[k - 1]] * known.inside_number[k - 1]
    expected += [known.outside[k - 1]] * known.outside_number[k - 1]
    assert np.linalg.eigvalsh(found) == pytest.approx(np.sort(expected), abs=1e-12)
    assert objective(v) == pytest.approx(known.value[k - 1])


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


def test_rates_of_the_drift_are_minus_a_quarter():
    v, h = representative(6, 3), 1e-6
    known = landscape(6)
    for direction, rate in (
        (np.array([1, -1, 0, 0, 0, 0]) / 2**0.5, -known.inside[2] / 4),
        (np.eye(6)[4], -known.outside[2] / 4),
    ):
        moved = drift(along(v, direction, h)) - drift(along(v, direction, -h))
        assert moved / (2 * h) == pytest.approx(rate * direction, abs=1e-9)
    assert (-known.inside / 4 * known.support).tolist() == [2.0] * 6
    assert (-known.outside / 4 * known.support).tolist() == [-1.0] * 6


def test_kinds():
    assert landscape(4).kinds == ("minimiser", "saddle", "saddle", "maximiser")
    assert [kind(1, 1), kind(2, 2)] == ["minimiser", "maximiser"]
    assert landscape(4).inside_number.tolist() == [0, 1, 2, 3]


def test_the_fourth_moment_is_an_average():
    source = make_source("rademacher")
    v = np.array([0.8, 0.36, -0.48])
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    assert fourth_moment(moments_of(source), v) == pytest.approx(np.mean((signs @ v) ** 4))


def test_what_is_no_support_is_refused():
    with pytest.raises(HdicaError, match="support = 4"):
        representative(3, 4)
    with pytest.raises(HdicaError, match="dimension = 0"):
        landscape(0)
