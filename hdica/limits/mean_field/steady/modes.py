"""Relaxation modes of one entry of the estimate in its steady effective potential.

The generator of dx = -g V'(x) dt + sqrt(2 g) dB, for which exp(-V) is steady, is self-adjoint
in L2(exp(-V)); its ground state is the constant. In psi = exp(-V/2) f it reads

    -g exp(V) d/dx exp(-V) df/dx  ->  g A* A,    A = d/dx + V'/2,

which spectral elements with a boundary at every kink resolve to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.confinement import Confinement
from hdica.limits.mean_field.steady.graded import graded_modes
from hdica.limits.mean_field.steady.panels import edges, potential
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
DEGREE = 12
PANELS = 14
_GROUND, _RANGE = 1e-6, 1e-11
"""Share of the slowest rate that the ground state, whose rate is 0, may have, and the smallest
share of the fastest one that the slowest may be, before rounding is seen in it."""


@dataclass(frozen=True)
class Modes:
    """Modes of one density; arrays of shape (modes,), by increasing rate, without the constant.

    Relaxation rates in units of the diffusion g, and coefficients <f, mode> of f = x, x^2 and
    Psi(x) under the density.
    """

    rate: Array
    x: Array
    square: Array
    energy: Array


@lru_cache(maxsize=4)
def _lobatto(degree: int) -> tuple[Array, Array, Array]:
    """Gauss-Lobatto-Legendre points, weights and differentiation matrix on [-1, 1]."""
    last = Legendre.basis(degree)
    inner = np.sort(last.deriv().roots().real)
    x = np.concatenate([[-1.0], inner, [1.0]])
    height = last(x)
    weights = 2 / (degree * (degree + 1) * height**2)
    gaps = x[:, None] - x + np.eye(x.size)
    matrix = height[:, None] / height / gaps
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return x, weights, matrix


def _elements(shape: Confinement, a: float, k: float, tilt: float) -> tuple[Array, Array, Array]:
    """Points (elements, nodes), half widths (elements, 1) and V' there."""
    row = (np.array([a]), np.array([k]), np.array([tilt]))
    ends, _ = edges(shape, *row, panels=PANELS)
    ends = ends[0][np.concatenate([[True], np.diff(ends[0]) > 1e-9 * np.ptp(ends[0])])]
    t, _, _ = _lobatto(DEGREE)
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (t + 1)
    # One-sided slopes: an end of an element may be a kink.
    inside = x + half * np.where(t == -1, 1e-9, np.where(t == 1, -1e-9, 0.0))
    return x, half, 2 * a * x + k * shape.psi(inside) - tilt


def _is_lost(rate: Array) -> bool:
    """Whether rounding is seen in the slowest of all rates, the ground state's 0 among them."""
    return bool(abs(rate[0]) > _GROUND * rate[1] or rate[1] < _RANGE * rate[-1])


def relaxation_modes(shape: Confinement, a: float, k: float, tilt: float) -> Modes:
    """All modes of the density exp{-a x^2 - k Psi(x) + tilt x}/Z on its spectral elements."""
    x, half, slope = _elements(shape, a, k, tilt)
    _, weights, matrix = _lobatto(DEGREE)
    count, nodes = x.shape
    raising = matrix / half[..., None] + slope[..., None] / 2 * np.eye(nodes)
    local = np.einsum("eji,ej,ejk->eik", raising, weights * half, raising)
    index = np.arange(count)[:, None] * DEGREE + np.arange(nodes)
    size = count * DEGREE + 1
    stiffness, mass = np.zeros((size, size)), np.zeros(size)
    np.add.at(stiffness, (index[:, :, None], index[:, None, :]), local)
    np.add.at(mass, index, weights * half)
    root = np.sqrt(mass)
    with one_thread():
        rate, vectors = np.linalg.eigh(stiffness / root / root[:, None])
    if _is_lost(rate):
        rate, coefficients = graded_modes(shape, a, k, tilt, PANELS)
        return Modes(rate, *coefficients)
    points = np.empty(size)
    points[index] = x
    v = potential(shape, np.array([a]), np.array([k]), np.array([tilt]), points[None])[0]
    density = mass * np.exp(v.min() - v)
    density /= density.sum()
    columns = [points, points**2, shape.potential(points)]
    centred = np.stack([f - np.sum(density * f) for f in columns]) * np.sqrt(density)
    coefficients = np.einsum("fi,im->fm", centred, vectors)
    return Modes(rate[1:], *coefficients[:, 1:])
