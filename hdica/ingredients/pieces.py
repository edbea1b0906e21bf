"""Formulas with switches, piece by piece: where they switch, and what they are in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.opaque import Opaque
from hdica.ingredients.roots import real_zeros
from hdica.ingredients.switches import (
    SWITCHES,
    Choice,
    Largest,
    branch,
    decides,
    has_branches,
    on_arrays,
    sign_of,
)

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
_MOST = 64
"""Switches of one condition that are followed; more are those of a wave that never ends."""
_FAR = np.geomspace(8.0, 1e9, 2048)[1:]
_GRID = np.concatenate([-_FAR[::-1], np.linspace(-8, 8, 2049), _FAR])
_VANISHES_WITH = (sp.tanh, sp.sinh, sp.atan, sp.erf)
"""Functions that have the sign of their argument."""
_ULPS = 4 * float(np.finfo(float).eps)
_NOTHING = 1e-14


@dataclass(frozen=True)
class Piece:
    """What a formula is between two neighbouring switches: an expression without any."""

    low: float
    high: float
    expression: sp.Expr


@lru_cache(maxsize=512)
def switching_points(expression: sp.Expr, symbol: sp.Symbol) -> tuple[float, ...]:
    """Where the switches in an expression change sides, increasing."""
    points = {at for one in expression.atoms(Opaque) for at in type(one).breaks()}
    for switch in expression.atoms(*SWITCHES):
        try:
            points |= {*_crossings(decides(switch), symbol)}
        except HdicaError as exc:
            raise HdicaError(f"{exc} (inside {switch})") from None
    return tuple(sorted(points))


@lru_cache(maxsize=512)
def pieces(expression: sp.Expr, symbol: sp.Symbol) -> tuple[Piece, ...]:
    """The expression between its switches."""
    points = switching_points(expression, symbol)
    ends = (-np.inf, *points, np.inf)
    return tuple(
        Piece(low, high, _resolved(expression, symbol, _between(low, high)))
        for low, high in pairwise(ends)
    )


def kinks_of(expression: sp.Expr, symbol: sp.Symbol) -> tuple[float, ...]:
    """Where a function or its slope may jump.

    A switch in a branch that is not taken there is none; of sign and abs alone all are given.
    """
    points = switching_points(expression, symbol)
    if not has_branches(expression):
        return points
    parts = pieces(expression, symbol)
    sides = zip(points, parts[:-1], parts[1:], strict=True)
    return tuple(at for at, left, right in sides if left.expression != right.expression)


def is_flat(expression: sp.Expr, symbol: sp.Symbol) -> bool:
    """Whether a function is 0 on a whole interval; of two variables, whether it may be."""
    if not expression.has(*SWITCHES):
        return False
    if expression.free_symbols != {symbol}:
        return True
    return any(piece.expression == 0 for piece in pieces(expression, symbol))


def vanishes(expression: sp.Expr, symbol: sp.Symbol) -> bool:
    """Whether a function with switches is 0 at every real number where it does not jump."""
    return all(_is_nothing(piece.expression) for piece in pieces(expression, symbol))


def _is_nothing(expression: sp.Expr) -> bool:
    return expression == 0 or bool(sp.simplify(expression) == 0)


def _between(low: float, high: float) -> sp.Rational:
    """A number between two others that is no special one."""
    if np.isinf(low) and np.isinf(high):
        return sp.Rational(7, 19)
    if np.isinf(low):
        return sp.Rational(high - 1 - abs(high) / 7)
    if np.isinf(high):
        return sp.Rational(low + 1 + abs(low) / 7)
    return sp.Rational(low) + (sp.Rational(high) - sp.Rational(low)) * sp.Rational(7, 16)


def _resolved(expression: sp.Expr, symbol: sp.Symbol, at: sp.Rational) -> sp.Expr:
    """The expression with every switch replaced by the branch that it takes at a number."""
    if not expression.has(*SWITCHES):
        return expression
    args: list[sp.Expr] = [_resolved(one, symbol, at) for one in expression.args]
    if isinstance(expression, Choice):
        decided, above, below, weight = args
        return branch(decided.subs(symbol, at), above, below, weight)
    if isinstance(expression, Largest):
        return branch((args[0] - args[1]).subs(symbol, at), args[0], args[1], sp.Integer(1))
    if isinstance(expression, sp.sign | sp.Abs):
        side = sign_of(args[0].subs(symbol, at))
        return sp.Integer(side) if isinstance(expression, sp.sign) else side * args[0]
    return expression.func(*args)


@lru_cache(maxsize=512)
def _crossings(expression: sp.Expr, symbol: sp.Symbol) -> tuple[float, ...]:
    """Where a function passes 0, or is 0, apart from jumps, which are switches of their own."""
    if not expression.has(*SWITCHES):
        return tuple(_zeros(expression, symbol))
    return tuple(
        zero
        for piece in pieces(expression, symbol)
        for zero in _zeros(piece.expression, symbol)
        if piece.low <= zero <= piece.high
    )


def _zeros(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Zeros and poles of a smooth expression: exact of a rational one, else changes of sign."""
    if expression.is_polynomial(symbol):
        return real_zeros(expression, symbol)
    if isinstance(expression, sp.Mul):
        return sorted({zero for part in expression.args for zero in _zeros(part, symbol)})
    if isinstance(expression, sp.exp | sp.cosh):
        return []
    if isinstance(expression, _VANISHES_WITH) or (
        isinstance(expression, sp.Pow) and expression.exp.is_number
    ):
        return _zeros(expression.args[0], symbol)
    over, under = sp.fraction(sp.together(expression))
    if over.is_polynomial(symbol) and under.is_polynomial(symbol):
        return sorted({*real_zeros(over, symbol), *real_zeros(under, symbol)})
    return _scanned(expression, symbol)


