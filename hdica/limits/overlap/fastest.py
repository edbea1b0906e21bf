"""The fastest way of one overlap: its schedule of step sizes, and when runs arrive.

dQ/dt = tau D1(Q) + tau^2 D2(Q) is a path on a line, so that the largest rate v at every overlap is
the fastest way. It is that of tau*(Q) = -D1/(2 D2), half of the step size at which Q would stay,
and then v = -D1^2/(4 D2).

At n the time T of the first passage to Q is random. log E exp(l T) has the slope w in the overlap
with v w + V (w' + w^2)/(2 n) + l = 0, V being the variance of a step times n^2, which gives, as
integrals over the overlap,

    n (E T - t) = int [V v'/(2 v^3) - (D1 - v v'/2)/v^2 + |D2| tau*'^2 s],
    n Var T = s + int [5 V^2 v'/(2 v^5) - V V'/(2 v^4) - 3 V (D1 - v v'/2)/v^4]/n,
    s = int V/v^3,                   n^3 kappa_4(T) = 15 int V^3/v^7,
    n^2 kappa_3(T) = int [3 V^2/v^5 + 6 |D2| tau*'^2 s^2 + 3 (dV/dtau) tau*' s/v^2],

with D1 of :mod:`hdica.limits.overlap.drift`, and where steps have the length 1/n. Terms with tau*'
are of runs that are early or late, for whose overlap the schedule is not the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import ORDER, panel_nodes
from hdica.limits.overlap.drift import Drift

PANELS, MOST = 64, 1024
"""Panels between the overlaps, evenly in the logarithm of q/(1 - q), at first and at most."""
_CLOSE = 1e-12
_BESIDE = 1e-3
"""Distance over which the step variance is differentiated, as a share of that to the ends."""
_SMALL = 1e-6
"""The best constant step size lies above this share of the largest that reaches the goal."""


class Moments(NamedTuple):
    """The drift of an overlap, and what n leaves of it, ``second(q, tau)``."""

    drift: Drift
    second: Callable[[Array, float], Array]


class Arrival(NamedTuple):
    """When runs arrive: n (mean - t), n Var T and n times what it lacks, n^2 kappa_3, n^3 kappa_4.

    Of a start that varies the last and what the variance lacks are known only in part.
    """

    mean: float
    variance: float
    lacking: float
    third: float
    fourth: float


class Fastest(NamedTuple):
    """The fastest path: times, overlaps and step sizes, each of shape (points,).

    ``error`` is that of the last time, ``constant`` the constant step size that takes least, and
    ``constant_time`` its time.
    """

    time: Array
    q: Array
    tau: Array
    error: float
    constant: float
    constant_time: float


def fastest(drift: Drift, begin: float, goal: float) -> Fastest:
    """The way from an overlap to one of size ``goal`` on the same side of 0.

    Raises
    ------
    HdicaError
        If no step size leads on from an overlap between them.
    """
    side, low = math.copysign(1.0, begin), abs(begin)

    def parts(x: Array) -> tuple[Array, Array]:
        """D1 and -D2 as functions of the size of the overlap."""
        return side * drift.learning(side * x), -side * drift.loss(side * x)

    def panels(count: int) -> tuple[Array, Array, Array]:
        first, last = (math.log(q * q / (1 - q * q)) for q in (low, goal))
        edges = np.sqrt(1 / (1 + np.exp(-np.linspace(first, last, count + 1))))
        return (edges, *panel_nodes(edges, ORDER))

    def check(x: Array) -> None:
        gain, _ = parts(x)
        if np.any(gain <= 0):
            at = float(x[np.argmax(gain <= 0)])
            raise HdicaError(
                f"goal = {goal:g} is not allowed from Q = {begin:g} (no step size leads on from "
                f"abs(Q) = {at:.4g}: a goal below it, or a start above)"
            )

    def times(count: int) -> tuple[Array, Array]:
        edges, x, weights = panels(count)
        check(x)
        gain, loss = parts(x)
        each = np.sum((weights * 4 * loss / gain**2).reshape(count, -1), axis=1)
        return edges, np.concatenate([[0.0], np.cumsum(each)])

    count = PANELS
    edges, time = times(count)
    while True:
        before, count = time, 2 * count
        edges, time = times(count)
        error = abs(time[-1] - before[-1])
        if error <= _CLOSE * time[-1] or count >= MOST:
            break
    check(edges)
    gain, loss = parts(edges)
    constant, constant_time = _constant(parts, panels, float(np.min(gain / loss)))
    error += time[-1] * _of_drift(drift, gain, loss)
    return Fastest(time, side * edges, gain / (2 * loss), float(error), constant, constant_time)


def _of_drift(drift: Drift, gain: Array, loss: Array) -> float:
    """Relative error of a time by those of D1 and D2."""
    return float(np.max(2 * drift.learning_error / gain + drift.loss_error / loss))


def _constant(
    parts: Callable[[Array], tuple[Array, Array]],
    panels: Callable[[int], tuple[Array, Array, Array]],
    largest: float,
) -> tuple[float, float]:
    """The constant step size, below the largest that reaches the goal, that takes least, its time.

    At the largest the rate vanishes at an end, so that panels there are many.
    """
    from scipy.optimize import brentq

    _, x, weights = panels(MOST)
    gain, loss = parts(x)

    def rate(tau: float) -> Array:
        return np.asarray(tau * (gain - tau * loss))

    def less(log: float) -> float:
        """How much sooner a larger step size arrives, to scale."""
        tau = math.exp(log)
        return float(np.sum(weights * tau * (gain - 2 * tau * loss) / rate(tau) ** 2) * tau)

    top = math.log(largest)
    tau = math.exp(float(brentq(less, top + math.log(_SMALL), top - 1e-9, xtol=1e-14)))
    return tau, float(np.sum(weights / rate(tau)))


def arrival(moments: Moments, path: Fastest, spread: float = 0.0, shifted: float = 0.0) -> Arrival:
    """Cumulants of the time at which a run on the schedule of a path first has its last overlap.

    ``spread`` and ``shifted`` are n Var Q and n (E Q - Q) of the start.
    """
    drift, side = moments.drift, math.copysign(1.0, float(path.q[-1]))
    edges = np.abs(path.q)
    x, weights = panel_nodes(edges, ORDER)
    slopes = drift.learning.deriv(), drift.loss.deriv()

    def step_size(x: Array) -> Array:
        return drift.best(side * x)

    def variance(x: Array, tau: Array) -> Array:
        return np.asarray(drift.variance(side * x, tau))  # type: ignore[arg-type]

    def along(x: Array) -> tuple[Array, Array, Array]:
        """Step size, rate and its slope along the path."""
        q, tau = side * x, step_size(x)
        rate = side * drift.learning(q) * tau / 2
        return tau, rate, (tau * slopes[0](q) + tau**2 * slopes[1](q))

    def total(values: Array) -> float:
        return float(np.sum(weights * values))

    tau, v, rise = along(x)
    noise, loss = variance(x, tau), -side * drift.loss(side * x)
    near = _BESIDE * np.minimum(x - edges[0], edges[-1] - x)
    ends = step_size(x + near), step_size(x - near)
    bend = (ends[0] - ends[1]) / (2 * near)
    steeper = (variance(x + near, ends[0]) - variance(x - near, ends[1])) / (2 * near)
    jitter = (variance(x, tau * (1 + _BESIDE)) - variance(x, tau * (1 - _BESIDE))) / tau
    jitter /= 2 * _BESIDE
    beyond = side * moments.second(side * x, tau) - v * rise / 2  # type: ignore[arg-type]

    (first,), (began,), (rising,) = along(edges[:1])
    started = float(variance(edges[:1], np.array([first]))[0])
    grown = np.sum((weights * noise / v**3).reshape(edges.size - 1, -1), axis=1)
    late = spread / began**2 + np.concatenate([[0.0], np.cumsum(grown)])
    s = np.repeat((late[1:] + late[:-1]) / 2, ORDER)

    mean = total(noise * rise / (2 * v**3) - beyond / v**2 + loss * bend**2 * s)
    mean += spread * rising / (2 * began**2) - side * shifted / began
    lacking = noise * (2.5 * noise * rise / v - steeper / 2 - 3 * beyond) / v**4
    third = 3 * noise**2 / v**5 + 6 * loss * bend**2 * s**2 + 3 * jitter * bend * s / v**2
    of_start = 3 * spread * (started + spread * rising) / began**4
    fourth = 15 * noise**3 / v**7
    return Arrival(mean, float(late[-1]), total(lacking), total(third) + of_start, total(fourth))
