"""Panels on which given functions are short polynomials, for quadrature that fits them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
ORDER = 16
RESOLVED = 1e-11
_GENERATIONS, _MOST = 52, 4096


@lru_cache(maxsize=8)
def gauss_legendre(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre points of [-1, 1] and their weights."""
    return legendre.leggauss(order)


@lru_cache(maxsize=1)
def _highest() -> Array:
    """Rows that give the two highest Legendre coefficients of values at the Gauss points."""
    x, w = gauss_legendre(ORDER)
    orders = np.arange(ORDER - 2, ORDER)
    return np.asarray((orders[:, None] + 0.5) * legendre.legvander(x, ORDER - 1).T[orders] * w)


def roughness(values: Array) -> Array:
    """Size of the two highest Legendre coefficients of values at Gauss points, the last axis."""
    found = np.sum(values[..., None, :] * _highest(), axis=-1)
    return np.asarray(np.abs(found).max(axis=-1))


def resolving_edges(
    functions: Function,
    first: Array,
    resolved: float = RESOLVED,
    floor: float = 1e-3,
    narrowest: float = 1e-11,
) -> Array:
    """Increasing edges, ``first`` among them, between which functions are short polynomials.

    ``functions`` takes points of any shape and returns shape (functions, *points.shape); what is
    not finite counts as zero. Halving ends where the highest Legendre coefficients are ``resolved``
    relative to the largest value of that function on the panel (or to ``floor`` times that on all
    first panels), and at a width ``narrowest`` relative to 1 + |position|.
    """
    x, _ = gauss_legendre(ORDER)
    found = [np.asarray(first, dtype=float)]
    low, high = found[0][:-1], found[0][1:]
    everywhere: Array | None = None
    before = np.full(low.size, np.inf)
    for _ in range(_GENERATIONS):
        t = low[:, None] + (high - low)[:, None] * (x + 1) / 2
        with np.errstate(all="ignore"):
            values = np.nan_to_num(functions(t), nan=0.0, posinf=0.0, neginf=0.0)
        size = np.abs(values).max(axis=-1)
        if everywhere is None:
            everywhere = floor * size.max(axis=-1, keepdims=True)
        share = (roughness(values) / np.maximum(size, np.maximum(everywhere, 1e-300))).max(axis=0)
        rough = (share > resolved) & (high - low > narrowest * (1 + np.abs(low + high) / 2))
        # What halving does not make smaller is rounding.
        rough &= (share > 1e3 * resolved) | (share < before / 4)
        if not rough.any() or sum(f.size for f in found) > _MOST:
            break
        middle = (low[rough] + high[rough]) / 2
        found.append(middle)
        low, high = np.concatenate([low[rough], middle]), np.concatenate([middle, high[rough]])
        before = np.tile(share[rough], 2)
    return np.unique(np.concatenate(found))
