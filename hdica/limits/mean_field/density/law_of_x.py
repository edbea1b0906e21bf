"""The law of the estimate given the feature, as a function of x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdica.limits.numerics.romberg import romberg

Array = NDArray[np.float64]
_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(3)
_TAIL = 1e-12


def interpolated(values: Array, u: Array) -> Array:
    """Values at 0, 1, 2, ... interpolated at ``u`` by polynomials through the six nearest."""
    from hdica.limits.mean_field.density.interpolation import interpolate

    found = np.empty(u.shape)
    interpolate(np.ascontiguousarray(values), np.ravel(u), np.ravel(found))
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """A positive density on cells, smooth between kinks.

    ``log`` is its logarithm at the centres, shape (cells,); ``breaks`` are the numbers of the faces
    at kinks strictly inside, increasing; ``number(x)`` says how many cells lie below x, smooth
    between kinks, centres being half-way.
    """

    faces: Array
    log: Array
    breaks: tuple[int, ...]
    number: Callable[[Array], Array]

    def mirrored(self) -> Curve:
        """The density of -x."""
        cells = self.log.size
        breaks = tuple(cells - k for k in self.breaks[::-1])
        return Curve(-self.faces[::-1], self.log[::-1], breaks, lambda x: cells - self.number(-x))

    def log_at(self, x: Array) -> Array:
        """Logarithm of the density at points inside the faces, from one side of each kink."""
        edges = np.array([0, *self.breaks, self.log.size])
        which = np.searchsorted(self.faces[edges[1:-1]], x, side="right")
        result = np.empty(x.shape)
        for piece in range(len(edges) - 1):
            chosen = which == piece
            if not np.any(chosen):
                continue
            low, high = int(edges[piece]), int(edges[piece + 1])
            u = self.number(x[chosen]) - low - 0.5
            result[chosen] = interpolated(self.log[low:high], u)
        return result

    @cached_property
    def total(self) -> float:
        """Integral of the exponential of :meth:`log_at`: one up to the solver's error."""
        return float(np.sum(self.masses))

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """Gauss points of the cells and weights of dx, shape (3 cells,)."""
        half = np.diff(self.faces)[:, None] / 2
        x = self.faces[:-1, None] + half * (1 + _GAUSS)
        return x.ravel(), (half * _WEIGHTS).ravel()

    @cached_property
    def masses(self) -> Array:
        """Integral over each cell."""
        x, weights = self.points
        return np.asarray((np.exp(self.log_at(x)) * weights).reshape(-1, 3).sum(axis=1))

    def at(self, x: Array) -> Array:
        """The density, zero outside the faces."""
        inside = (x >= self.faces[0]) & (x <= self.faces[-1])
        result = np.zeros(x.shape)
        result[inside] = np.exp(self.log_at(x[inside])) / self.total
        return result

    def cdf(self, x: Array) -> Array:
        """The distribution function."""
        below = np.concatenate([[0.0], np.cumsum(self.masses)]) / self.total
        inner = np.clip(x, self.faces[0], self.faces[-1])
        cell = np.clip(np.searchsorted(self.faces, inner, side="right") - 1, 0, self.log.size - 1)
        half = (inner - self.faces[cell]) / 2
        points = self.faces[cell][:, None] + half[:, None] * (1 + _GAUSS)
        part = np.sum(self.at(points) * _WEIGHTS, axis=1) * half
        return np.asarray(np.minimum(below[cell] + part, below[cell + 1]))


@dataclass(frozen=True, eq=False)
class Density:
    """P(x | xi) at the nodes of the prior, a curve for each; None for a node of no weight.

    There are no curves if the time was not reached.
    """

    xi: Array
    weights: Array
    curves: tuple[Curve | None, ...]

    def _rows(self, x: Array, value: Callable[[Curve, Array], Array]) -> Array:
        x = np.atleast_1d(np.asarray(x, dtype=float))
        if not self.curves:
            return np.full((self.xi.size, x.size), np.nan)
        return np.array([np.zeros(x.size) if c is None else value(c, x) for c in self.curves])

    def at(self, x: Array) -> Array:
        """Density at points ``x``, shape (nodes, len(x)); NaN if the time was not reached."""
        return self._rows(x, Curve.at)

    def cdf(self, edges: Array) -> Array:
        """Distribution function at ``edges``, shape (nodes, len(edges)): monotone, 0 to 1."""
        return self._rows(edges, Curve.cdf)

    def support(self) -> tuple[float, float]:
        """Points beyond which an entry of x lies with a probability below 1e-12."""
        lows, highs = [], []
        for curve, weight in zip(self.curves, self.weights.tolist(), strict=False):
            if curve is None:
                continue
            small = _TAIL / 2 / weight
            below = np.cumsum(curve.masses) / curve.total
            above = np.cumsum(curve.masses[::-1]) / curve.total
            if small < 1:
                lows.append(curve.faces[np.searchsorted(below, small)])
                highs.append(curve.faces[-1 - np.searchsorted(above, small)])
        return (float(min(lows)), float(max(highs))) if lows else (np.nan, np.nan)

    def mean(self, h: Callable[[Array, Array], Array]) -> float:
        """E[h(xi, x)]; smooth between kinks of phi, h is integrated to the density's accuracy."""
        if not self.curves:
            return float("nan")
        total = 0.0
        for curve, xi, weight in zip(self.curves, self.xi, self.weights.tolist(), strict=True):
            if curve is not None:
                x, dx = curve.points
                total += weight * float(np.sum(curve.at(x) * h(xi, x) * dx))
        return total


def extrapolated(curves: list[Curve], x: Array) -> Curve:
    """Romberg extrapolation of the logarithm from levels of halved cells, coarsest first.

    The logarithm keeps the density positive. Where two levels disagree by more than a factor,
    in tails far below any mass that counts, the finest stands. ``x`` are its centres.
    """
    fine = curves[-1]
    logs = np.array([c.log_at(x) for c in curves[:-1]] + [fine.log])
    best, _ = romberg(logs)
    spread = np.abs(logs[-1] - logs[-2])
    return replace(fine, log=np.where(spread < 0.1, best, fine.log))
