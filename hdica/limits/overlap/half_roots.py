"""Fixed points and folds of drifts that are a series on either half of the overlaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.limits.numerics.halves import coefficients, lobatto, overlap_of, trimmed_tail
from hdica.limits.numerics.packed import Function
from hdica.limits.numerics.series import real_roots

Array = NDArray[np.float64]
_LONGEST, _MOST = 64, 1024
_SMALL, _SLOPE_NOISE = 1e-13, 1e-10
_NEWTON = 6
_BESIDE = 1e-3
"""How far from an extremum it is looked whether there is one, relative to the ends of a half."""


def _pieces(
    function: Callable[[Array], Array], low: float, high: float, floor: float
) -> list[Array]:
    """Zeros of a function of x in an interval, halved until a short series describes it."""
    middle, half = (low + high) / 2, (high - low) / 2
    series = coefficients(function(middle + half * lobatto(_LONGEST)))
    size = float(np.abs(series).max())
    if size <= floor:
        return []
    level = max(_SMALL * size, floor)
    if float(np.abs(series[-6:]).max()) > level and half > 1e-4:
        return _pieces(function, low, middle, floor) + _pieces(function, middle, high, floor)
    return [middle + half * real_roots(Chebyshev(trimmed_tail(series, level / 8)))]


def _zeros(function: Callable[[Array], Array], noise: float = 1e-14) -> Array:
    """All zeros, of a function that is known but for a noise relative to its largest value."""
    floor = noise * float(np.abs(function(lobatto(4 * _LONGEST))).max())
    # No halving at a round number, where a root is likely.
    parts = ((-1.0, 0.0137), (0.0137, 1.0))
    found = [r for low, high in parts for r in _pieces(function, low, high, floor)]
    return np.sort(np.concatenate(found)) if found else np.empty(0)


def _divided(function: Function, q: Array, sign: int) -> Array:
    """A function that vanishes at Q = 0, divided by Q, at overlaps of one sign, shape of ``q``."""
    inside = np.maximum(q, 1e-12)
    return np.asarray(function(sign * inside)) / (sign * inside)


def roots(learning: Function, loss: Function, tau: float) -> Array:
    """Zeros of D1 + tau D2 other than Q = 0, polished on the drift itself."""
    found = []
    for sign in (-1, 1):

        def rate(x: Array, sign: int = sign) -> Array:
            q = overlap_of(x)
            return _divided(learning, q, sign) + tau * _divided(loss, q, sign)

        found.append(sign * overlap_of(_zeros(rate)))
    q = np.concatenate(found)
    rise, fall = learning.deriv(), loss.deriv()
    for _ in range(_NEWTON):
        with np.errstate(all="ignore"):
            step = (learning(q) + tau * loss(q)) / (rise(q) + tau * fall(q))
        q = np.where(np.abs(step) < 1e-6, np.clip(q - step, -1.0, 1.0), q)
    return q


def extrema(learning: Function, loss: Function) -> tuple[Array, Array]:
    """Extrema of T = -D1/D2 inside (0, 1) and (-1, 0): overlaps and step sizes."""
    places, sizes = [], []
    for sign in (-1, 1):

        def steps(x: Array, sign: int = sign) -> Array:
            q = overlap_of(x)
            return -_divided(learning, q, sign) / _divided(loss, q, sign)

        series = _resolved(steps)
        slope: Array = np.asarray(cheb.chebder(series))

        def rise(x: Array, slope: Array = slope) -> Array:
            return np.asarray(cheb.chebval(x, slope))

        x = _zeros(rise, _SLOPE_NOISE)
        q = sign * overlap_of(x)
        # Where T rises steadily from rounding, as near Q = 0, its slope may vanish by accident.
        near = _BESIDE * (1 - np.abs(x))
        level = steps(x)
        turns = (steps(x + near) - level) * (steps(x - near) - level) > 0
        inside = turns & (np.abs(q) > 1e-6) & (np.abs(q) < 1 - 1e-10)
        places.append(q[inside])
        sizes.append(steps(x[inside]))
    return np.concatenate(places), np.concatenate(sizes)


def _resolved(function: Callable[[Array], Array]) -> Array:
    """A Chebyshev series in x, its degree doubled until its tail is rounding."""
    degree = 64
    while True:
        series = coefficients(function(lobatto(degree)))
        size = float(np.abs(series).max())
        if float(np.abs(series[-degree // 8 :]).max()) <= 1e-12 * size or degree >= _MOST:
            return trimmed_tail(series, 1e-13 * size)
        degree *= 2
