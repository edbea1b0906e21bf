"""A compiled function in formulas: sympy knows its name, and nothing else of it."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.adaptive import resolving_edges

Array = NDArray[np.float64]
_REACH = 64.0
_MOST = 64
_NARROW, _SIDE, _APART = 1e-6, 1e-9, 3e-3
_EPS = float(np.finfo(float).eps)


class Opaque(sp.Function):
    """A real function of one variable; a class for each, made by :func:`opaque`."""

    nargs = 1
    is_extended_real = True
    scalar: ClassVar[Any]
    """Compiled by Numba, of a number."""
    array: ClassVar[Any]
    """The same of arrays."""
    order: ClassVar[int] = 0
    """Of the derivative that it is."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Its slope by a central difference, which is exact to some ten digits."""
        return _slope(type(self))(self.args[0])  # type: ignore[arg-type]

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        at = self.args[0]
        return sp.Float(float(type(self).scalar(float(at)))) if at.is_number else None

    @classmethod
    def breaks(cls) -> tuple[float, ...]:
        """Where it or its slope jumps, as far as its values tell."""
        return _breaks(cls)  # type: ignore[arg-type]


def opaque(name: str, scalar: Any, order: int = 0) -> type[Opaque]:
    """The class of a compiled function."""
    import numba

    array = numba.vectorize(["float64(float64)"])(lambda x: scalar(x))
    made: type[Opaque] = type(
        name,
        (Opaque,),
        {"scalar": staticmethod(scalar), "array": staticmethod(array), "order": order},
    )
    return made


@cache
def _slope(of: type[Opaque]) -> type[Opaque]:
    import numba

    inner, order = of.scalar, of.order + 1
    width = _EPS ** (1 / (2 + order))

    @numba.njit("float64(float64)", error_model="numpy")
    def slope(x):  # type: ignore[no-untyped-def]
        h = width * (1 + abs(x))
        return (inner(x + h) - inner(x - h)) / ((x + h) - (x - h))

    return opaque(f"slope_of_{of.__name__}", slope, order)


@cache
def _breaks(of: type[Opaque]) -> tuple[float, ...]:
    if of.order:
        return ()

    def values(x: Array) -> Array:
        return np.asarray(of.array(x))[None]

    powers = 2.0 ** np.arange(1, 7)
    edges = resolving_edges(values, np.concatenate([-powers[::-1], [0.0], powers]))
    narrow = np.diff(edges) < _NARROW * (1 + np.abs(edges[1:]))
    bounds = np.flatnonzero(np.diff(np.concatenate([[0], narrow.astype(int), [0]])))
    runs = zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True)
    found = [_within(of, *_finest(edges[a : b + 1])) for a, b in runs]
    crowded = np.concatenate([narrow, [False]]) | np.concatenate([[False], narrow])
    apart = np.min(np.abs(edges[:, None] - np.array([*found, np.inf])), axis=1)
    crowded |= apart < _APART * (1 + np.abs(edges))
    found += [float(x) for x in edges[~crowded] if _bends(of, float(x))]
    if len(found) > _MOST:
        name = of.__name__.rpartition("_")[0]
        raise HdicaError(f"the function {name} has more than {_MOST} kinks within |x| < {_REACH:g}")
    return tuple(sorted(set(found)))


def _finest(edges: Array) -> tuple[float, float]:
    """The narrowest of some panels, and one on either side: that is where halving went."""
    k = int(np.argmin(np.diff(edges)))
    return float(edges[max(k - 1, 0)]), float(edges[min(k + 2, edges.size - 1)])


def _within(of: type[Opaque], low: float, high: float) -> float:
    """A jump between two numbers to the last bit, else the roundest number between them."""
    below, above = (float(of.scalar(x)) for x in (low, high))
    if not abs(above - below) > _NARROW * (1 + abs(above)):
        middle = (low + high) / 2
        near = (round(middle, digits) for digits in range(16))
        return next((x for x in near if low <= x <= high), middle)
    while np.nextafter(low, high) < high:
        middle = low + (high - low) / 2
        at = float(of.scalar(middle))
        if abs(at - below) > abs(above - at):
            high, above = middle, at
        else:
            low, below = middle, at
    return min((low, high), key=lambda x: len(repr(x)))


def _bends(of: type[Opaque], x: float) -> bool:
    """Whether it, its slope or its curvature jumps at a number beside which it is smooth."""
    size = max(1.0, abs(x))
    below, above = (float(of.scalar(x + size * d)) for d in (-_SIDE, _SIDE))
    if abs(above - below) > _NARROW * (1 + abs(above)):
        return True

    def side(h: float) -> tuple[float, float]:
        """Slope and curvature on one side, by differences."""
        near, middle, far = (float(of.scalar(x + size * h * d)) for d in (1e-3, 0.5, 1.0))
        rises = (middle - near) / (0.499 * h), (far - middle) / (0.5 * h)
        return rises[1], (rises[1] - rises[0]) / (0.4995 * h)

    def gaps(h: float) -> list[tuple[float, float]]:
        pairs = zip(side(-h), side(h), strict=True)
        return [(abs(right - left), 1 + abs(left) + abs(right)) for left, right in pairs]

    both = list(zip(gaps(1e-3), gaps(1e-4), (1e-5, 1e-3), strict=True))
    return any(
        near > 0.5 * wide and near > least * scale for (wide, _), (near, scale), least in both
    )
