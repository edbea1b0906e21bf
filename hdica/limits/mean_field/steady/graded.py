"""Relaxation modes of a density whose rates differ by more than a double holds.

The generator L of :mod:`hdica.limits.mean_field.steady.modes` loses its slowest rates in the
rounding of the fastest. Its inverse does not: with f' = u and the distribution function F of the
density p,

    f(x) = integral u(y) {F(y) - [y > x]} dy,

and rates are the reciprocals of E f^2/E u^2. The kernel has one sign on either side of x, and F and
1 - F are summed from their own ends, so that every entry of the matrix is as good as p, and the
slowest rate, which belongs to its largest singular value, has all digits. Rates R times as fast
have an error of about 1e-16 sqrt(R).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.confinement import Confinement
from hdica.limits.mean_field.steady.panels import edges, potential
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
_NODES = 12
_FLAT = 0.1
"""Height above the bottom below which a well is one element, unless phi has a kink there."""
_SAME = 1e-9
_RISE = 6.0
"""Change of V across one element."""


@lru_cache(maxsize=1)
def _gauss() -> tuple[Array, Array, Array]:
    """Points and weights on [-1, 1], and integrals of their Lagrange polynomials from -1."""
    points, weights = scipy.special.roots_legendre(_NODES)
    inverse = np.linalg.inv(np.polynomial.legendre.legvander(points, _NODES - 1))
    basis = [Legendre.basis(j).integ(lbnd=-1)(points) for j in range(_NODES)]
    return points, weights, np.stack(basis, axis=1) @ inverse


def _elements(shape: Confinement, row: tuple[Array, Array, Array], panels: int) -> Array:
    """Ends of elements: at kinks, and at every scale on which the density varies."""
    ends = np.unique(edges(shape, *row, panels)[0][0])
    v = potential(shape, *row, ends[None])[0]
    kinks = np.isin(ends, shape.breaks(float(ends[0]), float(ends[-1])))
    kept = kinks | (v - v.min() > _FLAT)
    kept[[0, -1, int(v.argmin())]] = True
    ends = ends[kept]
    size = np.maximum(np.abs(ends[1:]), np.abs(ends[:-1]))
    apart = np.diff(ends) > _SAME * np.minimum(size, np.ptp(ends))
    ends = ends[np.concatenate([[True], apart])]
    rise = np.abs(np.diff(potential(shape, *row, ends[None])[0]))
    parts = [
        np.linspace(low, high, max(1, int(np.ceil(one / _RISE))), endpoint=False)
        for low, high, one in zip(ends[:-1], ends[1:], rise, strict=True)
    ]
    return np.concatenate([*parts, ends[-1:]])


def _inverse_root(x: Array, mass: Array, half: Array) -> Array:
    """The matrix whose singular values squared are reciprocal rates; points in rows."""
    _, weights, rising = _gauss()
    count, nodes = mass.shape
    whole = mass.sum(axis=1)
    before = np.concatenate([[0.0], np.cumsum(whole)[:-1]])
    behind = np.concatenate([np.cumsum(whole[::-1])[::-1][1:], [0.0]])
    span, inside = half * weights, half[..., None] * rising
    below = np.einsum("ei,eij->ej", mass, inside) + behind[:, None] * span
    above = np.einsum("ei,eij->ej", mass, span[:, None, :] - inside) + before[:, None] * span
    element = np.arange(count)
    later = element[:, None] > element
    blocks = np.where(later[:, None, :, None], above, -below)
    kernel = np.broadcast_to(blocks, (count, nodes, count, nodes)).copy()
    kernel[element, :, element, :] = inside - below[:, None, :]
    root = np.sqrt(mass).ravel()
    flat = kernel.reshape(count * nodes, count * nodes)
    return np.asarray(flat * root[:, None] / root)


def graded_modes(
    shape: Confinement, a: float, k: float, tilt: float, panels: int
) -> tuple[Array, Array]:
    """Rates, increasing, and coefficients of x, x^2 and Psi, shape (3, modes)."""
    row = (np.array([a]), np.array([k]), np.array([tilt]))
    ends = _elements(shape, row, panels)
    points, weights, _ = _gauss()
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (points + 1)
    v = potential(shape, *row, x.reshape(1, -1))[0].reshape(x.shape)
    mass = half * weights * np.exp(v.min() - v)
    mass /= mass.sum()
    with one_thread():
        vectors, values, _ = np.linalg.svd(_inverse_root(x, mass, half))
    p, flat = mass.ravel(), x.ravel()
    columns = [flat, flat**2, shape.potential(flat)]
    centred = np.stack([f - np.sum(p * f) for f in columns]) * np.sqrt(p)
    coefficients = np.einsum("fi,im->fm", centred, vectors)
    return 1 / values**2, coefficients
