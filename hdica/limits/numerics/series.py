"""Functions of the overlap on [-1, 1] as Chebyshev series, or as one on either side of Q = 0.

Averages of a nonlinearity that is no polynomial are smooth inside (-1, 0) and (0, 1) and seldom
at the ends: in sqrt(1 - Q^2) where kinks or atoms meet, in |Q| where a source has heavy tails or
is narrow. In x = (4/pi) arcsin|Q| - 1 either half is smooth up to its ends or has its singularity
there, where Chebyshev points are dense.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import ArrayLike

from hdica.ingredients.plain import Array, Scalar
from hdica.process.machine import one_thread

MAX_DEGREE = 1024
_GOAL = 1e-13
_ROUNDING = 4 * np.finfo(float).eps


def trimmed(series: Chebyshev, relative: float = 1e-15) -> Chebyshev:
    """The series without trailing coefficients that are rounding errors of its largest."""
    coefficients = np.asarray(series.coef, dtype=float)
    return Chebyshev(trimmed_tail(coefficients, relative * np.abs(coefficients).max()))


def trimmed_tail(series: Array, level: float) -> Array:
    """The coefficients without trailing ones below a level."""
    above = np.flatnonzero(np.abs(series) > level)
    return series[: (above[-1] + 1 if above.size else 1)]


def interpolate(function: Scalar, degree: int) -> Chebyshev:
    """Chebyshev interpolant of a scalar function at ``degree + 1`` points of [-1, 1]."""
    with one_thread():
        return Chebyshev.interpolate(lambda x: np.array([function(v) for v in x.tolist()]), degree)


def adaptive(function: Scalar) -> tuple[Chebyshev, float]:
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
        if tail < _GOAL * max(1.0, degree / 64) or degree >= MAX_DEGREE:
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
    roots = np.sort(near[np.abs(near) <= 1 + 1e-12])
    # Newton's method as long as its steps are small; side by side, series and slope are summed in
    # one recurrence.
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
    return roots[np.abs(roots) <= 1]


Samples = tuple[Array, Array, Array]
Sampled = Callable[[float], Samples]
"""Values, errors and sizes of some functions at one overlap."""
LEAST, MOST = 16, 512
"""Degrees on each half."""
_PROBES = np.array([-0.99993, -0.977, -0.71, -0.23, 0.37, 0.831, 0.9831, 0.99995])
_NEAREST, _OFF_ZERO = 1e-9, 1e-12
"""Least sqrt(1 - Q^2) by which is divided."""


def overlap_of(x: ArrayLike) -> Array:
    """|Q| at a position x of a half."""
    return np.sin(np.pi / 4 * (np.asarray(x, dtype=float) + 1))


def widths_of(q: Array) -> Array:
    """Sqrt(1 - Q^2), without cancellation near 1, at overlaps of any shape."""
    return np.sqrt(np.maximum((1.0 - np.asarray(q)) * (1.0 + np.asarray(q)), 0.0))


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
            value = value / np.maximum(widths_of(at), _NEAREST) ** self.over
        return value

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
    return np.cos(np.pi * np.arange(degree + 1) / degree)


def coefficients(values: Array) -> Array:
    """Chebyshev series through values at the Lobatto points, along the last axis."""
    from scipy.fft import dct

    degree = values.shape[-1] - 1
    series = dct(values, type=1, axis=-1) / degree
    series[..., 0] /= 2
    series[..., -1] /= 2
    return series


def sampled(
    function: Sampled, sign: int, goal: float, enough: Callable[[], bool]
) -> tuple[list[Array], Array, Array]:
    """Series of some functions on one half, with their errors and sizes of shape (functions,).

    Their degree is doubled until the last coefficients are ``goal`` relative to the largest size of
    the function, or ``enough`` work is done; ``sign`` is 1 for Q >= 0, -1 for Q <= 0. Errors are
    those of the samples, what the series misses at points of no grid, and the tail as it decays.
    """
    at = cache(lambda x: function(sign * float(overlap_of(x))))
    degree = LEAST
    while True:
        points = lobatto(degree).tolist()
        values, errors, sizes = (np.array(rows).T for rows in zip(*map(at, points), strict=True))
        series, size = coefficients(values), sizes.max(axis=1)
        noise = errors.max(axis=1)
        last = np.abs(series[:, -max(3, degree // 8) :])
        done = last.max(axis=1) <= np.maximum(goal * size, noise / 4)
        if done.all() or degree >= MOST or enough():
            break
        degree *= 2
    level = np.maximum(1e-17 * size, 1e-300)
    rows = [trimmed_tail(row, cut) for row, cut in zip(series, level, strict=True)]
    tail = np.where(done, 4 * last.max(axis=1), 8 * last.sum(axis=1))
    missed = 0.0 * tail
    for x in _PROBES.tolist():
        values, _, _ = at(x)
        fit = np.array([float(cheb.chebval(x, row)) for row in rows])
        missed = np.maximum(missed, np.abs(values - fit))
    return rows, noise + tail + missed, size


class Fit(NamedTuple):
    """A function of Q with its largest absolute error, of it times sqrt(1 - Q^2)^over.

    ``size`` is the largest average of absolute values behind it, to which rounding is relative.
    """

    function: Halves
    error: float
    size: float


def joined(
    function: Sampled,
    parities: tuple[int, ...] | None,
    goal: float = _GOAL,
    enough: Callable[[], bool] = lambda: False,
) -> list[Fit]:
    """Some functions on [-1, 1]; ``parities`` are 1 or -1 for each, None if some are neither."""
    above, error, size = sampled(function, 1, goal, enough)
    if parities is None:
        below, error_below, size_below = sampled(function, -1, goal, enough)
        error, size = np.maximum(error_below, error), np.maximum(size_below, size)
    else:
        below = [sign * row for sign, row in zip(parities, above, strict=True)]
    halves = [Halves(b, a) for b, a in zip(below, above, strict=True)]
    return [Fit(h, float(e), float(s)) for h, e, s in zip(halves, error, size, strict=True)]


def fitted(function: Callable[[Array], Array], degree: int, zero: int = 0) -> Halves:
    """Interpolant of a vectorised function of Q, with a zero of some order at Q = 0.

    The function is known there relative to its own size; the degree is that on each half.
    """
    x = lobatto(degree)
    # The last point is Q = 0 itself: the next best value of the quotient is that beside it.
    place = np.maximum(x + 1, _OFF_ZERO)
    q = np.sin(np.pi / 4 * place)
    rows = coefficients(np.array([function(-q), function(q)]) / place**zero)
    return Halves(rows[0], rows[1], 0, zero)


Function = Chebyshev | Halves
"""A function of Q on [-1, 1]."""


def packed(function: Function) -> Array:
    """A head and the coefficients, as :func:`hdica.limits.numerics.compiled.value_at` reads them.

    The head is 0 for a series in Q; else 1, the power of sqrt(1 - Q^2) by which is divided, the
    order of the zero at Q = 0, and the number of coefficients of the lower half, which come first.
    """
    if isinstance(function, Chebyshev):
        return np.append(0.0, function.coef)
    head = [1.0, float(function.over), float(function.zero), float(function.below.size)]
    return np.concatenate([head, function.below, function.above])


def packed_planes(
    function: Callable[[float, float], tuple[Array, Array]],
    overs: Sequence[int],
    low: float,
    high: float,
    goal: float,
    most: int,
) -> tuple[list[Array], float]:
    """Some functions of a cosine and of P in a range, and their largest error relative to sizes.

    ``function`` gives values and sizes. Chebyshev series in (2/pi) arcsin of the cosine and in
    log P, as :func:`hdica.limits.numerics.compiled.plane` takes them, which divides by
    sqrt(1 - cosine^2) where ``overs`` says 1. Degrees are doubled until the last coefficients are
    ``goal`` relative to the largest size, or there would be more than ``most`` values; the error is
    that of the tail and at points of no grid.
    """
    middle, half = math.log(low * high) / 2, math.log(high / low) / 2
    at = cache(lambda x, y: function(math.sin(math.pi / 2 * x), math.exp(middle + half * y)))
    shape = [8, 16]
    while True:
        rows, columns = (lobatto(degree).tolist() for degree in shape)
        values, sizes = np.moveaxis(np.array([[at(x, y) for x in columns] for y in rows]), 2, 0)
        series, size = np.moveaxis(values, -1, 0), sizes.max(axis=(0, 1))
        for axis in (1, 2):
            series = np.moveaxis(coefficients(np.moveaxis(series, axis, -1)), -1, axis)
        tails = []
        for axis, degree in zip((1, 2), shape, strict=True):
            last = np.moveaxis(series, axis, -1)[..., -max(2, degree // 8) :]
            tails.append(np.abs(last).max(axis=(1, 2)) / size)
        wide = [bool(np.any(tail > goal)) for tail in tails]
        larger = [degree * 2 if more else degree for degree, more in zip(shape, wide, strict=True)]
        if not any(wide) or (larger[0] + 1) * (larger[1] + 1) > most:
            break
        shape = larger
    missed = 0.0
    for x, y in zip(_PROBES.tolist(), np.roll(_PROBES, 3).tolist(), strict=True):
        fit = np.array([cheb.chebval2d(y, x, one) for one in series])
        missed = max(missed, float(np.max(np.abs(fit - at(x, y)[0]) / size)))
    heads = ([shape[0] + 1.0, shape[1] + 1.0, float(over), middle, half] for over in overs)
    packs = [np.append(head, one.ravel()) for head, one in zip(heads, series, strict=True)]
    return packs, 4 * float(np.max(tails)) + missed


def scaled(function: Function, factor: float) -> Function:
    """The function times a number."""
    if isinstance(function, Halves):
        return replace(function, below=factor * function.below, above=factor * function.above)
    return factor * function


def times(series: Array, factor: Array) -> Array:
    """The function times some factors of shape (rows, 1); the head stays."""
    scaled, first = factor * series, 1 if series[0] == 0.0 else 4
    scaled[..., :first] = series[:first]
    return scaled
