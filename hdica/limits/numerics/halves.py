"""Functions of the overlap as a Chebyshev series on either side of Q = 0.

Averages of a nonlinearity that is no polynomial are smooth inside (-1, 0) and (0, 1) and seldom
at the ends: in sqrt(1 - Q^2) where kinks or atoms meet, in |Q| where a source has heavy tails or
is narrow. In x = (4/pi) arcsin|Q| - 1 either half is smooth up to its ends or has its singularity
there, where Chebyshev points are dense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import chebyshev as cheb
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Sampled = Callable[[float], tuple[Array, Array, Array]]
"""Values, errors and sizes of some functions at one overlap."""
LEAST, MOST = 16, 512
"""Degrees on each half."""
_GOAL = 1e-13
_PROBES = np.array([-0.99993, -0.977, -0.71, -0.23, 0.37, 0.831, 0.9831, 0.99995])
_NEAREST, _BESIDE = 1e-9, 1e-12
"""Least sqrt(1 - Q^2) by which is divided."""


def overlap_of(x: ArrayLike) -> Array:
    """|Q| at a position x of a half."""
    return np.asarray(np.sin(np.pi / 4 * (np.asarray(x, dtype=float) + 1)))


def _width(q: Array) -> Array:
    return np.sqrt(np.maximum((1 - q) * (1 + q), 0.0))


@dataclass(frozen=True, eq=False)
class Halves:
    """A function of Q on [-1, 1]: Chebyshev coefficients in x of the half Q < 0 and of Q >= 0.

    The series are divided by sqrt(1 - Q^2)^over and multiplied by (x + 1)^zero, ``zero`` being the
    order of the zero at Q = 0.
    """

    below: Array
    above: Array
    over: int = 0
    zero: int = 0

    def __call__(self, q: ArrayLike) -> Array:
        """The function at overlaps of any shape."""
        at = np.clip(np.asarray(q, dtype=float), -1.0, 1.0)
        place = 4 / np.pi * np.arcsin(np.abs(at))
        x, value = place - 1, np.empty(at.shape)
        for side, series in ((at < 0, self.below), (~(at < 0), self.above)):
            if side.any():
                value[side] = cheb.chebval(x[side], series)
        if self.zero:
            value = value * place**self.zero
        if self.over:
            value = value / np.maximum(_width(at), _NEAREST) ** self.over
        return np.asarray(value)

    def deriv(self) -> Halves:
        """Its derivative with respect to Q."""
        # d/dQ = (4/pi)/s d/dx on the upper half, with the other sign on the lower one.
        if self.over:
            raise ValueError("only functions without a divisor are differentiated")
        rise = 4 / np.pi
        below, above = (
            cheb.chebder(cheb.chebmul(row, cheb.chebpow([1.0, 1.0], self.zero)))
            for row in (self.below, self.above)
        )
        return Halves(np.asarray(-rise * below), np.asarray(rise * above), 1)

    def with_zero(self, order: int) -> Halves:
        """The same function, known to vanish at Q = 0: its zero is taken out of the series.

        Near Q = 0 values are then known relative to their own size.
        """
        square = cheb.chebpow([1.0, 1.0], order)
        below, above = (
            cheb.chebdiv(row, square)[0] if row.size > order else np.zeros(1)
            for row in (self.below, self.above)
        )
        return replace(self, below=below, above=above, zero=self.zero + order)


def lobatto(degree: int) -> Array:
    """Chebyshev-Lobatto points of [-1, 1], decreasing, shape (degree + 1,)."""
    return np.asarray(np.cos(np.pi * np.arange(degree + 1) / degree))


def coefficients(values: Array) -> Array:
    """Chebyshev series through values at the Lobatto points, along the last axis."""
    from scipy.fft import dct

    degree = values.shape[-1] - 1
    found = np.asarray(dct(values, type=1, axis=-1)) / degree
    found[..., 0] /= 2
    found[..., -1] /= 2
    return found


def trimmed_tail(series: Array, level: float) -> Array:
    """The series without trailing coefficients below a level."""
    kept = np.flatnonzero(np.abs(series) > level)
    return series[: (kept[-1] + 1 if kept.size else 1)]


def sampled(
    function: Sampled, sign: int, goal: float, enough: Callable[[], bool]
) -> tuple[list[Array], Array, Array]:
    """Series of some functions on one half, with their errors and sizes of shape (functions,).

    Their degree is doubled until the last coefficients are ``goal`` relative to the largest size of
    the function, or ``enough`` work is done; ``sign`` is 1 for Q >= 0, -1 for Q <= 0. Errors are
    those of the samples plus what the series misses at points of its own, and the sum of the tail
    as it decays; rounding is relative to the sizes.
    """
    known: dict[float, tuple[Array, Array, Array]] = {}

    def at(x: float) -> tuple[Array, Array, Array]:
        if x not in known:
            known[x] = function(sign * float(overlap_of(x)))
        return known[x]

    degree = LEAST
    while True:
        points = lobatto(degree).tolist()
        rows = [at(x) for x in points]
        values, errors, sizes = (np.array([row[k] for row in rows]).T for k in range(3))
        series, size = coefficients(values), sizes.max(axis=1)
        noise = errors.max(axis=1)
        last = np.abs(series[:, -max(3, degree // 8) :])
        done = last.max(axis=1) <= np.maximum(goal * size, noise / 4)
        if done.all() or degree >= MOST or enough():
            break
        degree *= 2
    level = np.maximum(1e-17 * size, 1e-300)
    kept = [trimmed_tail(row, cut) for row, cut in zip(series, level, strict=True)]
    tail = np.where(done, 4 * last.max(axis=1), 8 * last.sum(axis=1))
    missed = np.array([0.0 * tail, *_missed(function, sign, kept)]).max(axis=0)
    return kept, noise + tail + missed, size


def _missed(function: Sampled, sign: int, series: list[Array]) -> list[Array]:
    """What series are off by at points of no grid, each of shape (functions,)."""
    found = []
    for x in _PROBES.tolist():
        values, _, _ = function(sign * float(overlap_of(x)))
        fitted = np.array([float(cheb.chebval(x, row)) for row in series])
        found.append(np.abs(values - fitted))
    return found


@dataclass(frozen=True, eq=False)
class Known:
    """A function of Q with its largest absolute error, of it times sqrt(1 - Q^2)^over.

    ``size`` is the largest average of absolute values behind it: below its rounding nothing is
    known.
    """

    function: Halves
    error: float
    size: float


def joined(
    function: Sampled,
    parities: tuple[int, ...] | None,
    goal: float = _GOAL,
    enough: Callable[[], bool] = lambda: False,
) -> list[Known]:
    """Some functions on [-1, 1]; ``parities`` are 1 or -1 for each, None if some are neither."""
    above, error, size = sampled(function, 1, goal, enough)
    if parities is None:
        below, error_below, size_below = sampled(function, -1, goal, enough)
        error, size = np.maximum(error_below, error), np.maximum(size_below, size)
    else:
        below = [sign * row for sign, row in zip(parities, above, strict=True)]
    halves = [Halves(b, a) for b, a in zip(below, above, strict=True)]
    return [Known(h, float(e), float(s)) for h, e, s in zip(halves, error, size, strict=True)]


def fitted(function: Callable[[Array], Array], degree: int, zero: int = 0) -> Halves:
    """Interpolant of a vectorised function of Q, with a zero of some order at Q = 0.

    The function is known there relative to its own size; the degree is that on each half.
    """
    x = lobatto(degree)
    # The last point is Q = 0 itself: the next best value of the quotient is that beside it.
    place = np.maximum(x + 1, _BESIDE)
    q = np.sin(np.pi / 4 * place)
    rows = coefficients(np.array([function(-q), function(q)]) / place**zero)
    return Halves(rows[0], rows[1], 0, zero)
