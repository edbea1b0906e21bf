"""Where a nonlinearity changes abruptly: what quadrature over its argument must respect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.adaptive import resolving_edges
from hdica.ingredients.formula import Formula

Array = NDArray[np.float64]
_REACH = 6
"""Logarithm, base 2, of how far a nonlinearity is looked at."""
_GROWTH = 1e12


@dataclass(frozen=True, eq=False)
class Features:
    """Abrupt changes of f.

    Between two of the edges f and, if it is bounded, its slope are polynomials of low degree; at
    the kinks f or its slope jumps. It is steep if f jumps or its slope is unbounded: then <f'> is
    taken as <e f>/s (Stein); explosive if it grows faster than any power that a normal law tames by
    itself.
    """

    edges: Array
    kinks: tuple[float, ...]
    steep: bool
    explosive: bool

    def met(self, width: float) -> Array:
        """Kinks, and edges beside which f is resolved on less than a width alone."""
        narrow = np.diff(self.edges) < width
        beside = np.concatenate([narrow, [False]]) | np.concatenate([[False], narrow])
        return self.edges[beside | np.isin(self.edges, self.kinks)]


def _is_steep(f: Formula, kink: float) -> bool:
    """Whether f jumps at a kink, or its slope grows without bound towards it."""
    size = max(1.0, abs(kink))
    near = kink + size * np.array([-1e-9, 1e-9])
    below, above = f.value(near)
    if abs(above - below) > 1e-6 * (1 + abs(above)):
        return True
    far, close = (
        np.abs(f.derivative.value(kink + size * d * np.array([-1.0, 1.0]))) for d in (1e-5, 1e-10)
    )
    return bool(np.any(~(close <= 2 * far + 1e-3)))


@lru_cache(maxsize=128)
def outline(f: Formula) -> Features:
    """Kinks of a nonlinearity, and edges that do not resolve it between them."""
    # Of a function of Python the slope is not known, nor whether it jumps.
    steep = f.is_called or any(_is_steep(f, kink) for kink in f.kinks)
    powers = 2.0 ** np.arange(1, _REACH + 1)
    first = np.unique(np.concatenate([-powers, [0.0], powers, f.kinks]))
    with np.errstate(all="ignore"):
        far = np.abs(f.value(np.array([-40.0, 40.0])))
    explosive = bool(np.any(~(far < _GROWTH)))
    return Features(first[np.abs(first) <= powers[-1]], f.kinks, steep, explosive)


@lru_cache(maxsize=128)
def features(f: Formula) -> Features:
    """Kinks of a nonlinearity and edges between which it is smooth."""
    rough, slope = outline(f), f.derivative

    def functions(x: Array) -> Array:
        return np.stack([f.value(x)] if rough.steep else [f.value(x), slope.value(x)])

    return replace(rough, edges=resolving_edges(functions, rough.edges))
