"""Functions of the overlap on [-1, 1] as Chebyshev series, found once and evaluated fast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.process.machine import one_thread

Array = NDArray[np.float64]
MAX_DEGREE = 1024
_ROUNDING = 4 * np.finfo(float).eps


def trimmed(series: Chebyshev, relative: float = 1e-15) -> Chebyshev:
    """The series without trailing coefficients that are rounding errors of its largest."""
    size = np.abs(series.coef)
    kept = np.nonzero(size > relative * size.max())[0]
    return Chebyshev(series.coef[: (kept[-1] + 1 if kept.size else 1)])


def interpolate(function: Callable[[float], float], degree: int) -> Chebyshev:
    """Chebyshev interpolant of a scalar function at ``degree + 1`` points of [-1, 1]."""

    def values(x: Array) -> Array:
        return np.array([function(float(v)) for v in x])

    with one_thread():
        return Chebyshev.interpolate(values, degree)


def adaptive(
    function: Callable[[float], float], tolerance: float = 1e-13
) -> tuple[Chebyshev, float]:
    """Chebyshev series of a function on [-1, 1], its degree doubled until its tail is small.

    The tail, returned too, is the largest of the last coefficients relative to the largest of all:
    the truncation error.
    """
    degree = 16
    while True:
        series = interpolate(function, degree)
        size = np.abs(series.coef)
        scale = size.max()
        tail = float(size[-max(4, degree // 8) :].max() / scale) if scale > 0 else 0.0
        # Interpolation noise grows slowly with the degree; below it more points add nothing.
        if tail < tolerance * max(1.0, degree / 64) or degree >= MAX_DEGREE:
            return trimmed(series), tail
        degree *= 2


def real_roots(series: Chebyshev) -> Array:
    """Real roots in [-1, 1], increasing, each polished to rounding on the series itself.

    A double root within rounding may be missing or appear twice.
    """
    coef = np.asarray(trimmed(series).coef, dtype=float)
    if coef.size < 2:
        return np.empty(0)
    with one_thread():
        candidates = np.asarray(cheb.chebroots(coef))
    near = candidates[np.abs(candidates.imag) < 1e-7].real
    near = np.sort(near[np.abs(near) <= 1 + 1e-12])
    polished = _newton(coef, near)
    return polished[np.abs(polished) <= 1]


def _newton(coef: Array, roots: Array) -> Array:
    """Up to four steps of Newton's method for every root, as long as its steps are small."""
    # Side by side, series and slope are summed in one recurrence.
    both = np.stack([coef, np.append(cheb.chebder(coef), 0.0)], axis=1)
    active = np.ones(roots.shape, dtype=bool)
    for _ in range(4):
        value, rise = cheb.chebval(roots, both)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = value / rise
        active &= (rise != 0) & (np.abs(step) < 1e-6)
        roots = np.where(active, roots - step, roots)
        if np.all(np.abs(step[active]) < _ROUNDING):
            break
    return roots


def without_double_zero(series: Chebyshev) -> Chebyshev:
    """The series divided by x^2, for a function known to vanish there to second order."""
    quotient, _ = cheb.chebdiv(series.coef, np.array([0.5, 0.0, 0.5]))
    return Chebyshev(quotient)