def _scanned(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Changes of sign to rounding, of functions that are no polynomials."""
    compute = on_arrays(expression, symbol)

    def values(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(compute(x), dtype=float), np.shape(x))

    found = _passes(values)
    if expression.subs(symbol, -symbol) in (expression, -expression):
        # A mirror image has exactly the mirrored switches.
        right = [x for x in found if x > _NOTHING]
        middle = [0.0] if any(abs(x) <= _NOTHING for x in found) else []
        return sorted({*(-x for x in right), *middle, *right})
    return sorted(found)


def _passes(function: Function) -> list[float]:
    """Where a function changes sign between points of a grid that covers the line."""
    from scipy.optimize import brentq  # half a second, and only switches need it

    values = function(_GRID)

    def at_one(x: float) -> float:
        return float(function(np.array(x)))

    size = np.abs(values)
    least = _NOTHING * max(1.0, float(np.nanmax(size[np.abs(_GRID) <= 8], initial=0.0)))
    seen = np.flatnonzero(size > least)
    side, at, size = np.sign(values[seen]), _GRID[seen], size[seen]
    brackets = [(float(at[k]), float(at[k + 1])) for k in np.flatnonzero(side[1:] != side[:-1])]
    same = (side[1:-1] == side[:-2]) & (side[1:-1] == side[2:])
    turns = 1 + np.flatnonzero(same & (size[1:-1] < size[:-2]) & (size[1:-1] <= size[2:]))
    for k in turns[np.argsort(np.abs(at[turns]), kind="stable")][:_MOST]:
        brackets += _dips(function, float(at[k - 1]), float(at[k + 1]))
    if len(brackets) > _MOST:
        raise HdicaError(
            f"its kinks cannot be located (a condition changes sign more than {_MOST} times)"
        )
    return [float(brentq(at_one, low, high, xtol=1e-300, rtol=_ULPS)) for low, high in brackets]


def _dips(function: Function, low: float, high: float) -> list[tuple[float, float]]:
    """Two brackets where a function that is nearest to 0 between two points dips through it."""
    from scipy.optimize import minimize_scalar  # half a second, and only switches need it

    side = float(np.sign(function(np.array(low))))
    least = minimize_scalar(
        lambda x: side * float(function(np.array(x))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return [(low, float(least.x)), (float(least.x), high)] if least.fun < -_NOTHING else []
