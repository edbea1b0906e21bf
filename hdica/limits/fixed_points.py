"""Fixed points of dQ/dt = tau D1(Q) + tau^2 D2(Q) and the folds where they are born."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.limits.overlap import Drift
from hdica.limits.series import real_roots, without_double_zero

Array = NDArray[np.float64]
_NEAR_ZERO = 1e-6


@dataclass(frozen=True)
class FixedPoints:
    """All fixed points at one step size, by increasing Q; arrays of shape (points,).

    Parameters
    ----------
    q
        Overlaps.
    stable
        Whether a small departure dies out.
    """

    q: Array
    stable: NDArray[np.bool_]


@dataclass(frozen=True)
class Folds:
    """Step sizes at which two fixed points merge; arrays of shape (folds,), largest tau first.

    Parameters
    ----------
    tau
        Critical step sizes.
    q
        Overlap of the merging pair.
    """

    tau: Array
    q: Array


def _distinct(values: Array, gap: float = 1e-9) -> Array:
    return values[np.concatenate([[True], np.diff(values) > gap])] if values.size else values


def find_fixed_points(drift: Drift, tau: float) -> FixedPoints:
    """Every root of the drift in [-1, 1], from the eigenvalues of its companion matrix.

    Q = 0 is always among them, because E c = 0 and E c^2 = 1 make D1 vanish as Q^2 and D2 is
    proportional to Q; the other roots are those of the drift divided by Q.

    Parameters
    ----------
    drift
        Drift with ``loss`` = Q times a function without zero at Q = 0.
    tau
        Constant step size.
    """
    rate = drift.learning + tau * drift.loss
    quotient, _ = cheb.chebdiv(rate.coef, np.array([0.0, 1.0]))
    others = real_roots(Chebyshev(quotient))
    q = np.sort(np.append(others[np.abs(others) > 1e-12], 0.0))
    q = _distinct(q)
    return FixedPoints(q, rate.deriv()(q) < 0)


def find_folds(drift: Drift) -> Folds:
    """All extrema of the step size along the branches tau = T(Q) = -D1(Q)/D2(Q).

    Returns
    -------
    Folds
        Those with T > 0 away from Q = 0, largest step size first.
    """
    b, _ = cheb.chebdiv(drift.loss.coef, np.array([0.0, 1.0]))
    # D1 = Q^2 top and D2 = Q b, so T = -Q top/b.
    a = cheb.chebmulx(without_double_zero(drift.learning).coef)
    rise = cheb.chebsub(cheb.chebmul(cheb.chebder(a), b), cheb.chebmul(a, cheb.chebder(b)))
    q = real_roots(Chebyshev(rise))
    q = _distinct(q[(np.abs(q) > _NEAR_ZERO) & (np.abs(q) < 1 - 1e-12)])
    tau = -cheb.chebval(q, a) / cheb.chebval(q, b)
    kept = tau > 1e-12
    order = np.argsort(-tau[kept], kind="stable")
    return Folds(tau[kept][order], q[kept][order])
