"""Functions that switch between branches, for sympy: where they switch, and what is in between.

sympy's own Piecewise and Max take seconds where these take milliseconds: they compare branches, and
these leave all but numbers as it is. Each argument stands once, so that nesting stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from hdica.errors import HdicaError
from hdica.ingredients.functions import Opaque
from hdica.ingredients.plain import Array, Function

Names = dict[str, Callable[..., object]]
_HALF = sp.Rational(1, 2)


class Choice(sp.Function):
    """``Choice(s, a, b, w)``: a where s > 0, b where s < 0, and w a + (1 - w) b where s = 0.

    The weight w is 1, 0 or 1/2: where s = 0 the value is that of a, of b, or their mean.
    """

    nargs = 4
    is_extended_real = True

    @classmethod
    def eval(cls, s: sp.Expr, above: sp.Expr, below: sp.Expr, weight: sp.Expr) -> sp.Expr | None:
        """One of the branches, where it is known which."""
        if above == below:
            return above
        if s.is_number:
            return branch(s, above, below, weight)
        return None

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        s, above, below, weight = self.args
        # Where s = 0 on an interval the branch is the function there, and no mean.
        at = weight if is_flat(s, symbol) else _HALF
        return Choice(s, above.diff(symbol), below.diff(symbol), at)


class Largest(sp.Function):
    """The larger one of two real expressions."""

    nargs = 2
    is_extended_real = True

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """One of the two, where their difference is a number."""
        gap = a - b
        return branch(gap, a, b, sp.Integer(1)) if gap.is_number else None

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        a, b = self.args
        return Choice(a - b, a.diff(symbol), b.diff(symbol), _HALF)

    def _eval_is_nonnegative(self) -> bool | None:
        return True if any(argument.is_nonnegative for argument in self.args) else None


SWITCHES = (sp.sign, sp.Abs, Choice, Largest)
"""All functions of the grammar that are not smooth."""


def branches_of(switch: sp.Expr) -> tuple[sp.Expr, ...]:
    """The expressions between which a switch chooses."""
    match switch:
        case sp.sign():
            return sp.Integer(1), sp.Integer(-1)
        case sp.Abs():
            return switch.args[0], -switch.args[0]
        case Choice():
            return switch.args[1], switch.args[2]
    return switch.args[0], switch.args[1]


def decides(switch: sp.Expr) -> sp.Expr:
    """The expression whose sign decides between the branches of a switch."""
    return switch.args[0] - switch.args[1] if isinstance(switch, Largest) else switch.args[0]


def branch(s: sp.Expr, above: sp.Expr, below: sp.Expr, weight: sp.Expr) -> sp.Expr:
    """What a choice is where s has the sign of a number."""
    side = sign_of(s)
    if side == 0 and weight == _HALF:
        return (above + below) / 2
    return above if side > 0 or (side == 0 and weight == 1) else below


def sign_of(number: sp.Expr) -> int:
    """Sign of an expression without variables; 0 where twenty digits do not tell it from 0."""
    if number.is_Rational:
        return int(number.p > 0) - int(number.p < 0)
    value = number.evalf(20, maxn=100)
    if not value.is_comparable or abs(value) < 1e-18:
        return 0
    return 1 if value > 0 else -1


def chosen(s: Array, above: Array, below: Array, weight: float) -> Array:
    """:class:`Choice` of arrays."""
    at = below if weight == 0 else above if weight == 1 else (above + below) / 2
    return np.where(s > 0, above, np.where(s < 0, below, at))


_ARRAYS: Names = {"Choice": chosen, "Largest": np.maximum}
"""The same on arrays, by the names that sympy writes."""


def has_branches(expression: sp.Expr) -> bool:
    """Whether it holds a function of this module."""
    return bool(expression.has(Choice, Largest))


def _named(expression: sp.Expr, kind: str, ours: Callable[[], Names]) -> list[Names]:
    """What sympy does not know of the functions in an expression, by name."""
    kinds = {type(call) for call in expression.atoms(Opaque)}
    called = {function.__name__: getattr(function, kind) for function in kinds}
    tables = [ours()] if has_branches(expression) else []
    return [*tables, called] if called else tables


def vectorised(expression: sp.Expr, *symbols: sp.Symbol) -> Callable[..., Array]:
    """The function of an expression: one array for each symbol, broadcast against each other."""
    modules = [*_named(expression, "array", lambda: _ARRAYS), "scipy", "numpy"]
    function = sp.lambdify(symbols, expression, modules=modules, cse=True)

    def value(*arguments: ArrayLike) -> Array:
        arrays = [np.asarray(a, dtype=float) for a in arguments]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.broadcast_to(np.asarray(function(*arrays), dtype=float), shape)

    return value


def on_numbers(expression: sp.Expr, *symbols: sp.Symbol) -> Callable[..., float]:
    """The function of an expression on numbers, for numba."""
    return _on_numbers(sp.Float(1.0) * expression, symbols, [expression])


def several_on_numbers(
    expressions: Sequence[sp.Expr], row: sp.Symbol
) -> Callable[[Array], tuple[float, ...]]:
    """The functions of several expressions of the entries of a row, for numba."""
    return _on_numbers(tuple(sp.Float(1.0) * one for one in expressions), (row,), expressions)


def _on_numbers(
    written: object, symbols: tuple[sp.Symbol, ...], expressions: Sequence[sp.Expr]
) -> Callable[..., Any]:
    names = [table for one in expressions for table in _named(one, "scalar", _scalars)]
    function: Callable[..., Any]
    function = sp.lambdify(symbols, written, modules=[*names, "math"], cse=True)
    return function


@cache
def _scalars() -> Names:
    """The same for compiled code on numbers."""
    import numba

    @numba.njit
    def choice(s, above, below, weight):  # type: ignore[no-untyped-def]
        if s > 0:
            return 1.0 * above
        if s < 0 or weight == 0:
            return 1.0 * below
        return 1.0 * above if weight == 1 else 0.5 * (above + below)

    @numba.njit
    def largest(a, b):  # type: ignore[no-untyped-def]
        return max(1.0 * a, 1.0 * b)

    return {"Choice": choice, "Largest": largest}


DIGITS = 60
"""Digits in which coefficients such as pi are taken."""
MOST_BITS = 120_000
"""Length of the longest coefficient times the degree, beyond which isolation takes too long."""
_SMALLEST = 1e-300


def real_zeros(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Where a polynomial vanishes: every real root, once, increasing, each the nearest number.

    Roots are isolated exactly, then narrowed down to one number each. Coefficients that are not
    rational are taken in so many digits, so that roots that only just touch may part or vanish.
    """
    if isinstance(expression, sp.Mul):
        return sorted({zero for part in expression.args for zero in real_zeros(part, symbol)})
    if isinstance(expression, sp.Pow):
        return real_zeros(expression.base, symbol)
    if not expression.has(symbol):
        return []
    whole = _whole(sp.Poly(expression, symbol))
    if whole.degree() < 1:
        return []
    # Of multiple roots, too, one is left, with a change of sign at it.
    coefficients = list(map(int, whole.sqf_part().all_coeffs()))
    return sorted({_narrowed(coefficients, *ends) for ends in _isolated(coefficients, symbol)})


