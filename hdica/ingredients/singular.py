"""Where a formula is infinite or no number: zeros under fractions, logarithms and roots.

Everything else of the grammar is finite at every real x. Polynomials are searched on the whole
line, other functions on a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.ingredients.pieces import pieces
from hdica.ingredients.roots import is_exact, real_zeros
from hdica.ingredients.switches import Choice, has_branches, on_arrays

Guards = tuple[tuple[sp.Expr, int], ...]
"""Conditions of branches: an expression, and the sign that it has where the branch is taken."""
Array = NDArray[np.float64]
Function = Callable[[Array], Array]
_FAR = np.geomspace(8.0, 1e3, 225)[1:]
GRID = np.concatenate([-_FAR[::-1], np.linspace(-8, 8, 1025), _FAR])
"""Where functions that are no polynomials are looked at; it holds 0 and the half-integers."""
_ROUNDED = 1e-12
"""Smaller values have no sign that could be trusted: 1 + tanh(x) far to the left."""
_TOUCHES = 1e-13
"""A minimum this small, relative to what is around it, is a zero."""
_BESIDE = 1e-9
"""How far from a zero, relative to its size, a branch counts as taken there."""
MANY = 16
"""Places at which a zero is looked for more closely."""
_SPLIT = (sp.Abs, sp.sign, sp.tanh, sp.sinh, sp.atan, sp.erf)
"""Functions that vanish exactly where their argument does."""


def singular_at(expression: sp.Expr, symbol: sp.Symbol) -> float | None:
    """A real number at which an expression is infinite or no real number, nearest to 0; or None.

    What would cancel is not cancelled: sin(x)/x is no number at 0 as it is computed.
    """
    found: list[float] = []
    for inner, strict, positive, guards in _conditions(expression):
        taken = _taken(guards, symbol)
        zeros = _zeros(inner, symbol)
        found += [zero for zero in zeros if taken(zero, _BESIDE)] if strict else []
        if positive and inner.is_nonnegative is not True:
            found += [x for x in _negative(inner, symbol, zeros) if taken(x, 0.0)]
    return min(found, key=lambda x: (abs(x), x)) if found else None


def _taken(guards: Guards, symbol: sp.Symbol) -> Callable[[float, float], bool]:
    """Whether the branches that hold an expression are taken at a number, or just beside it."""
    sides = [(_function(decided, symbol), side) for decided, side in guards]

    def taken(x: float, beside: float) -> bool:
        near = x + beside * max(1.0, abs(x)) * np.array([-1.0, 0.0, 1.0])
        open_there = np.ones(3, dtype=bool)
        for decided, side in sides:
            open_there &= side * decided(near) >= 0
        return bool(open_there.any())

    return taken


def _conditions(node: sp.Expr, guards: Guards = ()) -> Iterator[tuple[sp.Expr, bool, bool, Guards]]:
    """What must not vanish (second), and what must not be negative (third), where it is taken."""
    if isinstance(node, sp.log):
        yield node.args[0], True, True, guards
    elif isinstance(node, sp.Pow) and node.base.free_symbols and node.exp.is_number:
        whole, divided = bool(node.exp.is_integer), bool(node.exp.is_negative)
        if divided or not whole:
            yield node.base, divided, not whole, guards
    if isinstance(node, Choice):
        decided, above, below, _ = node.args
        yield from _conditions(decided, guards)
        yield from _conditions(above, (*guards, (decided, 1)))
        yield from _conditions(below, (*guards, (decided, -1)))
        return
    for one in node.args:
        yield from _conditions(one, guards)


def _zeros(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Real zeros of an expression that is itself finite."""
    if not expression.free_symbols:
        return [0.0] if expression == 0 else []
    if expression.is_nonzero or isinstance(expression, sp.exp | sp.cosh):
        return []
    if has_branches(expression) and not isinstance(expression, sp.Mul):
        return _piecewise(expression, symbol)
    if isinstance(expression, sp.Mul):
        return [zero for part in expression.args for zero in _zeros(part, symbol)]
    if expression.is_polynomial(symbol):
        return _roots(expression, symbol)
    if isinstance(expression, _SPLIT) or (
        isinstance(expression, sp.Pow) and expression.exp.is_positive
    ):
        return _zeros(expression.args[0], symbol)
    return _scanned(expression, symbol)


