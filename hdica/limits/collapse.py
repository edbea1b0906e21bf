"""Collapse at the transitions of one overlap: what every n has in common there.

Near its transition the overlap is a diffusion, dQ = D dt + (V/n)^(1/2) dW in time t = k/n at a
constant step size, and the first terms of D, its normal form, leave one equation for all n, without
a parameter: where two states merge (a fold), beside an unstable state (a separatrix), and where the
uninformative state gives way (a pitchfork). What a normal form leaves out at n is in the whole
diffusion dQ = (D + D1/n) dt + (V/n)^(1/2) dW: its falls, odds and steady sizes are by quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, Scalar
from hdica.ingredients.quadrature import dot, gauss_legendre, panel_nodes
from hdica.limits.numerics.first_passage import (
    Diffusion,
    PassageTime,
    antiderivatives,
    first_passage,
)
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fixed_points import find_fixed_points, find_folds

VERSION = 2
_FAR = 40.0
"""Exponent beyond which an integrand is nothing."""
_SLOWEST = 1e2
"""Logarithm of a law's value from which on no run will show it: infinite."""


def _integral(value: Scalar, high: float, peak: float) -> float:
    """From 0 on, of a function that is largest at a peak."""
    from scipy.integrate import quad

    points = [peak] if peak > 0 else None
    return float(quad(value, 0.0, high, points=points, epsabs=0, epsrel=1e-12, limit=400)[0])


def fold(eps: float) -> float:
    """F(eps) = sqrt(2 pi) int_0^inf w^(-1/2) exp(-2 eps w - w^3/6) dw, the time of a fall.

    Of dX = -(eps + X^2) dT + dW from infinity to -infinity. F(0) = sqrt(2 pi) 6^(1/6) Gamma(1/6)/3,
    F -> pi/sqrt(eps) for large eps, where noise does not matter, and for eps < 0 it grows like the
    exponential of the barrier, exp(8/3 |eps|^(3/2)).
    """
    # With w = s^2 nothing is singular; the integrand is largest at s^2 = w = 2 sqrt(-eps).
    peak = 2 * math.sqrt(max(-eps, 0.0))
    top = -2 * eps * peak - peak**3 / 6
    if top > _SLOWEST:
        return math.inf

    def value(s: float) -> float:
        w = s * s
        return math.exp(-2 * eps * w - w**3 / 6 - top)

    high = 1.0
    while 2 * eps * high**2 + high**6 / 6 + top < _FAR:
        high *= 1.25
    return 2 * math.sqrt(2 * math.pi) * math.exp(top) * _integral(value, high, math.sqrt(peak))


def separatrix(z: float) -> float:
    """Phi(z): the chance that dX = X dT + sqrt(2) dW from z ends at infinity."""
    from scipy.special import ndtr

    return float(ndtr(z))


def pitchfork(x: float) -> float:
    """Psi(x) = <Y^2> under exp(x Y^2 - Y^4), the steady size of an overlap that is about to form.

    Psi(0) = Gamma(3/4)/Gamma(1/4); 1/(2 |x|) far below the transition, x/2 far above.
    """
    top = max(x, 0.0) ** 2 / 4
    peak = math.sqrt(max(x, 0.0) / 2)
    high = peak + 1.0
    while top - x * high**2 + high**4 < _FAR:
        high *= 1.25

    def moment(power: int) -> float:
        return _integral(lambda y: y**power * math.exp(x * y * y - y**4 - top), high, peak)

    return moment(2) / moment(0)


LAWS = {"fold": fold, "separatrix": separatrix, "pitchfork": pitchfork}
"""By what happens there."""


def law(kind: str, at: Array) -> Array:
    """A law at scaled values of the control, NaN where these are."""
    of, values = LAWS[kind], np.asarray(at, dtype=float)
    results = [of(float(v)) if np.isfinite(v) else math.nan for v in values.ravel()]
    return np.array(results).reshape(values.shape)


Second = Callable[[Array, float], Array]
"""D1(Q, tau): what a step adds to its mean drift at order 1/n^2."""
_STEP = 1e-3
"""Distance of differences of a slope; their error is its fourth power."""
_SMALL = 1e-6
"""Overlaps below are 0."""


def slope(drift: Drift, q: float, tau: float) -> float:
    """D'(Q)."""
    at = np.array(q)
    return float(tau * drift.learning.deriv()(at) + tau**2 * drift.loss.deriv()(at))


def _extrapolated(difference: Scalar) -> float:
    return (4 * difference(_STEP) - difference(2 * _STEP)) / 3


def bend(drift: Drift, q: float, tau: float) -> float:
    """D''(Q)."""
    return _extrapolated(lambda h: (slope(drift, q + h, tau) - slope(drift, q - h, tau)) / (2 * h))


def third(drift: Drift, tau: float) -> float:
    """D'''(0)."""
    at, middle = partial(slope, drift, tau=tau), slope(drift, 0.0, tau)
    return _extrapolated(lambda h: (at(h) + at(-h) - 2 * middle) / h**2)


def check_noise(drift: Drift) -> None:
    """Refuse a rule whose steps have no finite variance."""
    if drift.noise is None:
        raise HdicaError(
            "the variance of a step is not finite, and without it there is no diffusion near a "
            "transition"
        )


