"""All steady states of a limit of the mean-field family at one constant step size.

Without noise they are x = xi or x = -xi, where the diffusion vanishes: a nonlinearity that is zero
on all values of a source, such as x^3 - x on a source of +-1, moves nothing where the estimate is
the feature itself. There is no Boltzmann density then: every entry stands at the bottom of its
potential, and all of them do at Q = +-1 if phi(x) is proportional to x on the values of the
feature. With V the variance of x at a given xi, to first order,

    dV/dt = -2 lambda V + 2 g,    lambda = b Q - B phi(x)/x + B phi'(x),    1 - |Q| = E[V]/2,

and g = G (1 - |Q|) with G = |dg/dQ|, so that such a state is stable if all lambda > 0 and
G E[1/lambda] < 2. A shift of the means of x at each xi decays as exp(-lambda t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from hdica.ingredients.plain import Array, Mask
from hdica.ingredients.quadrature import dot
from hdica.limits.mean_field.family import Coefficient, MeanField, coefficient_error
from hdica.limits.mean_field.steady import closure
from hdica.limits.mean_field.steady.closure import Closure
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.mean_field.steady.stability import stability
from hdica.limits.numerics.solvers import bounded, find_zeros

_VANISHES = 1e-13
"""Share of the largest diffusion below which it is zero with rounding."""
_SAME = 1e-12
"""Relative difference of phi(x)/x between values of the feature that is rounding."""
_SIDE = 1e-7


class Noiseless(NamedTuple):
    """A steady state at Q = 1 or -1 at which nothing moves.

    R = E[x phi(x)] and the multiplier h are NaN where phi jumps at a value of the feature;
    ``growth`` is the largest growth rate of a small change of the density: the state is stable
    where it is < 0.
    """

    q: float
    r: float
    h: float
    growth: float


def vanishes(field: MeanField) -> list[float]:
    """Those of the overlaps -1 and 1 at which the diffusion is zero."""
    tau = closure.step_size(field)
    largest = max(field.diffusion(q, tau) for q in (0.0, 0.25, 0.5, 0.75))
    return [q for q in (-1.0, 1.0) if field.diffusion(q, tau) <= _VANISHES * largest]


def noiseless(field: MeanField) -> list[Noiseless]:
    """Every steady state at which the diffusion vanishes."""
    return [state for q in vanishes(field) if (state := _at(field, q)) is not None]


def _at(field: MeanField, q: float) -> Noiseless | None:
    """The state at Q = 1 or -1, None if the regularizer drives the entries away from it."""
    tau, (_, widens) = closure.step_size(field), closure.rates_of_change(field)
    xi, weights = field.prior.nodes
    x, shrinks = q * xi, field.phi.value(q * xi)
    r = dot(weights * x, shrinks)
    if np.any(np.abs(shrinks - r * x) > _SAME * max(1.0, np.abs(shrinks).max())):
        return None
    strength = field.strength(tau)
    curvature = field.pull(q, tau) * q - strength * r
    back = curvature + strength * _slope(field, x)
    growth = _growth(back, weights, abs(float(widens(np.array([q]))[0])))
    pinned = not np.all(np.isfinite(back[xi != 0.0]))
    r, curvature = (math.nan, math.nan) if pinned else (r, curvature)
    return Noiseless(q, r, curvature / 2, growth)


def _slope(field: MeanField, x: Array) -> Array:
    """The smaller of the slopes on either side; infinite where the regularizer jumps."""
    phi, slope = field.phi.value, field.phi.derivative.value
    smaller = np.minimum(slope(x - _SIDE), slope(x + _SIDE))
    for kink in field.phi.kinks:
        jump = float(phi(np.array([kink + _SIDE]))[0] - phi(np.array([kink - _SIDE]))[0])
        at_kink = np.abs(x - kink) < _SIDE
        if abs(jump) > math.sqrt(_SIDE):
            smaller = np.where(at_kink, math.copysign(math.inf, jump), smaller)
    return smaller


def _growth(back: Array, weights: Array, noise: float) -> float:
    """Largest eigenvalue of the variances, or of the means where those decay more slowly."""
    finite = np.isfinite(back)
    if not np.all(back[~finite] > 0):
        return math.inf
    if not np.any(finite):
        return -math.inf
    matrix = np.diag(-2 * back[finite]) + noise * weights[finite]
    variances = float(np.linalg.eigvals(matrix).real.max())
    return max(variances, float(-back[finite].min()))


NEAREST = 1e-5
"""Overlaps smaller than this are not told from 0, nor from 1 where the diffusion vanishes there."""
_SYMMETRY = 1e-11
_NEWTON = 6
_NOT_EXACT = 1.5
"""Error of few nodes over its difference to more: where densities are narrow they have one, too."""
_FINER = 128
"""Nodes of a continuous prior on either side of zero that are asked what fewer leave out."""
_SHOWN = 1e-5
"""Share by which a coefficient is changed to see what its error does."""


@dataclass(frozen=True)
class SteadyStates:
    """Steady states by increasing Q; arrays of shape (states,).

    ``r`` is R = E[x phi(x)], condensate included; ``h`` the multiplier, half the curvature of the
    effective potential; ``bulk`` E x^2 of the entries of order one: below 1 the rest of |x|^2 = n
    sits on o(n) entries. ``kind`` is ``"informative"`` (Q != 0), ``"uninformative"`` (Q = 0, both
    with bulk = 1) or ``"condensed"`` (bulk < 1, at any Q); ``stable`` says whether no small change
    of the density grows; ``growth`` is the largest growth rate of such a change, in units of 1/t,
    NaN for stable condensed states; ``error`` that of Q: residual of the self-consistency over its
    slope.
    """

    q: Array
    r: Array
    h: Array
    bulk: Array
    kind: NDArray[np.str_]
    stable: Mask
    growth: Array
    error: Array


def accuracy(field: MeanField) -> float:
    """Relative accuracy of averages over the densities of a field."""
    return 4e-15 if confinement(field.phi).l1 is not None else 1e-13


def open_to_averages(field: MeanField, q: Array) -> Array:
    """How far S(Q) may be off because b and g are, shape of ``q``; 0 where they are exact."""
    tau = closure.step_size(field)
    total = np.zeros(q.size)
    base: Array | None = None
    for coefficient in (field.pull, field.diffusion):
        off = np.array([coefficient_error(coefficient, float(v), tau) for v in q])
        if not off.any():
            continue
        size = _SHOWN * float(np.abs([coefficient(float(v), tau) for v in q]).max())
        pulled = coefficient is field.pull

        def changed(q: float, tau: float, of: Coefficient = coefficient, by: float = size) -> float:
            return of(q, tau) + by

        base = closure.close(field, q, slopes=False).excess if base is None else base
        moved = replace(field, pull=changed) if pulled else replace(field, diffusion=changed)
        with np.errstate(invalid="ignore"):
            answer = np.abs(closure.close(moved, q, slopes=False).excess - base) / size
        total += off * np.where(np.isfinite(answer), answer, 0.0)
    return total


def _finer(field: MeanField) -> MeanField:
    return replace(field, prior=field.prior.with_nodes(_FINER))


def _moved(field: MeanField, q: Array) -> Array:
    """How far states are from those of more nodes of a continuous prior, by Newton's method.

    Where the density is narrow, S bends between nodes, and its slope there says too little.
    """
    if field.prior.finer is None:
        return np.zeros(q.size)
    fine, at = _finer(field), q.copy()
    for _ in range(_NEWTON):
        there = closure.close(fine, at)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(there.excess == 0, 0.0, there.excess / there.slope)
        at = np.where(np.isfinite(step), np.clip(at - step, -1.0, 1.0), at)
    return _NOT_EXACT * np.abs(at - q)


def open_to_nodes(field: MeanField, q: Array) -> Array:
    """How much S(Q) changes with more nodes of a continuous prior and of the densities."""
    total = np.zeros(q.size)
    base = closure.close(field, q, slopes=False).excess
    with np.errstate(invalid="ignore"):
        if field.prior.finer is not None:
            total += _NOT_EXACT * np.abs(
                closure.close(_finer(field), q, slopes=False).excess - base
            )
        if confinement(field.phi).l1 is None:
            total += np.abs(closure.close(field, q, slopes=False, finer=True).excess - base)
    return np.where(np.isfinite(total), total, 0.0)


def has_zero(field: MeanField) -> bool:
    """Whether Q = 0 is steady: nothing pulls there and the prior or the density is centred."""
    return bool(abs(closure.close(field, np.zeros(1)).excess[0]) < _SYMMETRY)


def is_mirrored(field: MeanField) -> bool:
    """Whether Q and -Q are equivalent: S(-Q) = -S(Q)."""
    probe = np.array([0.17, 0.53, 0.91])
    excess = closure.close(field, np.concatenate([probe, -probe])).excess
    return bool(np.all(np.abs(excess[:3] + excess[3:]) < _SYMMETRY))


def junctions(field: MeanField, q: Array) -> Array:
    """Overlaps at which the Boltzmann states begin to condense, between the points ``q``.

    Each comes as two points a hair apart: S has a corner there.
    """
    ends = closure.close(field, q).at_end
    crossing = np.flatnonzero((ends[:-1] < 1) != (ends[1:] < 1))
    find = partial(scipy.optimize.brentq, lambda x: 1 / closure.end_moment(field, x) - 1)
    roots = [find(q[i], q[i + 1], xtol=1e-15) for i in crossing]
    return np.array([v for x in roots for v in (x - 1e-10, x + 1e-10)])


def _zeros(field: MeanField, nodes: Array, divided: bool) -> Array:
    """Zeros of S, or of S/Q, whose zero at Q = 0 is no branch of its own."""

    def function(q: Array) -> tuple[Array, Array]:
        states = closure.close(field, q)
        if not divided:
            return states.excess, states.slope
        value = states.excess / q
        return value, (states.slope - value) / q

    return find_zeros(function, np.concatenate([nodes, junctions(field, np.sort(nodes))]))


def overlaps(field: MeanField) -> Array:
    """Overlap of every steady state, increasing."""
    # Places in (0, 1], dense towards both ends.
    near_zero, near_one = np.geomspace(NEAREST, 0.05, 12), 1 - np.geomspace(0.05, 1e-10, 24)
    places = np.concatenate([near_zero, np.linspace(0.05, 0.95, 37)[1:-1], near_one, [1.0]])
    ends = vanishes(field)
    # No Boltzmann density is at such an end, and just before it is too narrow for accurate slopes.
    before = places[places < 1 - NEAREST]
    negative, positive = (end * (before if end in ends else places) for end in (-1.0, 1.0))
    if not has_zero(field):
        return _zeros(field, np.concatenate([negative, [0.0], positive]), False)
    right = _zeros(field, positive, True)
    left = -right[::-1] if is_mirrored(field) else _zeros(field, negative, True)
    return np.concatenate([left, [0.0], right])


def kinds(state: Closure) -> NDArray[np.str_]:
    """What each state is called."""
    plain = np.where(state.q == 0.0, "uninformative", "informative")
    return np.asarray(np.where(state.condensed, "condensed", plain), dtype=np.str_)


@bounded("the steady states")
def steady_states(field: MeanField) -> SteadyStates:
    """Every steady state at a constant step size, its kind and its stability.

    Steady densities are Boltzmann (Wang and Lu 2016, eq. (17)). Given Q the multiplier h follows
    from E x^2 = 1, which has one solution or none (then the state is condensed: h at the end of its
    range), so that all states are the zeros of S(Q) = E[xi x] - Q on [-1, 1]. What the nodes
    of a continuous prior leave out is in ``error``. Where the diffusion vanishes at Q =
    +-1 there is no density, but maybe a state (:mod:`hdica.limits.mean_field.steady.states`).
    """
    q = overlaps(field)
    state = closure.close(field, q)
    residual = np.abs(state.excess) + accuracy(field)
    residual += open_to_averages(field, q) + open_to_nodes(field, q)
    with np.errstate(divide="ignore"):
        error = np.where(q == 0.0, 0.0, residual / np.abs(state.slope))
    error = np.maximum(error, np.where(q == 0.0, 0.0, _moved(field, q)))
    # Mirror images share their stability, that of the first of them.
    keys = (np.abs(q) if is_mirrored(field) else q).tolist()
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    by_key = {key: stability(field, state, first[key]) for key in dict.fromkeys(keys)}
    judged = [by_key[key] for key in keys]
    stable = np.array([settles for settles, _ in judged], dtype=bool)
    growth = np.array([rate for _, rate in judged])
    rows = [q, state.r, state.h, state.bulk, kinds(state), stable, growth, error]
    # Those at Q = +-1 that are no densities.
    for end in noiseless(field):
        own = (end.q, end.r, end.h, 1.0, "informative", end.growth < 0, end.growth, 0.0)
        rows = [np.append(row, np.array(value)) for row, value in zip(rows, own, strict=True)]
    order = np.argsort(rows[0], kind="stable")
    return SteadyStates(*(row[order] for row in rows))


def densities(field: MeanField, q: Array, x: Array, ends: Array) -> tuple[Array, Array]:
    """Steady densities, Wang and Lu 2016, eq. (17), given xi at each node of the prior.

    Those of the states of overlaps ``q``: at the points ``x``, and the distribution functions at
    ``ends``, both of shape (states, nodes, points). That of a condensed state is of its bulk, the
    weak limit as n -> infinity: its mass is 1, but its E x^2 is ``bulk`` < 1. NaN where there is
    none of this form: at Q = +-1 without diffusion, and where the feature moves.
    """
    nodes = field.prior.nodes.points
    results = [np.full((q.size, nodes.size, at.size), np.nan) for at in (x, ends)]
    if field.motion.moves:
        return results[0], results[1]
    has_density = np.isfinite(q) & ~np.isin(q, vanishes(field))
    state, shape = closure.close(field, q[has_density], slopes=False), confinement(field.phi)
    for i, a, k, ratio in zip(
        np.flatnonzero(has_density), state.a, state.k, state.ratio, strict=True
    ):
        row = np.full(nodes.size, a), np.full(nodes.size, k), ratio * nodes
        results[0][i], results[1][i] = closure.density(shape, *row, x, ends)
    return results[0], results[1]