def _whole(polynomial: sp.Poly) -> sp.Poly:
    """The polynomial times a number, its coefficients whole."""
    if not is_exact(polynomial):
        near = [sp.Rational(str(c.evalf(DIGITS))) for c in polynomial.all_coeffs()]
        polynomial = sp.Poly(near, *polynomial.gens)
    whole = polynomial.clear_denoms(convert=True)[1]
    bits = max(int(c).bit_length() for c in whole.all_coeffs()) * whole.degree()
    if bits > MOST_BITS:
        raise HdicaError("the numbers of a polynomial in it are of too different sizes")
    return whole


def is_exact(polynomial: sp.Poly) -> bool:
    """Whether all coefficients are rational."""
    return polynomial.domain in (sp.ZZ, sp.QQ)


def _isolated(coefficients: list[int], symbol: sp.Symbol) -> list[tuple[Fraction, Fraction]]:
    """Intervals that hold one root each; both ends are the root where it is rational and met."""
    # Isolation moves from integer to integer: it gets the roots on the scale of the largest.
    degree, first = len(coefficients) - 1, coefficients[0].bit_length()
    sizes = [
        -(-(c.bit_length() - first + 1) // power)
        for power, c in enumerate(coefficients[1:], start=1)
        if c
    ]
    scale = max(sizes, default=0) + 1
    shifts = [scale * (degree - power if scale > 0 else -power) for power in range(degree + 1)]
    near = [c << shift for c, shift in zip(coefficients, shifts, strict=True)]
    unit = Fraction(2) ** scale
    return [
        (unit * Fraction(int(a.p), int(a.q)), unit * Fraction(int(b.p), int(b.q)))
        for (a, b), _ in sp.Poly(near, symbol).intervals()
    ]


def _sign(coefficients: list[int], at: Fraction) -> int:
    """Sign at a rational number, without rounding."""
    total, scale = 0, 1
    for c in coefficients:
        total = total * at.numerator + c * scale
        scale *= at.denominator
    return (total > 0) - (total < 0)


def _narrowed(coefficients: list[int], low: Fraction, high: Fraction) -> float:
    """The number nearest to the one root between two others."""
    first, last = float(low), float(high)
    # The sign just above the lower end, which may be a root of its own.
    slope = [c * (len(coefficients) - 1 - place) for place, c in enumerate(coefficients[:-1])]
    below = _sign(coefficients, low) or _sign(slope, low)
    while low < high and last - first > _SMALLEST:
        middle = first + (last - first) / 2
        if not first < middle < last:
            break
        side = _sign(coefficients, Fraction(middle))
        if side == 0:
            return middle
        first, last = (middle, last) if side == below else (first, middle)
    half = (Fraction(first) + Fraction(last)) / 2
    return last if low < high and _sign(coefficients, half) == below else first


_MOST = 64
"""Switches of one condition that are followed; more are those of a wave that never ends."""
_FAR = np.geomspace(8.0, 1e9, 2048)[1:]
_GRID = np.concatenate([-_FAR[::-1], np.linspace(-8, 8, 2049), _FAR])
_VANISHES_WITH = (sp.tanh, sp.sinh, sp.atan, sp.erf)
"""Functions that have the sign of their argument."""
_ULPS = 4 * float(np.finfo(float).eps)
_NOTHING = 1e-14


class Piece(NamedTuple):
    """What a formula is between two neighbouring switches: an expression without any."""

    low: float
    high: float
    expression: sp.Expr


@lru_cache(maxsize=512)
def switching_points(expression: sp.Expr, symbol: sp.Symbol) -> tuple[float, ...]:
    """Where the switches in an expression change sides, increasing."""
    points = {at for call in expression.atoms(Opaque) for at in type(call).breaks()}
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
    parts = (piece.expression for piece in pieces(expression, symbol))
    return all(part == 0 or bool(sp.simplify(part) == 0) for part in parts)


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
    args: list[sp.Expr] = [_resolved(part, symbol, at) for part in expression.args]
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
    zeros = _passes(vectorised(expression, symbol))
    if expression.subs(symbol, -symbol) in (expression, -expression):
        # A mirror image has exactly the mirrored switches.
        right = [x for x in zeros if x > _NOTHING]
        middle = [0.0] if any(abs(x) <= _NOTHING for x in zeros) else []
        return sorted({*(-x for x in right), *middle, *right})
    return sorted(zeros)


def _passes(function: Function) -> list[float]:
    """Where a function changes sign between points of a grid that covers the line."""
    from scipy.optimize import brentq  # half a second, and only switches need it

    values = function(_GRID)
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
    find = partial(brentq, lambda x: float(function(np.array(x))), xtol=1e-300, rtol=_ULPS)
    return [float(find(low, high)) for low, high in brackets]


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
