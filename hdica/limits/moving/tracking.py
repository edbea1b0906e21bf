"""A feature that moves at the rate delta, followed at a constant step size.

At phi = 0 or beta x and E[xi] = 0 the overlap of a feature whose entries are exchanged follows
dQ/dt = tau D1(Q) + tau^2 D2(Q) - delta Q, with D1 learning and D2 < 0 the loss by noise. Of all
step sizes tau = D1/(2 |D2|) holds Q best, against drifts up to

    delta(Q) = D1(Q)^2 / (4 |D2(Q)| |Q|),

so that the largest Q with delta(Q) = delta is the best that a constant step size can do, and no
step size tracks a feature faster than the largest delta(Q). For Oja's method

    Q^2 = 1 + (delta - sqrt(delta^2 + 2 delta (1 + omega)))/omega,
    tau = omega (1 - Q^2)/(1 + omega Q^2),

up to delta = omega^2/2. As delta -> 0, where D1 ~ gamma (1 - Q^2) and D2(1) = -Lambda/2,

    1 - Q^2 = sqrt(2 delta Lambda)/gamma,    tau = sqrt(2 delta/Lambda):

Lambda = 1 + omega and gamma = omega for Oja's method, E[c^6] and 3 - E[c^4] for x^3 of online ICA.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.limits.numerics.series import fitted
from hdica.limits.overlap.drift import Drift

Array = NDArray[np.float64]
_DEGREE = 64
_OVERLAPS = np.concatenate(
    [
        np.geomspace(1e-8, 1e-4, 50, endpoint=False),
        np.linspace(1e-4, 0.999, 4000, endpoint=False),
        1 - np.geomspace(1e-3, 1e-9, 400),
    ]
)


@dataclass(frozen=True)
class Tracking:
    """The best constant step size for a drift; numbers are NaN where no step size tracks it.

    ``tau`` and ``q``: the step size and the overlap that it holds; ``low`` and ``high``: step sizes
    between which a feature is tracked at all, and ``q_low`` and ``q_high`` the overlaps at both;
    ``fastest``: the largest delta that any tracks.
    """

    tau: float
    q: float
    low: float
    high: float
    q_low: float
    q_high: float
    fastest: float


def moved_drift(drift: Drift, delta: float, tau: float) -> Drift:
    """The drift at one step size with -delta Q in it, as part of what is learned."""
    if delta == 0:
        return drift
    share = delta / tau
    learning = drift.learning
    if isinstance(learning, Chebyshev):
        return replace(drift, learning=learning - Chebyshev([0.0, share]))
    degree = max(learning.above.size, learning.below.size, _DEGREE)
    return replace(drift, learning=fitted(lambda q: learning(q) - share * q, degree, zero=1))


def _parts(drift: Drift, q: Array, side: float) -> tuple[Array, Array]:
    """D1 towards larger Q, and |D2|, on one side."""
    return side * np.asarray(drift.learning(side * q)), np.abs(np.asarray(drift.loss(side * q)))


def tracked(drift: Drift, q: Array, side: float = 1.0) -> Array:
    """delta(Q), the fastest drift against which some step size holds Q > 0; 0 where none does."""
    gain, loss = _parts(drift, q, side)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gain > 0, gain**2 / (4 * loss * q), 0.0)


def best(drift: Drift, delta: float, side: float = 1.0) -> Tracking:
    """The best constant step size for delta > 0, on the side of the sign ``side`` of Q."""
    from scipy.optimize import brentq

    fast = tracked(drift, _OVERLAPS, side)
    top = _peak(lambda q: tracked(drift, np.array([q]), side)[0], fast)
    fastest = float(max(fast.max(), tracked(drift, np.array([top]), side)[0]))
    if not delta <= fastest:
        return Tracking(*(np.nan,) * 6, fastest=fastest)
    inside = np.flatnonzero(fast >= delta)
    low = max(float(_OVERLAPS[inside[-1]]), top) if inside.size else top
    above = _OVERLAPS[low < _OVERLAPS]

    def miss(q: float) -> float:
        return float(tracked(drift, np.array([q]), side)[0]) - delta

    high = float(above[0]) if above.size else 1.0
    q = low if miss(low) <= 0 or high <= low else float(brentq(miss, low, high, xtol=1e-14))
    gain, loss = _parts(drift, np.array([q]), side)
    ends = _step_sizes(drift, delta, side)
    return Tracking(float(gain[0] / (2 * loss[0])), q, *ends, fastest)


def _peak(function, values: Array) -> float:  # type: ignore[no-untyped-def]
    """Where a function that has these values at the overlaps is largest."""
    from scipy.optimize import minimize_scalar

    k = int(np.argmax(values))
    low, high = _OVERLAPS[max(k - 1, 0)], _OVERLAPS[min(k + 1, values.size - 1)]
    found = minimize_scalar(
        lambda q: -function(q), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.x) if -found.fun >= values[k] else float(_OVERLAPS[k])


def _step_sizes(drift: Drift, delta: float, side: float) -> tuple[float, float, float, float]:
    """The smallest and the largest step size with a steady state Q > 0, and both states."""

    def at(q: Array, sign: float) -> Array:
        gain, loss = _parts(drift, q, side)
        under = gain**2 - 4 * loss * delta * q
        with np.errstate(invalid="ignore"):
            root = np.sqrt(np.where((under >= 0) & (gain > 0), under, np.nan))
        # The smaller root without cancellation.
        large = (gain + root) / (2 * loss)
        return large if sign > 0 else 2 * delta * q / (gain + root)

    def extreme(sign: float) -> tuple[float, float]:
        values = np.nan_to_num(sign * at(_OVERLAPS, sign), nan=-np.inf)
        if not np.isfinite(values.max()):
            return np.nan, np.nan

        def one(q: float) -> float:
            return float(np.nan_to_num(sign * at(np.array([q]), sign)[0], nan=-1e300))

        place = _peak(one, values)
        return sign * one(place), place

    (low, q_low), (high, q_high) = extreme(-1.0), extreme(1.0)
    return low, high, q_low, q_high
