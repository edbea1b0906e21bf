"""The potential Phi of a regularizer and how it confines: phi(x) = slope * x + psi(x), Psi' = psi.

A linear term of phi is inert, because it only shifts the multiplier h of E[x^2] = 1. Splitting
it off measures h from the end of its range, where the density stops being normalisable, and
leaves a Psi without the cancellation of two large quadratic terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
import sympy as sp
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import cheb2poly, chebint, chebval, chebvander
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula

Array = NDArray[np.float64]
_DEGREE = 11
_FINEST = 44
"""Halvings of a panel at most."""
_MOST = 4096
"""Panels at most."""
_OVERFLOW = 1e200


@dataclass(frozen=True, eq=False)
class Confinement:
    """The regularizer as the steady state sees it.

    ``slope`` is what is split off: the smaller limit of phi(x)/x at +-infinity, or 0 where phi
    grows faster than x, on both sides (``superlinear``), so that any multiplier h is admissible.
    psi = l1 * sign(x) has moments in closed form; l1 is None for any other psi, the ``remainder``.
    """

    phi: Formula
    slope: float
    superlinear: bool
    l1: float | None
    remainder: Formula

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where phi or its slope jumps."""
        return self.phi.kinks

    def psi(self, x: Array) -> Array:
        """phi(x) without its linear part, any shape."""
        if self.l1 is not None:
            return np.asarray(self.l1 * np.sign(x))
        return np.asarray(self.remainder.value(x))

    def potential(self, x: Array) -> Array:
        """Psi(x), with Psi(0) = 0, any shape."""
        if self.l1 is not None:
            return np.asarray(self.l1 * np.abs(x))
        return _table(self, _power_of_two(x))[0](np.asarray(x, dtype=float))

    def resolved(self, reach: float) -> Array:
        """Ends of panels of [-reach, reach], a power of two, on which psi is a short polynomial."""
        return np.append(_table(self, reach)[1], reach)

    def breaks(self, low: float, high: float) -> Array:
        """Points of (low, high) between which phi is smooth on their own scale; increasing."""
        if self.l1 is not None:
            points = np.zeros(1)
        else:
            # Quadrature is exact for twice the degree of the table, and in products with it.
            fine = _table(self, _power_of_two(np.array([low, high])))[1]
            points = np.unique(np.concatenate([fine[::3], self.kinks]))
        return points[(points > low) & (points < high)]


@lru_cache(maxsize=256)
def confinement(phi: Formula) -> Confinement:
    """How a regularizer confines the estimate."""
    net = phi.elastic_net
    if net is not None:
        return _split_off(phi, net[1], False, net[0])
    slopes = [_slope_at_infinity(phi, side) for side in (-1.0, 1.0)]
    if min(slopes) == -math.inf:
        raise HdicaError(
            f"regularizer {phi.text!r} has no steady state (it pushes large entries outwards "
            "faster than the normalisation holds them; allowed is phi(x)/x bounded from below)"
        )
    if min(slopes) == math.inf:
        return _split_off(phi, 0.0, True, None)
    return _split_off(phi, min(slopes), False, None)


def _split_off(phi: Formula, slope: float, superlinear: bool, l1: float | None) -> Confinement:
    # As a fraction, so that a linear term of phi cancels exactly also where x is large.
    rest = sp.expand(phi.expression - sp.Rational(repr(slope)) * phi.symbol)
    psi = Formula(f"{phi.text} - {slope:g}*{phi.symbol}", rest, phi.symbol)
    return Confinement(phi, slope, superlinear, l1, psi)


