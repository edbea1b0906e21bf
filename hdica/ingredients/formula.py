"""User formulas: read by a small grammar, differentiated by sympy, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from hdica.errors import HdicaError
from hdica.ingredients.functions import is_word, known
from hdica.ingredients.grammar import MAX_POWER, read_expression
from hdica.ingredients.opaque import Opaque
from hdica.ingredients.pieces import kinks_of, pieces, vanishes
from hdica.ingredients.singular import singular_at
from hdica.ingredients.switches import SWITCHES, has_branches, on_arrays, on_numbers

_TRIED = (sp.Rational(1, 3), sp.Rational(-7, 5), sp.Rational(19, 7))
_PLAIN = 1e-20
"""A value of this size, found to twenty digits, is not 0."""


@dataclass(frozen=True)
class Formula:
    """A real function of one variable by a user's formula, with its derivative and kinks."""

    text: str
    expression: sp.Expr
    symbol: sp.Symbol

    @cached_property
    def value(self) -> Callable[[Any], Any]:
        """The function itself, on arrays of any shape."""
        return vectorised(self.expression, self.symbol)

    @cached_property
    def derivative(self) -> Formula:
        """Its derivative away from kinks (there the mean of both sides, as sign(0) = 0)."""
        slope = _without_deltas(sp.diff(self.expression, self.symbol))
        return Formula(f"d/d{self.symbol}({self.text})", slope, self.symbol)

    @cached_property
    def compiled(self) -> Any:
        """The scalar function, compiled by numba: a C function ``double f(double)``."""
        return _c_function("float64(float64)", self.expression, self.symbol)

    @cached_property
    def compiled_pair(self) -> Any:
        """The same as a C function ``double f(double u, double c)`` of u alone."""
        return compiled_pair(self.expression, self.symbol, sp.Dummy("c"))

    @cached_property
    def compiled_block(self) -> Any:
        """The C function ``phi(x, out, count)`` of ``count`` neighbours in memory."""
        import numba

        function = on_numbers(self.expression, self.symbol)
        one = numba.njit("float64(float64)", **_options(self.expression))(function)

        @numba.cfunc("void(CPointer(float64), CPointer(float64), int64)")
        def block(x, out, count):  # type: ignore[no-untyped-def]
            for i in range(count):
                out[i] = one(x[i])

        return block

    @cached_property
    def is_called(self) -> bool:
        """Whether it is a function of Python, of which nothing but its values is known."""
        return bool(self.expression.has(Opaque))

    @cached_property
    def coefficients(self) -> NDArray[np.float64] | None:
        """Polynomial coefficients, lowest degree first; None if it is not a polynomial."""
        if not self.expression.is_polynomial(self.symbol):
            return None
        poly = sp.Poly(self.expression, self.symbol)
        if poly.degree() > MAX_POWER:
            raise HdicaError(
                f"formula {self.text!r} is of degree {poly.degree()} (at most {MAX_POWER})"
            )
        return np.array([float(c) for c in reversed(poly.all_coeffs())])

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Where the function or its slope may jump: where what is inside of a switch changes sign.

        Exact where that is a polynomial or one piece by piece, else to rounding.
        """
        try:
            return kinks_of(self.expression, self.symbol)
        except HdicaError as exc:
            raise HdicaError(f"formula {self.text!r}: {exc}") from None

    @cached_property
    def undefined_at(self) -> float | None:
        """A real number where the function is infinite or no number, or None."""
        try:
            found = singular_at(self.expression, self.symbol)
        except HdicaError as exc:
            raise HdicaError(f"formula {self.text!r}: {exc}") from None
        if found is not None or self.elastic_net is not None:
            # A search in a coefficient asks thousands of these: none is compiled to be looked at.
            return found
        x = np.linspace(-8, 8, 129)
        bad = x[~np.isfinite(self.value(x)) if self.is_called else np.isnan(self.value(x))]
        return float(bad[0]) if bad.size else None

    @cached_property
    def is_zero(self) -> bool:
        """Whether it vanishes everywhere."""
        if self.is_called:
            return not np.any(self.value(np.linspace(-8, 8, 129)))
        if has_branches(self.expression):
            return not _differs(self.expression, self.symbol) and vanishes(
                self.expression, self.symbol
            )
        if not self.expression.has(sp.Add):
            return bool(self.expression == 0)
        # Expanding takes long, and few functions need it.
        return not _differs(self.expression, self.symbol) and bool(sp.expand(self.expression) == 0)

    @cached_property
    def transcendental(self) -> int:
        """How many functions and roots an evaluation computes, beyond arithmetic and switches."""
        functions = [e for e in self.expression.atoms(sp.Function) if not isinstance(e, SWITCHES)]
        roots = [e for e in self.expression.atoms(sp.Pow) if not e.exp.is_integer]
        return len(functions) + len(roots)

    @cached_property
    def is_positive(self) -> bool:
        """Whether f > 0 follows for every argument >= 0, also where its value underflows to 0."""
        at = sp.Symbol("nonnegative", nonnegative=True)
        return not self.is_called and self.expression.subs(self.symbol, at).is_positive is True

    @cached_property
    def is_odd(self) -> bool:
        """Whether f(-x) = -f(x) holds identically; False of a function of Python."""
        if self.is_called:
            return False
        both = self.expression.subs(self.symbol, -self.symbol) + self.expression
        if has_branches(both):
            return not _differs(both, self.symbol) and self._is_odd_by_pieces()
        return both == 0 or (not _differs(both, self.symbol) and bool(sp.simplify(both) == 0))

    def _is_odd_by_pieces(self) -> bool:
        parts = pieces(self.expression, self.symbol)
        ends = [part.low for part in parts] + [np.inf]
        mirrored = all(a == -b for a, b in zip(ends, reversed(ends), strict=True))
        return mirrored and all(
            sp.simplify(left.expression.subs(self.symbol, -self.symbol) + right.expression) == 0
            for left, right in zip(parts, reversed(parts), strict=True)
        )

    @cached_property
    def elastic_net(self) -> tuple[float, float] | None:
        """(a, b) if the function is a*sign(x) + b*x, the slope of a|x| + b x^2/2, else None."""
        if self.is_called:
            return None
        x, jump = self.symbol, sp.sign(self.symbol)
        terms = self.expression.as_coefficients_dict()
        if terms.keys() <= {x, jump}:
            return float(terms[jump]), float(terms[x])
        one, two, three = (self.expression.subs(x, k) for k in (1, 2, 3))
        if _differs(one - 2 * two + three, x):
            return None
        expanded = sp.expand(self.expression)
        a, b = expanded.coeff(jump), expanded.coeff(x)
        if not (a.is_number and b.is_number) or sp.expand(expanded - a * jump - b * x) != 0:
            return None
        return float(a), float(b)

    @cached_property
    def slope_if_linear(self) -> float | None:
        """Beta if the function is beta*x, else None."""
        c = self.coefficients
        if c is None or c.size > 2 or c[0] != 0.0:
            return None
        return float(c[1]) if c.size == 2 else 0.0


def _differs(expression: sp.Expr, symbol: sp.Symbol) -> bool:
    """Whether a function is plainly not 0 at one of some numbers; if not, it may still be."""
    values = (expression.subs(symbol, at).evalf(20, maxn=100) for at in _TRIED)
    return any(value.is_finite and bool(abs(value) > _PLAIN) for value in values)


def _without_deltas(expression: sp.Expr) -> sp.Expr:
    """Drop the point masses that sympy writes for the derivative of a jump."""
    zero = expression.replace(lambda e: isinstance(e, sp.DiracDelta), lambda e: sp.Integer(0))
    return zero.doit()


def _options(expression: sp.Expr) -> dict[str, Any]:
    """Of a switch both branches are computed, and 1/0 in one of them is no error."""
    return {"error_model": "numpy"} if has_branches(expression) else {}


def _c_function(signature: str, expression: sp.Expr, *symbols: sp.Symbol) -> Any:
    import numba

    return numba.cfunc(signature, **_options(expression))(on_numbers(expression, *symbols))


def compiled_pair(expression: sp.Expr, u: sp.Symbol, c: sp.Symbol) -> Any:
    """A function of two variables, compiled by numba: a C function ``double f(double, double)``."""
    return _c_function("float64(float64, float64)", expression, u, c)


def vectorised(expression: sp.Expr, *symbols: sp.Symbol) -> Callable[..., NDArray[np.float64]]:
    """The function of an expression: one array for each symbol, broadcast against each other."""
    function = on_arrays(expression, *symbols)

    def value(*arguments: Any) -> NDArray[np.float64]:
        arrays = [np.asarray(a, dtype=float) for a in arguments]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.broadcast_to(np.asarray(function(*arrays), dtype=float), shape)

    return value


@dataclass(frozen=True)
class Pair:
    """A real function of two variables: what the user wrote, and the same for sympy."""

    text: str
    expression: sp.Expr
    symbols: tuple[sp.Symbol, ...]

    @cached_property
    def value(self) -> Callable[[ArrayLike, ArrayLike], NDArray[np.float64]]:
        """The function, on arrays that broadcast against each other."""
        return vectorised(self.expression, *self.symbols)


@lru_cache(maxsize=512)
def _parse(text: str, variable: str, constants: tuple[tuple[str, float], ...]) -> Formula:
    if is_word(text):
        symbol = sp.Symbol(variable, real=True)
        return Formula(text, known(text)(symbol), symbol)
    expression, (symbol,) = read_expression(text, (variable,), dict(constants))
    return Formula(text, expression, symbol)


def parse_formula(
    text: str, variable: str = "x", constants: Mapping[str, float] | None = None
) -> Formula:
    """Read a user's formula, such as ``"beta*sign(x)"``; numbers for other names are given.

    The word for a function of Python, see :mod:`hdica.ingredients.functions`, is read, too.
    """
    return _parse(str(text), variable, tuple(sorted((constants or {}).items())))
