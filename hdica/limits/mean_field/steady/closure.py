"""The overlap that a steady state of overlap Q gives back: S(Q) = E[xi x] - Q and its slope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.mean_field.steady.boltzmann import Moments, moments
from hdica.limits.mean_field.steady.confinement import Confinement, confinement
from hdica.limits.numerics.halves import Halves
from hdica.limits.numerics.packed import Function, scaled
from hdica.limits.numerics.series import adaptive
from hdica.limits.numerics.work import spend

Array = NDArray[np.float64]
_STEPS = 200


@dataclass(frozen=True)
class Closure:
    """Boltzmann states with E x^2 = 1 at given overlaps, arrays of shape (overlaps,).

    ``q`` are the overlaps that enter drift and diffusion, ``g`` is g(q), ``k`` B/g, ``ratio`` b/g,
    ``a`` h/g above the end of its range, 0 in a condensed state: even the weakest multiplier leaves
    E x^2 < 1, so that the rest of |x|^2 = n sits on o(n) coordinates. ``at_end`` is E x^2 at a = 0,
    infinite where the density is not normalisable there, ``bulk`` that of the entries of order one.

    ``excess`` is S = E[xi x] - q, zero in a steady state; ``slope`` dS/dq, at fixed a in condensed
    states; ``free_slope`` dS/dq with the multiplier that keeps E x^2, which differs from ``slope``
    in condensed states and is the slope on the other side of a junction. ``r`` is R = E[x phi(x)],
    condensate included, ``h`` the multiplier: half the curvature of the effective potential.
    """

    q: Array
    g: Array
    k: Array
    ratio: Array
    a: Array
    at_end: Array
    condensed: NDArray[np.bool_]
    bulk: Array
    excess: Array
    slope: Array
    free_slope: Array
    r: Array
    h: Array


def step_size(field: MeanField) -> float:
    """The constant step size of a field whose feature stays."""
    if field.motion.moves:
        raise HdicaError(
            "motion is not allowed for steady states of a density (a feature that stays)",
            ["motion"],
        )
    if field.schedule.constant is None:
        raise HdicaError(
            "tau = a schedule is not allowed for steady states (a constant step size and signal)"
        )
    return field.schedule.constant


@lru_cache(maxsize=64)
def rates_of_change(field: MeanField) -> tuple[Function, Function]:
    """db/dq and dg/dq at the constant step size."""
    tau = step_size(field)
    return _rise(field.pull, tau), _rise(field.diffusion, tau)


def _rise(coefficient: Callable[[float, float], float], tau: float) -> Function:
    halves = coefficient.function if isinstance(coefficient, Scaled) else None
    if isinstance(coefficient, Scaled) and isinstance(halves, Halves) and not halves.over:
        return scaled(halves.deriv(), tau**coefficient.power)
    return adaptive(lambda q: coefficient(q, tau))[0].deriv()


def _second(shape: Confinement, a: Array, k: Array, tilt: Array, finer: bool) -> Moments:
    return moments(shape, a[:, None], k[:, None], tilt, finer)


def _end_moment(
    shape: Confinement, weights: Array, k: Array, tilt: Array, finer: bool = False
) -> Array:
    """E x^2 at a = 0, averaged over the atoms; infinite where any a is admissible."""
    if shape.superlinear:
        return np.full(k.size, np.inf)
    return np.asarray(np.sum(weights * _second(shape, 0 * k, k, tilt, finer).powers[2], axis=-1))


def multiplier(
    shape: Confinement, weights: Array, k: Array, tilt: Array, finer: bool = False
) -> tuple[Array, Array]:
    """The a at which the mean of E x^2 over all atoms is 1, or the end of its range.

    Newton's method on 1/E x^2 - 1, which is increasing, linear in a for a Gaussian and nearly so
    otherwise, inside a bracket that every step shrinks. Weights are of shape (atoms,), ``k`` of
    shape (rows,), ``tilt`` of shape (rows, atoms); returned are a, 0 where E x^2 < 1 even there,
    and E x^2 at a = 0, both of shape (rows,).
    """
    if shape.l1 is not None:
        return _compiled_multiplier(shape.l1, weights, k, tilt)
    at_end = _end_moment(shape, weights, k, tilt, finer)
    low = np.where((k > 0) & shape.superlinear, -np.inf, 0.0)
    high = np.full(k.size, np.inf)
    # Without a regularizer 4 a^2 = 2 a + E tilt^2.
    a = (1 + np.sqrt(1 + 4 * np.sum(weights * tilt**2, axis=-1))) / 4
    a = np.where(at_end < 1, 0.0, a)
    active = np.flatnonzero(at_end >= 1)
    for _ in range(_STEPS):
        if active.size == 0:
            break
        found = _second(shape, a[active], k[active], tilt[active], finer)
        mean = np.sum(weights * found.powers[2], axis=-1)
        above = mean > 1
        low[active] = np.where(above, a[active], low[active])
        high[active] = np.where(above, high[active], a[active])
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sum(weights * (found.powers[4] - found.powers[2] ** 2), axis=-1)
            # Where x^2 of one well in two is far from 1, log E x^2 is linear instead.
            excess = np.where(spread > 8 * mean**2, np.log(mean), mean - 1)
            step = mean * excess / spread
        new = _inside(a[active] + step, a[active], low[active], high[active])
        # The last step is taken: near the root its error is the square of its size.
        scale = np.abs(new) + 1 / np.maximum(np.sqrt(spread), spread)
        settled = (np.abs(new - a[active]) <= 1e-9 * scale) & (np.abs(mean - 1) < 1e-3)
        # Where E x^2 passes 1 within rounding of a there is no better a.
        settled |= high[active] - low[active] <= 4e-16 * np.abs(new)
        a[active] = new
        active = active[~settled]
    return a, at_end


def _compiled_multiplier(l1: float, weights: Array, k: Array, tilt: Array) -> tuple[Array, Array]:
    from hdica.limits.mean_field.steady.laplace_kernels import multipliers

    a, at_end = np.empty(k.size), np.empty(k.size)
    plain = [np.ascontiguousarray(v, dtype=float) for v in (weights, k, tilt)]
    multipliers(l1, *plain, a, at_end)
    return a, at_end


def _inside(new: Array, old: Array, low: Array, high: Array) -> Array:
    """The Newton step where it stays in the bracket, else a bisection or an expansion."""
    width = np.abs(old) + 1
    lower = np.where(np.isfinite(low), low, old - 2 * width)
    upper = np.where(np.isfinite(high), high, old + 2 * width)
    # Near condensation a is orders of magnitude smaller than elsewhere.
    geometric = np.sqrt(np.maximum(lower, 1e-4 * upper) * np.maximum(upper, 0.0))
    middle = np.where((low >= 0) & np.isfinite(high), geometric, (lower + upper) / 2)
    wild = ~((new >= low) & (new <= high)) | (np.abs(new - old) > 8 * width)
    return np.where(wild, middle, new)


def end_moment(field: MeanField, q: float) -> float:
    """E x^2 at overlap ``q`` and the end of the range of multipliers; below 1 it condenses."""
    tau, nodes = step_size(field), field.prior.nodes
    g = field.diffusion(q, tau)
    tilt = field.pull(q, tau) / g * nodes.points[None]
    k = np.array([field.strength(tau) / g])
    return float(_end_moment(confinement(field.phi), nodes.weights, k, tilt)[0])


def close(
    field: MeanField,
    q: Array,
    condensed: bool | None = None,
    slopes: bool = True,
    finer: bool = False,
) -> Closure:
    """Boltzmann states with E x^2 = 1 whose drift and diffusion belong to the overlaps ``q``.

    ``condensed`` is True for the smooth continuation of the condensed states (a = 0) beyond E x^2 =
    1; otherwise E x^2 decides. ``slopes`` is False where nobody asks for the derivatives, which
    cost as much as the rest: they are NaN. ``finer`` asks averages over densities of twice the
    points.
    """
    tau, shape = step_size(field), confinement(field.phi)
    q = np.atleast_1d(np.asarray(q, dtype=float))
    xi, weights = field.prior.nodes.points, field.prior.nodes.weights
    b = np.array([field.pull(float(v), tau) for v in q])
    g = np.array([field.diffusion(float(v), tau) for v in q])
    strength = field.strength(tau)
    k, ratio = strength / g, b / g
    tilt = ratio[:, None] * xi
    # In closed form a state costs what some points do; quadrature counts its own.
    spend(200 * tilt.size if shape.l1 is not None else 0, 5_000)
    a, at_end = multiplier(shape, weights, k, tilt, finer)
    held = np.full(q.size, True) if condensed else at_end < 1
    a = np.where(held, 0.0, a)
    found = moments(shape, a[:, None], k[:, None], tilt, finer)
    bulk = np.sum(weights * found.powers[2], axis=-1)
    # A state that is held at a = 0 by the caller may have infinite moments there.
    with np.errstate(invalid="ignore"):
        overlap = np.sum(weights * xi * found.powers[1], axis=-1)
        unknown = np.full(q.size, np.nan)
        fixed, free = _slopes(field, q, g, k, ratio, found) if slopes else (unknown, unknown)
    work = np.sum(weights * found.work, axis=-1)
    return Closure(
        q=q,
        g=g,
        k=k,
        ratio=ratio,
        a=a,
        at_end=at_end,
        condensed=held,
        bulk=np.where(held, bulk, 1.0),
        excess=overlap - q,
        slope=np.where(held, fixed, free),
        free_slope=free,
        # phi grows like slope * x on the condensate, which brings E x^2 to 1.
        r=work + shape.slope,
        h=g * a - strength * shape.slope / 2,
    )


def _slopes(
    field: MeanField, q: Array, g: Array, k: Array, ratio: Array, found: Moments
) -> tuple[Array, Array]:
    """dS/dq at fixed a and at fixed E x^2, from covariances."""
    xi, weights = field.prior.nodes.points, field.prior.nodes.weights
    _, x1, x2, x3, x4 = found.powers
    p0, p1, p2 = found.mixed
    pulls, widens = rates_of_change(field)
    g_rate = widens(q)
    k_rate = -k * g_rate / g
    ratio_rate = pulls(q) / g - ratio * g_rate / g
    spread = np.sum(weights * (x4 - x2 * x2), axis=-1)
    skew = np.sum(weights * xi * (x3 - x1 * x2), axis=-1)
    bulk_slope = ratio_rate * skew - k_rate * np.sum(weights * (p2 - x2 * p0), axis=-1)
    fixed = ratio_rate * np.sum(weights * xi**2 * (x2 - x1 * x1), axis=-1)
    fixed -= k_rate * np.sum(weights * xi * (p1 - x1 * p0), axis=-1) + 1
    return fixed, fixed - skew * bulk_slope / spread
