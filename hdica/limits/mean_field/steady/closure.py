"""Steady densities, Boltzmann in an effective potential, and the overlap that they give back.

Wang and Lu 2016, eq. (17): P(x | xi) = exp{-(h x^2 + B Phi(x) - b xi x)/g}/Z. With
phi(x) = slope * x + psi(x) and Psi' = psi it is exp{-a x^2 - k Psi(x) + c x}/Z, where

    a = h/g + k slope/2,    k = B/g,    c = b xi/g.

a is measured from the end of its range: unless phi grows faster than x, the density is
normalisable for every a > 0 and may or may not be at a = 0. A steady state of overlap Q gives back
the overlap E[xi x] = Q + S(Q). Averages are by quadrature on panels that fit a density exp(-V):
where it lives, and no faster than it varies.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, Mask
from hdica.ingredients.quadrature import panel_nodes
from hdica.limits.mean_field.family import Coefficient, MeanField, Scaled
from hdica.limits.mean_field.steady.confinement import (
    DEPTH,
    Confinement,
    confinement,
    ends_of,
    region,
)
from hdica.limits.numerics.series import Function, Halves, adaptive, scaled
from hdica.limits.numerics.solvers import spend
from hdica.process.progress import check_deadline

_FARTHEST = 2.0**40
_SAMPLES = 97
PANELS = 24


def potential(shape: Confinement, a: Array, k: Array, tilt: Array, x: Array) -> Array:
    """V = a x^2 + k Psi(x) - tilt x; ``x`` of shape (rows, points), the others (rows,)."""
    square, linear = a[:, None] * x * x, tilt[:, None] * x
    return square + k[:, None] * shape.potential(x) - linear


def _outermost(shape: Confinement, a: Array, k: Array, tilt: Array) -> tuple[Array, Mask]:
    """A reach beyond which a density with one well has vanished, and whether there is one."""
    reach = np.full(a.shape, 8.0)
    while True:
        sides = reach[:, None] * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        v = potential(shape, a, k, tilt, sides)
        # The fall must hold for x^2 times the density, and with a margin for a deeper minimum.
        fallen = v[:, [0, -1]] - 3 * np.log(reach)[:, None] - v.min(axis=1)[:, None] > DEPTH
        rising = (v[:, 0] > v[:, 1]) & (v[:, -1] > v[:, -2])
        confined = np.all(fallen, axis=1) & rising
        growing = ~confined & (reach < _FARTHEST)
        if not np.any(growing):
            return reach, confined
        reach = np.where(growing, 4 * reach, reach)


def _shrunk(
    shape: Confinement, row: tuple[Array, ...], low: Array, high: Array, confined: Mask
) -> tuple[Array, Array]:
    """Intervals of densities with one well, made as narrow as these are."""
    a, k, tilt = row
    for _ in range(40):
        x = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _SAMPLES)
        v = potential(shape, a, k, tilt, x)
        first, last = ends_of(v - v.min(axis=1)[:, None] < DEPTH)
        rows = np.arange(a.size)
        shrunk = (last - first) < 0.7 * (_SAMPLES - 1)
        low, high = x[rows, first], x[rows, last]
        if not np.any(shrunk & confined):
            break
    return low, high


def edges(
    shape: Confinement, a: Array, k: Array, tilt: Array, panels: int = PANELS
) -> tuple[Array, Mask]:
    """Panel edges for each row, shape (rows, panels + 1), and which rows have a second moment.

    They lie where the density is larger than 1e-20 of its maximum. Panels share the variation of
    log-density, of distance and of its logarithm; every point where phi is not a short polynomial
    is an edge, and more of them crowd towards narrow wells.
    """
    if shape.l1 is not None:
        # Convex: one well, which uniform samples find.
        reach, confined = _outermost(shape, a, k, tilt)
        low, high = _shrunk(shape, (a, k, tilt), -reach, reach, confined)
        rungs = np.empty((a.size, 0))
    else:
        regions = region(shape, a, k, tilt)
        low, high, single = regions.low.copy(), regions.high.copy(), ~regions.many
        confined, rungs = regions.confined, regions.rungs
        if single.any():
            row = (a[single], k[single], tilt[single])
            ends = _shrunk(shape, row, low[single], high[single], confined[single])
            low[single], high[single] = ends
    t = np.linspace(0, 1, 4 * _SAMPLES)
    x = low[:, None] + (high - low)[:, None] * t
    v = potential(shape, a, k, tilt, x)
    v = np.minimum(v - v.min(axis=1)[:, None], DEPTH)
    width = (high - low)[:, None] / panels
    measure = np.abs(np.diff(v)) / 8 + np.diff(np.arcsinh(x / width)) + panels / 2 * np.diff(t)
    total = np.concatenate([np.zeros((a.size, 1)), np.cumsum(measure, axis=1)], axis=1)
    wanted = total[:, -1:] * np.linspace(0, 1, panels + 1)
    rows = [np.interp(w, m, p) for w, m, p in zip(wanted, total, x, strict=True)]
    even = np.array(rows).reshape(-1, panels + 1)
    if a.size == 0 or not np.any(confined):
        return even, confined
    inner = shape.breaks(float(low[confined].min()), float(high[confined].max()))
    fixed = np.clip(inner, low[:, None], high[:, None])
    return np.sort(np.concatenate([even, fixed, rungs], axis=1), axis=1), confined


_ORDER = 16
"""Points a panel; twice as many where it is asked what they leave out."""


class Moments(NamedTuple):
    """Averages over densities exp{-a x^2 - k Psi(x) + c x}/Z.

    ``powers`` are E x^j for j = 0 to 4, shape (5, ...), ``mixed`` E[x^j Psi(x)] for j = 0 to 2,
    shape (3, ...), infinite where the density is not normalisable; ``work`` is E[x psi(x)], shape
    (...).
    """

    powers: Array
    mixed: Array
    work: Array


def moments(shape: Confinement, a: Array, k: Array, tilt: Array, finer: bool = False) -> Moments:
    """Averages over the densities with coefficients ``a``, ``k`` and ``tilt`` = c, broadcast.

    For psi = l1 sign(x) in closed form (001, eq. (19), with erfcx and the constant 2/sqrt(pi) that
    belongs to it); otherwise by Gauss-Legendre quadrature, with twice the points if ``finer``.
    """
    check_deadline()
    a, k, tilt = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (a, k, tilt)))
    like, (flat_a, flat_k, flat_tilt) = a.shape, (v.ravel() for v in (a, k, tilt))
    if shape.l1 is not None:
        from hdica.limits.mean_field.steady.laplace_kernels import averages

        powers, mixed = np.empty((5, a.size)), np.empty((3, a.size))
        averages(shape.l1, flat_a, flat_k, flat_tilt, powers, mixed)
        work = mixed[0]
    else:
        powers, mixed, work = _by_quadrature(shape, flat_a, flat_k, flat_tilt, finer)
    return Moments(powers.reshape(5, *like), mixed.reshape(3, *like), work.reshape(like))


def _by_quadrature(
    shape: Confinement, a: Array, k: Array, tilt: Array, finer: bool
) -> tuple[Array, Array, Array]:
    ends, confined = edges(shape, a, k, tilt)
    x, w = panel_nodes(ends, 2 * _ORDER if finer else _ORDER)
    spend(x.size)
    energy = shape.potential(x)
    v = a[:, None] * x * x + k[:, None] * energy - tilt[:, None] * x
    p = w * np.exp(v.min(axis=1)[:, None] - v)
    with np.errstate(invalid="ignore"):
        # A region that is not confined may have no mass at its own points.
        p = p / p.sum(axis=1)[:, None]
    towers = [p]
    for _ in range(4):
        towers.append(towers[-1] * x)
    powers = np.stack([t.sum(axis=1) for t in towers])
    mixed = np.stack([(t * energy).sum(axis=1) for t in towers[:3]])
    powers[:, ~confined], mixed[:, ~confined] = np.inf, np.inf
    return powers, mixed, (towers[1] * shape.psi(x)).sum(axis=1)


def density(
    shape: Confinement, a: Array, k: Array, tilt: Array, x: Array, ends: Array
) -> tuple[Array, Array]:
    """The densities at points ``x`` and their distribution functions at ``ends``, increasing.

    Coefficients are of shape (rows,), results (rows, points): NaN where a density has no second
    moment. Both are divided by the same quadrature of Z, of which every end of a bin is an edge.
    """
    panels, confined = edges(shape, a, k, tilt)
    inside = np.clip(ends, panels[:, :1], panels[:, -1:])
    joined = np.sort(np.concatenate([panels, inside], axis=1), axis=1)
    points, w = panel_nodes(joined, _ORDER)
    spend(points.size)
    v = potential(shape, a, k, tilt, points)
    lowest = v.min(axis=1)[:, None]
    mass = (w * np.exp(lowest - v)).reshape(a.size, -1, _ORDER).sum(axis=2)
    below = np.concatenate([np.zeros((a.size, 1)), np.cumsum(mass, axis=1)], axis=1)
    at = [np.searchsorted(row, some) for row, some in zip(joined, inside, strict=True)]
    at_x = np.exp(lowest - potential(shape, a, k, tilt, np.broadcast_to(x, (a.size, x.size))))
    whole = np.where(confined, below[:, -1], np.nan)[:, None]
    return at_x / whole, np.take_along_axis(below, np.stack(at), axis=1) / whole


_STEPS = 200


class Closure(NamedTuple):
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
    condensed: Mask
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


def _rise(coefficient: Coefficient, tau: float) -> Function:
    halves = coefficient.function if isinstance(coefficient, Scaled) else None
    if isinstance(coefficient, Scaled) and isinstance(halves, Halves) and not halves.over:
        return scaled(halves.deriv(), tau**coefficient.power)
    return adaptive(lambda q: coefficient(q, tau))[0].deriv()


def _end_moment(
    shape: Confinement, weights: Array, k: Array, tilt: Array, finer: bool = False
) -> Array:
    """E x^2 at a = 0, averaged over the atoms; infinite where any a is admissible."""
    if shape.superlinear:
        return np.full(k.size, np.inf)
    powers = moments(shape, 0 * k[:, None], k[:, None], tilt, finer).powers
    return np.sum(weights * powers[2], axis=-1)


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
        from hdica.limits.mean_field.steady.laplace_kernels import multipliers

        a, at_end = np.empty(k.size), np.empty(k.size)
        plain = [np.ascontiguousarray(v, dtype=float) for v in (weights, k, tilt)]
        multipliers(shape.l1, *plain, a, at_end)
        return a, at_end
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
        row = (a[active, None], k[active, None], tilt[active])
        powers = moments(shape, *row, finer).powers
        mean = np.sum(weights * powers[2], axis=-1)
        above = mean > 1
        low[active] = np.where(above, a[active], low[active])
        high[active] = np.where(above, high[active], a[active])
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sum(weights * (powers[4] - powers[2] ** 2), axis=-1)
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
    q = np.array(q, dtype=float, ndmin=1)
    xi, weights = field.prior.nodes
    (b, g), strength = field.rates(q, tau), field.strength(tau)
    k, ratio = strength / g, b / g
    tilt = ratio[:, None] * xi
    # In closed form a state costs what some points do; quadrature counts its own.
    spend(200 * tilt.size if shape.l1 is not None else 0, 5_000)
    a, at_end = multiplier(shape, weights, k, tilt, finer)
    at_limit = np.full(q.size, True) if condensed else at_end < 1
    a = np.where(at_limit, 0.0, a)
    averages = moments(shape, a[:, None], k[:, None], tilt, finer)
    bulk = np.sum(weights * averages.powers[2], axis=-1)
    # A state that is held at a = 0 by the caller may have infinite moments there.
    with np.errstate(invalid="ignore"):
        overlap = np.sum(weights * xi * averages.powers[1], axis=-1)
        unknown = np.full(q.size, np.nan)
        fixed, free = _slopes(field, q, g, k, ratio, averages) if slopes else (unknown, unknown)
    work = np.sum(weights * averages.work, axis=-1)
    return Closure(
        q=q,
        g=g,
        k=k,
        ratio=ratio,
        a=a,
        at_end=at_end,
        condensed=at_limit,
        bulk=np.where(at_limit, bulk, 1.0),
        excess=overlap - q,
        slope=np.where(at_limit, fixed, free),
        free_slope=free,
        # phi grows like slope * x on the condensate, which brings E x^2 to 1.
        r=work + shape.slope,
        h=g * a - strength * shape.slope / 2,
    )


def _slopes(
    field: MeanField, q: Array, g: Array, k: Array, ratio: Array, averages: Moments
) -> tuple[Array, Array]:
    """dS/dq at fixed a and at fixed E x^2, from covariances."""
    xi, weights = field.prior.nodes
    _, x1, x2, x3, x4 = averages.powers
    p0, p1, p2 = averages.mixed
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
