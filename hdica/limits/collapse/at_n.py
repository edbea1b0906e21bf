"""Falls, odds and steady sizes of one overlap at n: of its diffusion, by quadrature.

dQ = (D + D1/n) dt + (V/n)^(1/2) dW with the whole drift and the whole variance, not their first
terms: what a normal form leaves out at n.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.limits.collapse.forms import Second, Separatrix
from hdica.limits.diffusion.first_passage import Diffusion, PassageTime, first_passage
from hdica.limits.overlap.drift import Array, Drift

_LEAST = 1e-14
"""Variance of a step where rounding leaves none."""
_PANELS, _MOST, _NODES = 600, 76_800, 8
"""Panels at first and at most, and nodes on each."""
_AGREED = 1e-9
_WIDE = 12.0
"""Widths about an unstable state outside of which everything is decided."""
_DRAWN, _NORMAL = 50, 9.0
"""Panels of Q for one of the normal law of a start, which is cut off at so many deviations."""


def diffusion_at(drift: Drift, second: Second, tau: float, n: int) -> Diffusion:
    """The diffusion of Q in time t at n."""

    def moved(q: Array) -> Array:
        return np.asarray(drift.at(q, tau) + second(q, tau) / n)

    return Diffusion(moved, lambda q: np.maximum(drift.variance(q, tau), _LEAST) / n)


def fall_time(
    drift: Drift, second: Second, tau: float, n: int, start: float, level: float
) -> PassageTime:
    """The time t at which Q > 0 from a start first is at a lower level: its moments."""
    if not 0 < level < start <= 1:
        raise HdicaError(
            f"threshold = {level:g} is not allowed for falls from Q = {start:g} (between 0 and it)"
        )
    up = diffusion_at(drift, second, tau, n)
    down = Diffusion(lambda x: -up.drift(1 - x), lambda x: up.variance(1 - x))
    return first_passage(down, 0.0, 1 - level, 1 - start, tolerance=1e-9)


def _doubled(value: Callable[[int], float]) -> tuple[float, float]:
    """A number by so many panels, doubled until it settles, and its error: the last change."""
    count, last = _PANELS, value(_PANELS)
    while True:
        count *= 2
        fine = value(count)
        change = abs(fine - last)
        if change <= _AGREED * abs(fine) or count >= _MOST:
            return fine, change
        last = fine


def _panels(low: float, high: float, at: Diffusion, count: int) -> tuple[Array, Array, Array]:
    """Points, their weights, and 2 int D/V up to them, each of shape (panels, nodes)."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    up = [np.polynomial.legendre.legint(row, lbnd=-1) for row in np.eye(_NODES)]
    basis = np.polynomial.legendre.legvander(x, _NODES - 1)
    steps = np.linalg.solve(
        basis.T, np.array([np.polynomial.legendre.legval(x, one) for one in up])
    ).T
    edges = np.linspace(low, high, count + 1)
    half = (edges[1] - edges[0]) / 2
    points = (edges[:-1] + half)[:, None] + half * x
    rate = 2 * at.drift(points) / at.variance(points)
    whole = half * np.sum(rate * w, axis=1)
    before = np.concatenate([[0.0], np.cumsum(whole)[:-1]])
    inside = half * np.sum(rate[:, None, :] * steps, axis=2)
    return points, np.broadcast_to(half * w, points.shape), before[:, None] + inside


def success_odds(
    drift: Drift,
    second: Second,
    tau: float,
    n: int,
    edge: Separatrix,
    begin: tuple[float, float],
) -> tuple[float, float]:
    """The probability that Q goes up from a start, a mean and a variance of Q at n; its error.

    int exp(-2 int D/V) from the state below to the start, over that to the state above.
    """
    from scipy.interpolate import PchipInterpolator

    wide = _WIDE * edge.width(n)
    low, high = max(edge.below, edge.q - wide), min(edge.above, edge.q + wide)
    at, (mean, variance) = diffusion_at(drift, second, tau, n), begin

    def odds(count: int) -> float:
        _, weights, rise = _panels(low, high, at, count)
        size = weights * np.exp(rise.min() - rise)
        up = np.concatenate([[0.0], np.cumsum(size.sum(axis=1))])
        from_place = PchipInterpolator(np.linspace(low, high, count + 1), up / up[-1])
        if variance <= 0:
            return float(from_place(min(max(mean, low), high)))
        z, width = panel_nodes(np.linspace(-_NORMAL, _NORMAL, count // _DRAWN + 1), _NODES)
        share = np.asarray(from_place(np.clip(mean + math.sqrt(variance) * z, low, high)))
        mass = width * np.exp(-z * z / 2)
        return dot(share, mass / mass.sum())

    return _doubled(odds)


def steady_square(drift: Drift, second: Second, tau: float, n: int) -> tuple[float, float]:
    """<Q^2> under the steady law exp(2 int D/V)/V on [-1, 1], and its error."""
    at = diffusion_at(drift, second, tau, n)

    def square(count: int) -> float:
        points, weights, rise = _panels(-1.0, 1.0, at, count)
        size = weights * np.exp(rise - rise.max()) / at.variance(points)
        return float(np.sum(points**2 * size) / np.sum(size))

    return _doubled(square)
