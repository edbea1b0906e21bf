"""The overlap under x <- x - tau f(u) y, back to |x|^2 = n: drift, noise of a step, and folds.

Wang and Lu 2017, below (11); Rattray 2002, (17) for one projection and one source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import (
    averages,
    gain_at,
    polynomial_averages,
    power_at,
    smooth_parts,
)
from hdica.limits.numerics.halves import fitted
from hdica.limits.numerics.packed import Function
from hdica.limits.numerics.series import interpolate, trimmed
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fixed_points import Folds, find_folds, fold_error
from hdica.limits.overlap.projected_drift import MORE, projected_drift

Array = NDArray[np.float64]
_NOISE_GOAL = 1e-9
_ROUNDING = 4 * float(np.finfo(float).eps)


@lru_cache(maxsize=64)
def drift_of(f: Formula, law: Source) -> Drift:
    """Drift of the overlap under x <- x - tau f(u) y, for f and the law of a source."""
    return projected_drift(averages(f, law), lambda: _noise(f, law))


def _noise(f: Formula, law: Source) -> tuple[Function, Function, Function] | None:
    """Variance of a step of Q times n^2: Var[tau f (c - Q u) + Q tau^2 f^2/2], by powers of tau.

    Second order of the expansion of (2) after normalisation; it drives the fluctuations of
    order n^-1/2 about the limit.
    """
    try:
        if f.coefficients is None:
            return _noise_on_halves(f, law)
        return _noise_of_polynomial(f, law)
    except HdicaError:
        return None


def _step_products(f: Formula, q: float) -> Callable[[Array, Array], list[Array]]:
    """Products of f(u) and c - Q u whose averages give that variance."""

    def integrand(c: Array, u: Array) -> list[Array]:
        value, rest = f.value(u), c - q * u
        square, push = value * value, value * rest
        return [push, square, square * square, push * push, square * push]

    return integrand


def _noise_of_polynomial(f: Formula, law: Source) -> tuple[Function, Function, Function]:
    assert f.coefficients is not None
    degree = 4 * f.coefficients.size  # that of the averages is no higher
    means = lru_cache(lambda q: polynomial_averages(_step_products(f, q), f, law, q))

    def mean(k: int) -> Chebyshev:
        return interpolate(lambda q: float(means(q)[k]), degree)

    first, second, fourth, spread, third = (mean(k) for k in range(5))
    q = Chebyshev([0.0, 1.0])
    v2 = spread - first * first
    v3 = q * (third - first * second)
    v4 = 0.25 * q * q * (fourth - second * second)
    v2, v3, v4 = (trimmed(v, 1e-14) for v in (v2, v3, v4))
    return v2, v3, v4


def _noise_on_halves(f: Formula, law: Source) -> tuple[Function, Function, Function]:
    def sample(q: float) -> Callable[[Array, Array, Array], list[Array]]:
        products = _step_products(f, q)
        return lambda c, e, u: products(c, u)

    found = smooth_parts(sample, f, law, (1, 0, 0, 0, 1), _NOISE_GOAL)
    first, second, fourth, spread, third = (one.function for one in found)
    degree = max(one.function.above.size for one in found) + MORE
    return (
        fitted(lambda q: spread(q) - first(q) ** 2, degree),
        fitted(lambda q: q * (third(q) - first(q) * second(q)), degree),
        fitted(lambda q: 0.25 * q * q * (fourth(q) - second(q) ** 2), degree),
    )


@lru_cache(maxsize=256)
def _seen_again(f: Formula, law: Source, tau: float, q: float) -> float:
    """Difference to T(Q) by averages at one overlap, plus their own error.

    For polynomials, whose averages are in closed form, their rounding alone.
    """
    if f.coefficients is not None:
        known = averages(f, law)
        power = float(known.power(q))
        share = 2 * (1 - q * q) / (abs(q) * power)
        return share * known.gain_error + tau * known.power_error / power
    (gain, gain_off), (power, power_off) = gain_at(f, law, q), power_at(f, law, q)
    share = 2 * (1 - q * q) / (abs(q) * power)
    again = -math.copysign(share, q) * gain
    return abs(again - tau) + share * gain_off + tau * power_off / power


def folds_of(f: Formula, law: Source) -> tuple[Folds, Array]:
    """Critical step sizes of that rule, and the error of each.

    Mirror images (Q and -Q at one step size, for odd f) are reported once, with Q > 0. The
    error is what the averages leave open, the difference to T(Q) from averages at that very Q,
    whose nodes are others, and rounding.
    """
    flow = drift_of(f, law)
    found = find_folds(flow)
    kept = [
        i
        for i, (tau, q) in enumerate(zip(found.tau, found.q, strict=True))
        if q > 0 or not np.any(np.isclose(found.q, -q, atol=1e-7) & np.isclose(found.tau, tau))
    ]
    tau, q = found.tau[kept], found.q[kept]
    pairs = zip(tau.tolist(), q.tolist(), strict=True)
    errors = [fold_error(flow, t, x) + _seen_again(f, law, t, x) + _ROUNDING * t for t, x in pairs]
    return Folds(tau, q), np.array(errors)
