"""Fixed points of dQ/dt = tau D1(Q) + tau^2 D2(Q) and the folds where they are born."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.limits.numerics.halves import Halves
from hdica.limits.numerics.packed import Function
from hdica.limits.numerics.series import real_roots, without_double_zero
from hdica.limits.overlap import half_roots
from hdica.limits.overlap.drift import Drift

Array = NDArray[np.float64]
_NEAR_ZERO = 1e-6
_SAME = 1e-9
"""Roots nearer than this are one."""
_ROUNDING = 4e-15
"""Error of a drift that is known in closed form, relative to its size."""


@dataclass(frozen=True)
class FixedPoints:
    """All fixed points at one step size, by increasing Q; arrays of shape (points,).

    ``stable`` says whether a small departure dies out, ``error`` is that of the overlap.
    """

    q: Array
    stable: NDArray[np.bool_]
    error: Array


@dataclass(frozen=True)
class Folds:
    """Step sizes at which two fixed points merge, largest first, and overlaps; shape (folds,)."""

    tau: Array
    q: Array


def _distinct(values: Array) -> Array:
    return values[np.concatenate([[True], np.diff(values) > _SAME])] if values.size else values


def _ends(drift: Drift, others: Array) -> Array:
    """Those of Q = -1 and 1 that are roots for every step size, and that rounding put outside.

    The learning vanishes there, and so does the loss where f is 0 on all values of the source.
    """
    ends = np.array([-1.0, 1.0])
    known = np.abs(others[:, None] - ends).min(axis=0, initial=np.inf) < _SAME
    parts = ((drift.learning, drift.learning_error), (drift.loss, drift.loss_error))
    zero = [np.abs(part(ends)) <= off + _ROUNDING * _size(part) for part, off in parts]
    return ends[np.all(zero, axis=0) & ~known]


def _roots(drift: Drift, tau: float) -> Array:
    """Roots of the drift other than Q = 0."""
    learning, loss = drift.learning, drift.loss
    if isinstance(learning, Halves) or isinstance(loss, Halves):
        return half_roots.roots(learning, loss, tau)
    rate = learning + tau * loss
    quotient, _ = cheb.chebdiv(rate.coef, np.array([0.0, 1.0]))
    return real_roots(Chebyshev(quotient))


def find_fixed_points(drift: Drift, tau: float) -> FixedPoints:
    """Every root of the drift in [-1, 1], from the eigenvalues of its companion matrix.

    Q = 0 is always among them, because E c = 0 and E c^2 = 1 make D1 vanish as Q^2 and D2 is
    proportional to Q; the other roots are those of the drift divided by Q.
    """
    others = _roots(drift, tau)
    q = np.sort(np.concatenate([others[np.abs(others) > 1e-12], _ends(drift, others), [0.0]]))
    q = _distinct(q)
    if isinstance(drift.learning, Chebyshev) and isinstance(drift.loss, Chebyshev):
        slope = (drift.learning + tau * drift.loss).deriv()(q)
    else:
        slope = drift.learning.deriv()(q) + tau * drift.loss.deriv()(q)
    return FixedPoints(q, slope < 0, _errors(drift, tau, q, slope))


def _size(function: Function) -> float:
    rows = (function.below, function.above) if isinstance(function, Halves) else (function.coef,)
    return max(float(np.abs(row).sum()) for row in rows)


def _errors(drift: Drift, tau: float, q: Array, slope: Array) -> Array:
    """How far roots move where the drift is off by its error, also where two nearly merge."""
    rounding = _ROUNDING * (_size(drift.learning) + tau * _size(drift.loss))
    off = drift.learning_error + tau * drift.loss_error + rounding
    step = 1e-4
    here = drift.at(q, tau) / tau
    ahead, behind = (drift.at(np.clip(q + d, -1, 1), tau) / tau - here for d in (step, -step))
    bend = np.abs(ahead + behind) / step**2
    size = np.abs(slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The root of off = slope e - bend e^2/2, or where there is none, of off = bend e^2/2.
        under = np.maximum(size**2 - 2 * bend * off, 0.0)
        moved = np.where(under > 0, 2 * off / (size + np.sqrt(under)), np.sqrt(2 * off / bend))
    return np.where(q == 0.0, 0.0, moved + np.finfo(float).eps)


def find_folds(drift: Drift) -> Folds:
    """All extrema T > 0 away from Q = 0 of the step size along tau = T(Q) = -D1(Q)/D2(Q)."""
    if isinstance(drift.learning, Halves) or isinstance(drift.loss, Halves):
        q, tau = half_roots.extrema(drift.learning, drift.loss)
    else:
        b, _ = cheb.chebdiv(drift.loss.coef, np.array([0.0, 1.0]))
        # D1 = Q^2 top and D2 = Q b, so T = -Q top/b.
        a = cheb.chebmulx(without_double_zero(drift.learning).coef)
        rise = cheb.chebsub(cheb.chebmul(cheb.chebder(a), b), cheb.chebmul(a, cheb.chebder(b)))
        q = real_roots(Chebyshev(rise))
        q = _distinct(q[(np.abs(q) > _NEAR_ZERO) & (np.abs(q) < 1 - 1e-12)])
        tau = -cheb.chebval(q, a) / cheb.chebval(q, b)
    known = [fold_error(drift, t, x) for t, x in zip(tau.tolist(), q.tolist(), strict=True)]
    kept = tau > np.maximum(1e-12, 4 * np.array(known))
    order = np.argsort(-tau[kept], kind="stable")
    return Folds(tau[kept][order], q[kept][order])


def fold_error(drift: Drift, tau: float, q: float) -> float:
    """Error of the step size T(Q) at a fold, from those of the two orders of the drift.

    T does not change with Q there, so that the error of Q does not matter.
    """
    loss = abs(float(drift.loss(q)))
    known = max(loss, np.finfo(float).tiny)
    return (drift.learning_error + tau * drift.loss_error) / known + 4e-16 * tau