def _piecewise(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Zeros of an expression that jumps: of each of its pieces, where it is that piece."""
    found: list[float] = []
    for piece in pieces(expression, symbol):
        if piece.expression == 0:
            found.append(min(max(0.0, piece.low), piece.high))
        else:
            zeros = _zeros(piece.expression, symbol)
            found += [zero for zero in zeros if piece.low <= zero <= piece.high]
    return found


def _roots(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Real roots of a polynomial: exactly, since rounding takes multiple roots away or parts them.

    With pi among its coefficients they are rounded all the same.
    """
    rounded = not is_exact(sp.Poly(expression, symbol))
    return real_zeros(expression, symbol) + (_scanned(expression, symbol) if rounded else [])


def _function(expression: sp.Expr, symbol: sp.Symbol) -> Function:
    compute = on_arrays(expression, symbol)

    def values(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(compute(x), dtype=float), x.shape)

    return values


def _scanned(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Zeros seen on the grid: exact ones, changes of sign and minima that touch 0."""
    function = _function(expression, symbol)
    y = function(GRID)
    exact = _inner(np.flatnonzero(y == 0))
    found = [float(x) for x in GRID[exact] if _vanishes(expression, symbol, float(x))]
    with np.errstate(all="ignore"):
        size = np.abs(y)
        real = np.isfinite(size[1:] + size[:-1]) & (np.minimum(size[1:], size[:-1]) > _ROUNDED)
        crosses = np.flatnonzero(real & (y[1:] * y[:-1] < 0))
        low = np.flatnonzero((size[1:-1] <= size[:-2]) & (size[1:-1] < size[2:]) & (size[1:-1] > 0))
    found += [_narrowed(function, GRID[k], GRID[k + 1])[0] for k in _inner(crosses)]
    for k in _inner(low + 1):
        at, least = _narrowed(function, GRID[k - 1], GRID[k + 1])
        if least <= _TOUCHES * float(size[k - 1 : k + 2].max()):
            found.append(at)
    return found


def _inner(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The places of the grid that are nearest to 0: few are enough to refuse a formula."""
    return places[np.argsort(np.abs(GRID[places]), kind="stable")][:MANY]


def _vanishes(expression: sp.Expr, symbol: sp.Symbol, x: float) -> bool:
    """Whether it is 0 and not only rounded to it, as 1 + tanh(5 x) is at -8."""
    value = expression.subs(symbol, sp.Rational(x)).evalf(30, maxn=400)
    return bool(abs(value) < 1e-100)


def _narrowed(function: Function, low: float, high: float) -> tuple[float, float]:
    """Where the size of a function is least between two points, and how small it is there."""
    for _ in range(12):
        x = np.linspace(low, high, 33)
        size = np.abs(function(x))
        k = int(np.argmin(np.where(np.isfinite(size), size, np.inf)))
        low, high = float(x[max(k - 1, 0)]), float(x[min(k + 1, 32)])
    return float(x[k]), float(size[k])


def _negative(expression: sp.Expr, symbol: sp.Symbol, zeros: list[float]) -> list[float]:
    """Points at which an expression is negative: of the grid, and between its zeros."""
    ends = np.array([-1e3, *sorted(zeros), 1e3])
    beyond = [ends.min() - 1, ends.max() + 1]
    x = np.unique(np.concatenate([GRID, (ends[1:] + ends[:-1]) / 2, beyond]))
    return [float(v) for v in x[_function(expression, symbol)(x) < 0]]