class Fold(NamedTuple):
    """D = -a (tau - tau_c) - b (Q - Q_c)^2 with the variance V, where two states merge."""

    tau: float
    q: float
    a: float
    b: float
    variance: float

    def scaled(self, tau: float, n: int) -> float:
        """Eps = a (tau - tau_c) n^(2/3)/(b^(1/3) V^(2/3)): the window has the width n^(-2/3)."""
        width = self.b ** (1 / 3) * self.variance ** (2 / 3)
        return self.a * (tau - self.tau) * n ** (2 / 3) / width

    def unit(self, n: int) -> float:
        """(n/(b^2 V))^(1/3), the unit of time t."""
        return float((n / (self.b**2 * self.variance)) ** (1 / 3))


def fold_of(drift: Drift, tau: float) -> Fold:
    """The fold with Q > 0 at which informative states are lost, the nearest to a step size."""
    check_noise(drift)
    folds = find_folds(drift)
    lost = []
    for t, q in zip(folds.tau.tolist(), folds.q.tolist(), strict=True):
        at = np.array(q)
        falls = -float(drift.learning(at) + 2 * t * drift.loss(at))
        form = Fold(t, q, falls, -bend(drift, q, t) / 2, float(drift.variance(at, t)))
        lost += [form] if q > 0 and form.a > 0 and form.b > 0 else []
    if not lost:
        raise HdicaError(
            "the drift has no fold with Q > 0 at which states are lost as tau grows (nothing falls)"
        )
    return min(lost, key=lambda form: abs(form.tau - tau))


class Separatrix(NamedTuple):
    """D = lambda (Q - Q_u) with the variance V at an unstable state, between two stable ones.

    ``shift`` is n times what n moves it by, -D1/lambda.
    """

    q: float
    rate: float
    variance: float
    shift: float
    below: float
    above: float

    def width(self, n: int, spread: float = 0.0) -> float:
        """((V/(2 lambda) + S0)/n)^(1/2), with the spread S0 of a start: the scale of Q0."""
        return math.sqrt((self.variance / (2 * self.rate) + spread) / n)

    def at(self, n: int) -> float:
        """The unstable state of the drift D + D1/n."""
        return self.q + self.shift / n


def separatrix_of(drift: Drift, second: Second, tau: float) -> Separatrix | None:
    """The largest unstable state with Q > 0 that has a stable one above; None if there is none."""
    check_noise(drift)
    states = find_fixed_points(drift, tau)
    order = np.argsort(states.q)
    q, stable = states.q[order], states.stable[order]
    enclosed = (q[:-1] > _SMALL) & ~stable[:-1] & stable[1:]
    if not enclosed.any():
        return None
    k = np.flatnonzero(enclosed)[-1]
    edge, rate = np.array(q[k]), slope(drift, float(q[k]), tau)
    moved, noise = -float(second(edge, tau)) / rate, float(drift.variance(edge, tau))
    return Separatrix(float(edge), rate, noise, moved, float(q[k - 1]), float(q[k + 1]))


class Pitchfork(NamedTuple):
    """D = mu Q - B Q^3 with the variance V, where the uninformative state becomes unstable."""

    mu: float
    damping: float
    variance: float

    def size(self, n: int) -> float:
        """K = n B/(2 V): Q^2 is of the order of its -1/2th power."""
        return n * self.damping / (2 * self.variance)

    def scaled(self, n: int) -> float:
        """X = n mu/(V k^(1/2))."""
        return n * self.mu / (self.variance * math.sqrt(self.size(n)))

    def unit(self, n: int) -> float:
        """k^(-1/2), the unit of Q^2."""
        return 1 / math.sqrt(self.size(n))


def pitchfork_of(drift: Drift, tau: float) -> Pitchfork:
    """The normal form at Q = 0, of a drift that is odd and bends back."""
    check_noise(drift)
    at = np.linspace(0.05, 0.95, 10)
    size = np.abs(drift.at(at, tau)).max()
    if np.abs(drift.at(at, tau) + drift.at(-at, tau)).max() > 1e-9 * size:
        raise HdicaError("the drift is not odd in Q: Q = 0 gives way to no pitchfork")
    damping = -third(drift, tau) / 6
    if not damping > 1e-9 * size:
        raise HdicaError(
            "the drift bends away from Q = 0 (-D'''(0) = "
            f"{6 * damping:.3g}, which must be above 0): informative states are not born there"
        )
    return Pitchfork(slope(drift, 0.0, tau), damping, float(drift.variance(np.array(0.0), tau)))


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
    return Diffusion(
        lambda q: drift.at(q, tau) + second(q, tau) / n,
        lambda q: np.maximum(drift.variance(q, tau), _LEAST) / n,
    )


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
    x, w = gauss_legendre(_NODES)
    edges = np.linspace(low, high, count + 1)
    half = (edges[1] - edges[0]) / 2
    points = (edges[:-1] + half)[:, None] + half * x
    rate = 2 * at.drift(points) / at.variance(points)
    whole = half * np.sum(rate * w, axis=1)
    before = np.append(0.0, np.cumsum(whole)[:-1])
    inside = half * np.sum(rate[:, None, :] * antiderivatives(x), axis=2)
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
        up = np.append(0.0, np.cumsum(size.sum(axis=1)))
        from_place = PchipInterpolator(np.linspace(low, high, count + 1), up / up[-1])
        if variance <= 0:
            return float(from_place(min(max(mean, low), high)))
        z, width = panel_nodes(np.linspace(-_NORMAL, _NORMAL, count // _DRAWN + 1), _NODES)
        share = from_place(np.clip(mean + math.sqrt(variance) * z, low, high))
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
