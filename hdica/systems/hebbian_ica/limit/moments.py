"""Exact averages of polynomials of y = R s + z, z ~ N(0, I - R R'), from the sources' moments.

All are polynomials in the entries of R. They hold on the boundary, where I - R R' is singular,
and for complex R as well, which gives derivatives without rounding (see equation_17).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source

Array = NDArray[np.float64]
Numbers = NDArray[Any]
"""Real or complex entries."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What polynomial averages need of phi and the sources."""

    coefficients: Array  # of phi, lowest degree first, shape (d + 1,)
    moments: Array  # E s_j^p for p = 0 ... 2d + 1, shape (M, 2d + 2)

    def means(self, r: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """<phi(y_i) s_j>, <phi(y_i) y_k> and <phi(y_i) phi(y_k)> at overlaps ``r`` (K, M)."""
        size = self.coefficients.size
        factorial = np.array([float(math.factorial(p)) for p in range(size)])
        weight = self.coefficients * factorial
        rest = np.eye(r.shape[0]) - np.sum(r[:, None] * r, axis=2)
        joint = _joint(r, rest, self.moments, size)
        phi_phi = np.sum(weight[:, None] * weight * joint, axis=(2, 3))
        phi_s = np.sum(weight * _with_source(r, rest, self.moments, size), axis=2)
        # s_j is independent of y_i where R_ij = 0, so that a zero column stays exactly zero.
        phi_s = np.where(r == 0.0, 0.0, phi_s)
        single = joint[:, 0, :, 0]
        slope = np.sum(weight[1:] * single[:, :-1], axis=1)
        phi_y = np.sum(phi_s[:, None] * r, axis=2) + rest * slope[:, None]
        return phi_s, phi_y, phi_phi


def find_moments(phi: Formula, sources: Sequence[Source]) -> Moments:
    """Moments for a polynomial ``phi``."""
    c = phi.coefficients
    assert c is not None
    needed = max(2 * (c.size - 1), c.size, 2)
    for source in sources:
        for p in range(needed + 1):
            if not math.isfinite(source.moment(p)):
                raise HdicaError(
                    f"the limit does not exist: the source {source.label} has no finite moment "
                    f"of order {p}, which the nonlinearity {phi.text!r} needs"
                )
    table = [[s.moment(p) if p <= needed else 0.0 for p in range(2 * c.size)] for s in sources]
    return Moments(c, np.array(table))


def _powers(x: Numbers, size: int) -> Numbers:
    """x^p / p! for p < size, along a new last axis."""
    out = np.ones((*x.shape, size), dtype=x.dtype)
    for p in range(1, size):
        out[..., p] = out[..., p - 1] * x / p
    return out


def _normal(variance: Numbers, size: int) -> Numbers:
    """E z_i^p / p! of normal variables, shape (K, size): the coefficients of exp(C_ii u^2/2)."""
    out = np.zeros((variance.size, size), dtype=variance.dtype)
    out[:, ::2] = _powers(variance / 2, (size + 1) // 2)
    return out


def _joint(r: Numbers, rest: Numbers, moments: Array, size: int) -> Numbers:
    """E y_i^a y_k^b / (a! b!) for a, b < size, shape (K, K, size, size).

    The product of the moment generating functions of z and of every source, as truncated power
    series in two variables.
    """
    own = _normal(np.diagonal(rest), size)
    cross = _powers(rest, size)
    out = np.zeros((*rest.shape, size, size), dtype=rest.dtype)
    for c in range(size):
        left = own[:, None, : size - c, None] * own[None, :, None, : size - c]
        out[:, :, c:, c:] += cross[:, :, c, None, None] * left
    for j in range(r.shape[1]):
        powers = _powers(r[:, j], size)
        old, out = out, np.zeros_like(out)
        for a in range(size):
            for b in range(size):
                if moments[j, a + b] != 0.0:
                    term = moments[j, a + b] * powers[:, None, a] * powers[None, :, b]
                    shifted = old[:, :, : size - a, : size - b]
                    out[:, :, a:, b:] += term[:, :, None, None] * shifted
    return out


def _with_source(r: Numbers, rest: Numbers, moments: Array, size: int) -> Numbers:
    """E y_i^a s_j / a! for a < size, shape (K, M, size)."""
    sources = r.shape[1]
    out = np.repeat(_normal(np.diagonal(rest), size)[:, None], sources, axis=1)
    for m in range(sources):
        powers = _powers(r[:, m], size)
        old, out = out, np.zeros_like(out)
        for p in range(size):
            moment = np.full(sources, moments[m, p])
            moment[m] = moments[m, p + 1]
            out[:, :, p:] += (powers[:, None, p] * moment)[:, :, None] * old[:, :, : size - p]
    return out
