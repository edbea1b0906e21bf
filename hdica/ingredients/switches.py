"""Functions that switch from one branch to another, for sympy: quick to build and differentiate.

sympy's own Piecewise and Max take seconds where these take milliseconds: they compare branches, and
these leave all but numbers as it is. Each argument stands once, so that nesting stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.ingredients.opaque import Opaque

Names = dict[str, Callable[..., Any]]
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
        from hdica.ingredients.pieces import is_flat

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
        return True if any(one.is_nonnegative for one in self.args) else None


SWITCHES = (sp.sign, sp.Abs, Choice, Largest)
"""All functions of the grammar that are not smooth."""


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


def chosen(s: Any, above: Any, below: Any, weight: Any) -> NDArray[np.float64]:
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
    given = {type(one).__name__: getattr(type(one), kind) for one in expression.atoms(Opaque)}
    found = [ours()] if has_branches(expression) else []
    return [*found, given] if given else found


def on_arrays(expression: sp.Expr, *symbols: sp.Symbol) -> Callable[..., Any]:
    """The function of an expression on arrays."""
    named = _named(expression, "array", lambda: _ARRAYS)
    function: Callable[..., Any] = sp.lambdify(
        symbols, expression, modules=[*named, "scipy", "numpy"], cse=True
    )
    return function


def on_numbers(expression: sp.Expr, *symbols: sp.Symbol) -> Callable[..., float]:
    """The function of an expression on numbers, for numba."""
    named = _named(expression, "scalar", _scalars)
    function: Callable[..., float] = sp.lambdify(
        symbols, sp.Float(1.0) * expression, modules=[*named, "math"], cse=True
    )
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
