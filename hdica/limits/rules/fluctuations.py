"""Fluctuations of order n^-1/2 of R and P about their limit, and their bias of order 1/n.

A step at t = k/n moves S = (R, P) by J/n + J2/n^2. With D = F u' + u F' + F F' - lambda P - P
lambda of one sample, B that of :mod:`hdica.limits.rules.equations` and the inverse square root
I - B/n + N/n^2 of what a step makes of P = I,

    J_R = F v' - lambda R - B R,                   J_P = D - B P - P B',
    J2_R = N R - B (F v' - lambda R),              J2_P = E - B D - D B' + N P + P N' + B P B',
    E = lambda P lambda - lambda u F' - F u' lambda + F F' (|v|^2 + |e|^2 - M - K),

where the squared length of a sample is n + |v|^2 + |e|^2 - M - K but for what does not depend on
F. N is 0 of a free norm, the diagonal part of 3 D^2/8 - E/2, all of it, or B^2 - low(E - B B'), the
part below the diagonal with half of that, as B is. With the Jacobian and the second derivatives of
the rates <J>, C = n Cov S and the mean S + m/n of runs follow

    dC/dt = <J>' C + C <J>'' + Cov J,      dm/dt = <J>' m + <J>''[C]/2 + <J2> - (d<J>/dt)/2.

A start is exact at every n: C and m begin at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gram
from hdica.limits.numerics.solvers import integrate
from hdica.limits.rules.averages import MOST_POINTS, REPLICATES, Averages, Sample
from hdica.limits.rules.equations import QUANTILE, Equations
from hdica.limits.rules.points import LEVELS

GOAL = 1e-3
"""Relative error of the averages above which they are refined."""
_STEPS, _NOTHING, _SINGULAR = 1e-5, 1e-12, 1e-7
_NEAR, _BESIDE = 1e-5, 1e-2
"""Distance over which rates are differentiated once and twice, of the distance to the edge of what
there is and at most of 1; their squares are the relative errors."""


class Fluctuations(NamedTuple):
    """Limits of sqrt(n) times the standard deviation, and of n times what the mean is beyond.

    Both of R and P at the output times, shape (T, K, M + K).
    """

    deviation: Array
    bias: Array


def _squared(equations: Equations) -> Sample:
    """What is averaged for the fluctuations."""
    return replace(equations.sample, squared=True)


def refusal(equations: Equations, r: Array, p: Array, bias: bool) -> str:
    """Empty if the fluctuations about a limit are known, else the sentence that says why not."""
    sample = _squared(equations)
    if sample.is_random and sample.update.factors:
        return (
            "bands and bias are not available for an update with jumps or kinks whose averages are "
            "taken over random points (choose fewer estimates, features and noises)"
        )
    if bias and equations.clock.breaks:
        return "bias = True is not allowed for an update that jumps in t (a smooth one)"
    return sample.refusal(r, p)


def fluctuations(
    equations: Equations, r: Array, p: Array, times: Array, bias: bool
) -> Fluctuations:
    """Fluctuations at increasing times from R and P of the start; without ``bias`` it is NaN.

    Raises
    ------
    HdicaError
        If they are not known (:func:`refusal`), or the averages cannot be refined enough.
    """
    why = refusal(equations, r, p, bias)
    if why:
        raise HdicaError(why)
    sample, found, rows = _squared(equations), list[Array](), 2 if bias else 1
    levels = range(REPLICATES) if sample.is_random else range(LEVELS)
    for level in levels:
        if level > 1 and not sample.is_random and sample.size(level) > MOST_POINTS:
            break
        found.append(_solved(equations, r, p, times, bias, level))
        if len(found) == 1:
            if sample.is_known:
                return Fluctuations(*found[0])
            continue
        value, gap = found[-1], np.abs(found[-1] - found[-2])
        if sample.is_random:
            value = np.mean(found, axis=0)
            gap = QUANTILE * np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
        size = np.max(np.abs(value[:rows]), axis=(1, 2, 3), keepdims=True)
        share = float(np.max(gap[:rows] / np.maximum(size, _NOTHING)))
        if share <= GOAL and (len(found) > 2 or not sample.is_random):
            return Fluctuations(*value)
    raise HdicaError(
        f"bands and bias of this update are not resolved: its averages leave {share:.1%} of them "
        f"open (at most {GOAL:.1%})"
    )


def _solved(
    equations: Equations, r: Array, p: Array, times: Array, bias: bool, level: int
) -> Array:
    """Deviation and bias, shape (2, T, K, M + K), at a level of refinement or of one replicate."""
    sample = equations.sample
    coarse = 0 if sample.is_known else level
    means, squares = Averages(sample, coarse), Averages(_squared(equations), level)
    start = equations.joined(r, p)
    shape, size = start.shape, start.size

    def flow(state: Array, t: float) -> Array:
        return equations.rate(means, state.reshape(shape), t).ravel()

    def rate(now: Array, t: float) -> Array:
        """Rate of rows S, m + <J>/2 and C: no derivative of the rates by t is left."""
        s, shifted, c = now[0], now[1], now[2:]
        edge = _edge(equations, s.reshape(shape))
        rates, slopes = flow(s, t), _slopes(lambda x: flow(x, t), s, _NEAR * edge)
        noise, second = _moments(equations, squares, s.reshape(shape), t)
        moved = np.einsum("ij,kj->ik", c, slopes)
        added = np.zeros(size)
        if bias:
            added = np.einsum("ij,j->i", slopes, shifted - rates / 2) + second
            added += _bent(lambda x: flow(x, t), s, c, _BESIDE * edge) / 2
        return np.concatenate([rates[None], added[None], moved + moved.T + noise])

    clock = equations.clock
    begin = np.zeros((2 + size, size))
    begin[0] = start.ravel()
    begin[1] = flow(begin[0], clock.at(0.0)) / 2
    states = integrate(rate, clock, begin, times, _STEPS).states
    deviation = np.sqrt(np.maximum(np.einsum("tii->ti", states[:, 2:]), 0.0))
    mean = np.full(deviation.shape, np.nan)
    if bias:
        ends = np.broadcast_to(clock.value(times), times.shape)
        rates = [flow(s[0], t) for s, t in zip(states, ends.tolist(), strict=True)]
        mean = states[:, 1] - np.array(rates) / 2
    return np.stack([deviation, mean]).reshape(2, times.size, *shape)


def _edge(equations: Equations, state: Array) -> float:
    """How far a state is from the edge of what there is, where rates may not be smooth."""
    r, p = equations.split(state)
    edge = float(np.linalg.eigvalsh(p - gram(r)).min())
    if not edge > _SINGULAR:
        raise HdicaError(
            "bands and bias are not known where estimates are all but each other, or features: the "
            f"part of them across is down to {edge:.1g} of |x|^2/n (choose an earlier last time)"
        )
    return min(1.0, edge)


def _slopes(flow: Callable[[Array], Array], s: Array, step: float) -> Array:
    """Derivatives of rates at [i, j], by differences."""
    each = (step * one for one in np.eye(s.size))
    return np.stack([(flow(s + d) - flow(s - d)) / (2 * step) for d in each], axis=1)


def _bent(flow: Callable[[Array], Array], s: Array, c: Array, step: float) -> Array:
    """Second derivatives of rates along the axes of C."""
    values, axes = np.linalg.eigh((c + c.T) / 2)
    centre, total = flow(s), np.zeros(s.size)
    for size, axis in zip(values, axes.T, strict=True):
        if size > 0:
            ends = flow(s + step * axis) + flow(s - step * axis)
            total += size * (ends - 2 * centre) / step**2
    return total


def _moments(
    equations: Equations, averages: Averages, state: Array, t: float
) -> tuple[Array, Array]:
    """Cov J, shape (s, s), and <J2>, shape (s,), of all s numbers of a state (K, M + K).

    ``t`` is the time, or for a rule with a step size its value.
    """
    r, p = equations.split(state)
    time, factor = (t, 1.0) if equations.step is None else (0.0, t)
    first, second, square = np.zeros(state.size), np.zeros(state.size), 0.0
    for weights, u, v, e, force in averages.blocks(averages.points(r, p, time), r, p, time):
        j, j2 = of_samples(equations, (r, p), u, v, e, factor * force)
        first, second = first + _sum(j, weights), second + _sum(j2, weights)
        square = square + np.einsum("in,jn->ij", j * weights, j)
    return square - np.outer(first, first), second


def _sum(rows: Array, weights: Array) -> Array:
    return np.asarray(np.sum(rows * weights, axis=1))


def of_samples(
    equations: Equations, state: tuple[Array, Array], u: Array, v: Array, e: Array, f: Array
) -> tuple[Array, Array]:
    """J and J2 of samples, shape (K (M + K), samples)."""
    (k, m), mode = equations.shape, equations.normalise
    r, p = (part[..., None] for part in state)
    shrinks, keep = equations.shrinkage[:, None, None], equations.restored[..., None]
    fv, fu, ff = f[:, None] * v - shrinks * r, f[:, None] * u, f[:, None] * f
    d = fu + _turned(fu) + ff - (shrinks + _turned(shrinks)) * p
    b = keep * d
    longer = np.sum(v * v, axis=0) + np.sum(e * e, axis=0) - m - k
    shrunk = shrinks * _turned(fu)
    more = shrinks * _turned(shrinks) * p - shrunk - _turned(shrunk) + longer * ff
    if mode == "none":
        n = np.zeros_like(d)
    elif mode == "gram-schmidt":
        n = _times(b, b) - keep * (more - _times(b, _turned(b)))
    else:
        n = 3 / 8 * _times(d, d) - more / 2
        if mode == "norm":
            n = np.eye(k)[..., None] * (3 / 8 * d * d - more / 2)
    half = _times(n, p) - _times(b, d)
    bp = _times(b, p)
    first = fv - _times(b, r), d - bp - _turned(bp)
    second = _times(n, r) - _times(b, fv), more + half + _turned(half) + _times(bp, _turned(b))
    j, j2 = (np.concatenate(pair, axis=1).reshape(k * (m + k), -1) for pair in (first, second))
    return j, j2


def _turned(a: Array) -> Array:
    return a.transpose(1, 0, 2)


def _times(a: Array, b: Array) -> Array:
    """Products of matrices, a sample each."""
    return np.einsum("kin,imn->kmn", a, np.broadcast_to(b, (*b.shape[:2], a.shape[2])))
