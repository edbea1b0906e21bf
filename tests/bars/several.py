"""Reference limits of Hebbian ICA with several projections or sources: tensor rules, no symmetry.

y = R s + L z with L L' = I - R R': a rule for every source times the trapezoidal rule for every
normal z, which converges faster than any power for what is smooth on the scale of L.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from tests.bars.functions import Function
from tests.bars.paths import StepSize, solve

Array = NDArray[np.float64]
RULES = ("rademacher", "uniform")
_END = 9.0


def _source(spec: str, order: int) -> tuple[Array, Array]:
    if spec == "rademacher":
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    x, w = legendre.leggauss(order)
    return math.sqrt(3) * x, w / 2


def _normal(step: float) -> tuple[Array, Array]:
    z = np.arange(-_END, _END + step / 2, step)
    return z, step * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _tensor(rules: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Points, shape (dimensions, points), and weights."""
    points = np.array(list(product(*(x for x, _ in rules)))).T
    weights = np.array([math.prod(w) for w in product(*(w for _, w in rules))])
    return points, weights


def _averages(f: Function, specs: list[str], projections: int, order: int, step: float) -> Callable:
    """<f(y) s'>, <f(y) y'> and <f(y) f(y)'> at overlaps R."""
    rules = [_source(spec, order) for spec in specs] + [_normal(step)] * projections
    points, weights = _tensor(rules)
    s, z = points[: len(specs)], points[len(specs) :]

    def at(r: Array) -> tuple[Array, Array, Array]:
        y = r @ s + np.linalg.cholesky(np.eye(projections) - r @ r.T) @ z
        value = f.value(y)
        weighed = value * weights
        return weighed @ s.T, weighed @ y.T, weighed @ value.T

    return at


def reference_overlaps(
    f: Function, specs: list[str], sigma: list[int], step: StepSize, r0: Array, times: Array
) -> tuple[Array, Array]:
    """R at the times, shape (T, K, M), and how well it is known: by a coarser rule.

    Rattray (2002), eq. (17) with Sigma where (13) puts it: dR/dt = mu L + mu**2 D.
    """
    signs, shape = np.diag(np.array(sigma, dtype=float)), r0.shape

    def path(order: int, grid: float, tolerance: float) -> Array:
        averages = _averages(f, specs, len(sigma), order, grid)

        def rate(t: float, y: Array) -> Array:
            r, mu = y.reshape(shape), step.value(t)
            by_s, by_y, square = averages(r)
            drag = (signs @ by_y + by_y.T @ signs) / 2
            push = signs @ square @ signs / 2
            return (mu * (signs @ by_s - drag @ r) - mu**2 * push @ r).ravel()

        found = solve(rate, step.breaks, r0.ravel(), times, tolerance)
        return found.reshape(-1, *shape)

    fine = path(14, 0.4, 1e-13)
    return fine, np.abs(fine - path(11, 0.5, 1e-11)) + 1e-13
