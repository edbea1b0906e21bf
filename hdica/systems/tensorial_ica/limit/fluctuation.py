"""Noise of a step, departures from critical points and the level around a component.

At a critical point of support size k (|v_i| = 1/sqrt k on k axes) a deviation is an
Ornstein-Uhlenbeck process in x = beta eta t, of rate +2/k within the support and -1/k off it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averaged
from hdica.systems.tensorial_ica.limit.moments import Moments, moments_of
from hdica.systems.tensorial_ica.limit.transient import steps_sum

Array = NDArray[np.float64]
_WORST, _NONE = 1e-9, 1e-12
_STRETCHES = 2001
"""Places between stretches of a schedule; the more of them the closer to either end."""


def _checked_support(k: int, d: int | None = None) -> None:
    if k < 1 or (d is not None and k > d):
        allowed = "k >= 1" if d is None else f"from 1 to the dimension {d}"
        raise HdicaError(f"support = {k} is not allowed ({allowed})")


def second_moments(moments: Moments, v: Array) -> Array:
    """E y^6 Z_i Z_j at a unit vector ``v``, shape (d, d), y = v.Z: exact, for skewed sources too.

    6! times the coefficient of t^6 in exp(sum_l K(t v_l)) [K'(t v_i) K'(t v_j) + delta_ij
    K''(t v_i)], where K(t) = sum_n kappa_n t^n/n!.
    """
    first, pairs, alone = _pair_series(moments, v)
    joint = np.einsum("ia,ab,jb->ij", first, pairs, first) + np.diag(alone)
    return np.asarray(math.factorial(6) * joint)


def second_moments_beside(moments: Moments, v: Array, m: int) -> tuple[Array, Array]:
    """Diagonal and row ``m`` of :func:`second_moments`, both of shape (d,), without the rest."""
    first, pairs, alone = _pair_series(moments, v)
    half = first @ pairs
    row = half @ first[m]
    row[m] += alone[m]
    return math.factorial(6) * (np.sum(half * first, axis=1) + alone), math.factorial(6) * row


def _pair_series(moments: Moments, v: Array) -> tuple[Array, Array, Array]:
    """What E y^6 Z_i Z_j/6! is made of: f_ia P_ab f_jb, and a_i more for i = j."""
    powers = np.asarray(v, dtype=float)[:, None] ** np.arange(7)
    factorials = np.array([float(math.factorial(n)) for n in range(7)])
    kappa = np.array(moments.cumulants)
    logarithm = kappa[:7] / factorials * powers.sum(axis=0)
    series = _exponential(logarithm)[::-1]
    first, second = (kappa[n : n + 7] / factorials * powers for n in (1, 2))
    pairs = np.array([[series[a + b] if a + b < 7 else 0.0 for b in range(7)] for a in range(7)])
    return first, pairs, second @ series


def _exponential(logarithm: Array) -> Array:
    """Coefficients of exp of a power series without constant term, to the same order."""
    out = np.zeros(logarithm.size)
    out[0] = 1.0
    for n in range(1, out.size):
        out[n] = sum(j * logarithm[j] * out[n - j] for j in range(1, n + 1)) / n
    return out


def noise_off_support(moments: Moments, k: int, positive: int | None = None) -> float:
    """E y^6, the variance per step over eta^2 in each of the d - k directions off the support.

    15 + 15 k4/k + k6/k^2, and for a skewed source 10 k3^2 m^2/k^3, where m is the sum of the signs
    of v: ``positive`` of them are plus, all if None.
    """
    _checked_support(k)
    total = k if positive is None else 2 * positive - k
    even = 15 + 15 * moments.k4 / k + moments.k6 / k**2
    return even + 10 * moments.mu3**2 * total**2 / k**3


def noise_on_support(moments: Moments, k: int, positive: int | None = None) -> float:
    """Sigma_k, the variance per step over eta^2 in a tangent direction of the support, k >= 2.

    E y^6 + 15 (k4/k)(3 + k4/k) + 15 k6/k^2 + k8/k^3, the same in all k - 1 directions; zero for
    random signs and k = 2, where y or the tangent part of Z vanishes. Of a skewed source their
    mean, which depends on the signs of v as in :func:`noise_off_support`.
    """
    _checked_support(k)
    if k == 1:
        raise HdicaError("support = 1 is not allowed (within it there is no tangent direction)")
    if not math.isfinite(moments.mu8):
        raise HdicaError(
            f"source: {moments.label} has no finite moment of order 8, which the noise E y^6 Z^2 "
            "within the support of a critical point needs"
        )
    if moments.symmetric:
        ratio = moments.k4 / k
        rest = 15 * ratio * (3 + ratio) + 15 * moments.k6 / k**2 + moments.k8 / k**3
        total = noise_off_support(moments, k) + rest
        # Signs on two axes: y Z is no noise at all there, and rounding is none either.
        return total if total > _NONE * abs(rest) else 0.0
    v = np.full(k, k**-0.5)
    v[k if positive is None else positive :] *= -1
    whole = second_moments(moments, v)
    return float((np.trace(whole) - v @ whole @ v) / (k - 1))


@dataclass(frozen=True, eq=False)
class Departure:
    """Variances of deviations from a critical point, one per direction, shape (T,).

    ``inside`` of each of the k - 1 tangent directions of the support (zero if k = 1), ``outside``
    of each of the d - k others; ``total`` is E |delta|^2. Rates per x = beta eta t.
    """

    inside: Array
    outside: Array
    total: Array
    rate_inside: float
    rate_outside: float


def departure(moments: Moments, d: int, k: int, eta: float, elapsed: Array) -> Departure:
    """Deviations from a critical point of support size ``k`` (d: a maximiser, 1: a minimiser).

    Linear in the deviation, from exactly the critical point at x = beta eta t = ``elapsed``, shape
    (T,): eta Sigma/(2 beta r) (e^(2 r x) - 1) in a direction of rate r.
    """
    _checked_support(k, d)
    x = np.asarray(elapsed, dtype=float)
    unit = eta / (2 * moments.beta)
    grow, decay = 2.0 / k, -1.0 / k
    inside = np.zeros(x.shape)
    if k > 1:
        inside = unit * noise_on_support(moments, k) * np.expm1(2 * grow * x) / grow
    outside = np.zeros(x.shape)
    if k < d:
        outside = unit * noise_off_support(moments, k) * np.expm1(2 * decay * x) / decay
    return Departure(inside, outside, (k - 1) * inside + (d - k) * outside, grow, decay)


def median_factor(d: int) -> float:
    """Median over mean of tan^2 near a component: that of chi^2 with d - 1 degrees of freedom."""
    from scipy.stats import chi2

    return float(chi2.median(d - 1) / (d - 1))


def first_order_level(moments: Moments, d: int, eta: float) -> float:
    """S0 = (d - 1) eta mu6/(2 beta), the mean of tan^2 around a component as eta -> 0."""
    return (d - 1) * eta * moments.mu6 / (2 * moments.beta)


def level_under(moments: Moments, d: int, schedule: Schedule, start: float, times: Array) -> Array:
    """Mean of tan^2 near a component under any schedule, to first order, shape (T,).

    S(t + 1) = (1 - 2 beta eta) S + (d - 1) mu6 eta^2 from S(0) = ``start``, for 2 beta eta << 1:
    the start times e^(-2 x), and the noise; ``times`` increase.
    """
    at = np.floor(np.asarray(times, dtype=float))
    out, now, before = np.empty(at.shape), start, 0.0
    for i, end in enumerate(at):
        now = _level_after(moments, d, schedule, now, before, end)
        out[i], before = now, end
    return out


def _level_after(
    moments: Moments, d: int, schedule: Schedule, now: float, first: float, last: float
) -> float:
    """S after the steps first <= k < last, the schedule taken as constant on short stretches."""
    width = 2 * moments.beta
    breaks = [float(math.ceil(b)) for b in schedule.breaks]
    inner = np.geomspace(1.0, last - first + 1.0, _STRETCHES) - 1.0 if last > first else np.zeros(1)
    back = last - first - inner
    stretches = np.concatenate([np.floor(inner), np.floor(back), np.array(breaks) - first])
    marks = first + np.unique(np.clip(stretches, 0.0, last - first))
    if schedule.constant is not None:
        marks = np.array([first, last])
    x = width * steps_sum(schedule, marks)
    squares = steps_sum(schedule, marks, power=2)
    for dx, square in zip(np.diff(x), np.diff(squares), strict=True):
        drive = (d - 1) * moments.mu6 * square
        now = now * math.exp(-dx) + drive * (-math.expm1(-dx) / dx if dx > 0 else 1.0)
    return now


def annealed_level(moments: Moments, d: int, c: float) -> float:
    """Limit of t E tan^2 for eta = c/(beta t): c^2 (d - 1) mu6/(beta^2 (2 c - 1)), for c > 1/2."""
    if not c > 0.5:
        raise HdicaError(f"c = {c} is not allowed (above 1/2: E tan^2 decays slower than 1/t else)")
    return c * c * (d - 1) * moments.mu6 / (moments.beta**2 * (2 * c - 1))


@dataclass(frozen=True)
class Stationary:
    """Mean of tan^2 around a component at a constant step size.

    ``S0`` as eta -> 0, ``S_lin`` with the exact moments of one step to first order in S, ``S2`` to
    second; ``error`` is that of S2 from quadrature, ``median`` S2 times :func:`median_factor`.
    """

    S0: float
    S_lin: float
    S2: float
    error: float
    median: float


def stationary(source: Source, d: int, eta: float) -> Stationary:
    """Levels of tan^2 around a component: root S of b - (1 - a) S + 2 eta beta (1 + 5/(d-1)) S^2.

    a and b are averages over the found source alone, by quadrature (exact sums over atoms). For a
    skewed source S2 misses terms of relative order eta.

    Raises
    ------
    HdicaError
        If the dimension is below 2, or eta so large that there is no such level.
    """
    moments = moments_of(source, order=6)
    if d < 2:
        raise HdicaError(f"dimension = {d} is not allowed (at least 2)")
    if not eta > 0:
        raise HdicaError(f"eta = {eta} is not allowed (a step size is a number > 0)")
    _check_reach(source, moments, eta)
    (b, loss), (b_error, loss_error) = _balance(source, moments, d, eta)
    bend = 2 * eta * moments.beta * (1 + 5 / (d - 1))
    inside = loss * loss - 4 * bend * b
    if not (loss > 0 and inside > 0):
        raise _no_level(eta, d, moments)
    root = math.sqrt(inside)
    level = 2 * b / (loss + root)
    error = (b_error + loss_error * level) / root
    if not error <= _WORST * level:
        raise HdicaError(
            f"source: the level around a component of {source.label} at eta = {eta:g} is known no "
            f"better than to {error / level:.1e} by quadrature ({_WORST:.0e} is needed)"
        )
    s0 = first_order_level(moments, d, eta)
    return Stationary(s0, b / loss, level, error, level * median_factor(d))


def _no_level(eta: float, d: int, moments: Moments) -> HdicaError:
    return HdicaError(
        f"eta = {eta:g} is not allowed (in dimension {d} the fluctuations around a component of "
        f"{moments.label} have no stationary level: about eta * d < "
        f"{moments.beta / (2 * moments.mu6):.2g} is needed)"
    )


def _check_reach(source: Source, moments: Moments, eta: float) -> None:
    """1 + eta sgn Z^4 must not vanish: the found component would be stepped over."""
    law = source.law
    ends = [part.point(np.array([part.first[0], part.first[-1]])) for part in law.parts]
    atoms = [] if law.atoms is None else [law.atoms.points]
    most = float(np.abs(np.concatenate([*ends, *atoms])).max())
    if moments.sign < 0 and eta * most**4 >= 1:
        raise HdicaError(
            f"eta = {eta:g} is not allowed (below {most**-4:.3g}: a sample of {source.label} else "
            "throws the estimate across the equator)"
        )


def _balance(
    source: Source, moments: Moments, d: int, eta: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """B and 1 - a of :func:`stationary`, and their errors.

    With q = eta sgn Z^4 and h = eta sgn Z^3 the map U' = (U + h Z_k)/(1 + h Z) is expanded in U by
    H0, H1, H2, the derivatives of h/(1 + h Z) along sum_k U_k Z_k.
    """
    sign, others = moments.sign, (d + moments.mu4 - 2) / 2

    def integrand(_c: Array, _e: Array, z: Array) -> tuple[Array, Array]:
        q, h0 = eta * sign * z**4, eta * sign * z**3
        slope, over = 3 * eta * sign * z * z, 1 + q
        first = h0 / over
        second = slope / over**2
        third = 6 * eta * sign * z / over**2 - 2 * z * slope**2 / over**3
        kept = q * (2 + q) / over**2 - 2 * slope * (1 - q) / over**3
        spread = others * (2 * second**2 + 2 * first * third)
        return (d - 1) * first**2, kept - spread + 2 * (d - 1) * first * h0 / over**2

    found = averaged(integrand, parse_formula("x**3"), source, 1.0)
    (b, loss), (b_error, loss_error) = found.value, found.error
    return (float(b), float(loss)), (float(b_error), float(loss_error))