def _slope_at_infinity(phi: Formula, side: float) -> float:
    """Limit of phi(x)/x, from a geometric extrapolation of three far values (Aitken)."""
    x = side * np.array([2.0**20, 2.0**30, 2.0**40])
    ratio = phi.value(x) / x
    if np.any(np.isnan(ratio)):
        raise HdicaError(
            f"regularizer {phi.text!r} has no known growth (its value at x = "
            f"{x[np.isnan(ratio)][0]:.3g} is not a number)"
        )
    if not np.all(np.isfinite(ratio)):
        return math.copysign(math.inf, ratio[-1])
    first, second = np.diff(ratio)
    if abs(second) >= 0.9 * abs(first) and abs(second) > 1e-9 * abs(ratio[-1]):
        return math.copysign(math.inf, second)
    limit = ratio[-1] - (second**2 / (second - first) if second != first else 0.0)
    return 0.0 if abs(limit) < 1e-9 * float(np.abs(ratio).max() + 1) else round(float(limit), 10)


def _power_of_two(x: Array) -> float:
    return 2.0 ** math.ceil(math.log2(max(8.0, float(np.max(np.abs(x))))))


@lru_cache(maxsize=64)
def _table(shape: Confinement, reach: float) -> tuple[Callable[[Array], Array], Array]:
    """Psi on [-reach, reach]: adaptive Chebyshev panels of psi, integrated away from zero."""
    grown = 2.0 ** np.arange(0, math.log2(reach) + 1, 2)
    inner = [k for k in shape.kinks if -reach < k < reach]
    left, right, series = _resolved(shape, np.unique([-reach, reach, 0.0, *grown, *-grown, *inner]))
    half = (right - left) / 2
    rising = np.stack([chebint(c, lbnd=-1) for c in series], axis=-1) * half
    whole = np.asarray(chebval(1.0, rising))
    zero = int(np.searchsorted(left, 0.0))
    # Summed outwards from 0, where Psi is small and must be exact.
    below, above = np.cumsum(whole[:zero][::-1])[::-1], np.cumsum(whole[zero:])
    local = np.einsum("ij,jp->ip", _to_powers(rising.shape[0]), rising)
    local[0] = np.concatenate([-below, [0.0], above[:-1]])
    powers = half ** np.arange(local.shape[0])[:, None]
    return scipy.interpolate.PPoly((local / powers)[::-1], np.append(left, reach)), left


def _to_powers(size: int) -> Array:
    """Chebyshev coefficients in t to coefficients of powers of t + 1."""
    shift = Polynomial([-1.0, 1.0])
    columns = [cheb2poly(np.eye(size)[j]) for j in range(size)]
    return np.stack(
        [np.pad(p.coef, (0, size - p.coef.size)) for p in (Polynomial(c)(shift) for c in columns)],
        axis=-1,
    )


def _resolved(shape: Confinement, edges: Array) -> tuple[Array, Array, Array]:
    """Panels on which psi is a short Chebyshev series: left and right ends, coefficients.

    Panels are halved, all of a generation at once, until the last coefficients are rounding
    errors; a regularizer that never stops oscillating is left unresolved far out.
    """
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    transform = np.linalg.inv(chebvander(nodes, _DEGREE)).T
    left, right = edges[:-1], edges[1:]
    done: list[tuple[Array, Array, Array]] = []
    for generation in range(_FINEST):
        half = (right - left) / 2
        values = shape.psi((left + half)[:, None] + half[:, None] * nodes)
        # Where phi overflows the density vanishes, whatever the number.
        finite = np.all(np.isfinite(values), axis=1)
        beyond = np.nan_to_num(np.sign(values[:, _DEGREE // 2])) * _OVERFLOW
        values = np.where(finite[:, None], values, beyond[:, None])
        series = np.einsum("pn,nk->pk", values, transform)
        size = np.abs(series)
        last = size[:, -3:].max(axis=1)
        fits = (last <= 1e-14 * size.max(axis=1)) | (half * last < 1e-16)
        fits &= finite | (generation >= 12)
        if generation == _FINEST - 1 or left.size + sum(d[0].size for d in done) > _MOST:
            fits[:] = True
        done.append((left[fits], right[fits], series[fits]))
        left, right, middle = left[~fits], right[~fits], ((left + right) / 2)[~fits]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        if left.size == 0:
            break
    parts = [np.concatenate([d[i] for d in done]) for i in range(3)]
    order = np.argsort(parts[0], kind="stable")
    return parts[0][order], parts[1][order], parts[2][order]
