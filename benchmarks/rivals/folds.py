"""Two folds of steady states as small systems of equations, for continuation in any library.

The user of such a library derives these equations by hand; our own code derives them from the
rule, the source and the regularizer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from benchmarks.rivals.example_2 import BETA, TAU, WEIGHTS, XI

Array = NDArray[np.float64]
_HALF = np.sqrt(np.pi) / 2
_STEP = 1e-6


@dataclass(frozen=True)
class Fold:
    """Equations F(u, p) = 0, and a solution on the stable branch.

    Parameters
    ----------
    residual
        F, shape of u.
    jacobian
        dF/du, shape (size, size).
    start, parameter
        u and p where continuation begins.
    way
        +1 or -1: direction of p in which the fold lies.
    """

    residual: Callable[[Array, float], Array]
    jacobian: Callable[[Array, float], Array]
    start: tuple[float, ...]
    parameter: float
    way: int


def _ica(u: Array, tau: float) -> Array:
    power = 15 - 30 * u**4 * (1 - u**2) - 14 * u**6
    return np.asarray(2 * u**3 * (1 - u**2) - tau * u * power / 2)


def _ica_slope(u: Array, tau: float) -> Array:
    power = 15 - 30 * u**4 * (1 - u**2) - 14 * u**6
    along = 96 * u**5 - 120 * u**3
    return np.atleast_2d(6 * u**2 - 10 * u**4 - tau * (power + u * along) / 2)


def _averages(h: float, g: float, b: float) -> tuple[Array, Array]:
    """E x and E x^2 at each xi, from the closed form (19) of Wang and Lu 2016."""
    root = 2 * np.sqrt(h * g)
    z = np.array([BETA - b * XI, BETA + b * XI]) / root
    # exp(-low^2) keeps erfcx of a negative number finite: erfcx(-z) = 2 exp(z^2) - erfcx(z).
    low = np.minimum(z[0], 0.0)
    one = np.exp(-(low**2))
    size = np.abs(z)
    tail = one * erfcx(size)
    head = _HALF * np.where(z < 0, 2 * np.exp(np.minimum(z, 0) ** 2 - low**2) - tail, tail)
    scale = np.sqrt(g / h)
    first = scale * (one - 2 * z * head) / 2
    second = scale**2 * (head * (1 + 2 * z * z) - z * one) / 2
    mass = head[0] + head[1]
    return (first[0] - first[1]) / mass, (second[0] + second[1]) / mass


def _oist(u: Array, omega: float) -> Array:
    """Self-consistency of Q and E x^2 = 1, in Q and the square root of h."""
    q, h = u[0], u[1] ** 2
    x, square = _averages(h, TAU**2 * (1 + omega * q * q) / 2, TAU * omega * q)
    return np.array([np.sum(WEIGHTS * XI * x) - q, 1 - 1 / np.sum(WEIGHTS * square)])


def _oist_slopes(u: Array, omega: float) -> Array:
    steps = _STEP * np.eye(2)
    columns = [(_oist(u + d, omega) - _oist(u - d, omega)) / (2 * _STEP) for d in steps]
    return np.stack(columns, axis=1)


ICA = Fold(_ica, _ica_slope, (0.99,), 0.05, 1)
"""Cubic online ICA of a Rademacher source: the drift below (11) of Wang and Lu 2017, in tau."""
OIST = Fold(_oist, _oist_slopes, (0.8538639122857554, 0.21464668952063007**0.5), 1.0, -1)
"""Example 2 of Wang and Lu 2016, in omega."""
