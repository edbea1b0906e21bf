"""User formulas: read by a small grammar, differentiated by sympy, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, TypeVar

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from hdica.errors import HdicaError
from hdica.ingredients import switches
from hdica.ingredients.functions import Opaque, is_word, opaque_of
from hdica.ingredients.grammar import MAX_POWER, read_expression
from hdica.ingredients.plain import Array, Function

T = TypeVar("T")
Constants = Mapping[str, float] | None
"""Numbers for names in a formula."""
_TRIED = (sp.Rational(1, 3), sp.Rational(-7, 5), sp.Rational(19, 7))
_PLAIN = 1e-20
"""A value of this size, computed to twenty digits, is not 0."""


class CFunction(Protocol):
    """A function that numba has compiled for callers in C, at an address."""

    @property
    def address(self) -> int:
        """Where it is in memory."""


@dataclass(frozen=True)
class Formula:
    """A real function of one variable by a user's formula, with its derivative and kinks."""

    text: str
    expression: sp.Expr
    symbol: sp.Symbol

    @cached_property
    def value(self) -> Callable[[ArrayLike], Array]:
        """The function itself, on arrays of any shape."""
        return switches.vectorised(self.expression, self.symbol)

    @cached_property
    def derivative(self) -> Formula:
        """Its derivative away from kinks (there the mean of both sides, as sign(0) = 0)."""
        slope = sp.diff(self.expression, self.symbol)
        # Without the point masses that sympy writes for the derivative of a jump.
        slope = slope.replace(
            lambda e: isinstance(e, sp.DiracDelta), lambda e: sp.Integer(0)
        ).doit()
        return Formula(f"d/d{self.symbol}({self.text})", slope, self.symbol)

    @cached_property
    def compiled(self) -> CFunction:
        """The scalar function, compiled by numba: a C function ``double f(double)``."""
        return _c_function("float64(float64)", self.expression, self.symbol)

    @cached_property
    def compiled_pair(self) -> CFunction:
        """The same as a C function ``double f(double u, double c)`` of u alone."""
        return compiled_pair(self.expression, self.symbol, sp.Dummy("c"))

    @cached_property
    def compiled_block(self) -> CFunction:
        """The C function ``phi(x, out, count)`` of ``count`` neighbours in memory."""
        import numba

        function = switches.on_numbers(self.expression, self.symbol)
        scalar = numba.njit("float64(float64)", **_options(self.expression))(function)

        @numba.cfunc("void(CPointer(float64), CPointer(float64), int64)")
        def block(x, out, count):  # type: ignore[no-untyped-def]
            for i in range(count):
                out[i] = scalar(x[i])

        return block

    def _read(self, of: Callable[[sp.Expr, sp.Symbol], T]) -> T:
        try:
            return of(self.expression, self.symbol)
        except HdicaError as exc:
            raise HdicaError(f"formula {self.text!r}: {exc}") from None

    @cached_property
    def is_called(self) -> bool:
        """Whether it is a function of Python, of which nothing but its values is known."""
        return bool(self.expression.has(Opaque))

    @cached_property
    def coefficients(self) -> Array | None:
        """Polynomial coefficients, lowest degree first; None if it is not a polynomial."""
        if not self.expression.is_polynomial(self.symbol):
            return None
        poly = sp.Poly(self.expression, self.symbol)
        if poly.degree() > MAX_POWER:
            raise HdicaError(
                f"formula {self.text!r} is of degree {poly.degree()} (at most {MAX_POWER})"
            )
        return np.array(poly.all_coeffs()[::-1], dtype=float)

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Where the function or its slope may jump: where what is inside of a switch changes sign.

        Exact where that is a polynomial or one piece by piece, else to rounding.
        """
        return self._read(switches.kinks_of)

    @cached_property
    def undefined_at(self) -> float | None:
        """A real number where the function is infinite or no number, or None."""
        point = self._read(singular_at)
        if point is not None or self.elastic_net is not None:
            # A search in a coefficient asks thousands of these: none is compiled to be looked at.
            return point
        x = np.linspace(-8, 8, 129)
        bad = x[~np.isfinite(self.value(x)) if self.is_called else np.isnan(self.value(x))]
        return float(bad[0]) if bad.size else None

    @cached_property
    def is_zero(self) -> bool:
        """Whether it vanishes everywhere."""
        if self.is_called:
            return not np.any(self.value(np.linspace(-8, 8, 129)))
        if switches.has_branches(self.expression):
            return not _differs(self.expression, self.symbol) and switches.vanishes(
                self.expression, self.symbol
            )
        if not self.expression.has(sp.Add):
            return bool(self.expression == 0)
        # Expanding takes long, and few functions need it.
        return not _differs(self.expression, self.symbol) and bool(sp.expand(self.expression) == 0)

    @cached_property
    def transcendental(self) -> int:
        """How many functions and roots an evaluation computes, beyond arithmetic and switches."""
        functions = [
            e for e in self.expression.atoms(sp.Function) if not isinstance(e, switches.SWITCHES)
        ]
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
        if switches.has_branches(both):
            return not _differs(both, self.symbol) and self._is_odd_by_pieces()
        return both == 0 or (not _differs(both, self.symbol) and bool(sp.simplify(both) == 0))

    def _is_odd_by_pieces(self) -> bool:
        parts = switches.pieces(self.expression, self.symbol)
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
        first, second, third = (self.expression.subs(x, k) for k in (1, 2, 3))
        if _differs(first - 2 * second + third, x):
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


def _options(expression: sp.Expr) -> dict[str, str]:
    """Of a switch both branches are computed, and 1/0 in one of them is no error."""
    return {"error_model": "numpy"} if switches.has_branches(expression) else {}


def _c_function(signature: str, expression: sp.Expr, *symbols: sp.Symbol) -> CFunction:
    import numba

    return numba.cfunc(signature, **_options(expression))(switches.on_numbers(expression, *symbols))


def compiled_pair(expression: sp.Expr, u: sp.Symbol, c: sp.Symbol) -> CFunction:
    """A function of two variables, compiled by numba: a C function ``double f(double, double)``."""
    return _c_function("float64(float64, float64)", expression, u, c)


@dataclass(frozen=True)
class Pair:
    """A real function of two variables: what the user wrote, and the same for sympy."""

    text: str
    expression: sp.Expr
    symbols: tuple[sp.Symbol, ...]

    @cached_property
    def value(self) -> Callable[[ArrayLike, ArrayLike], Array]:
        """The function, on arrays that broadcast against each other."""
        return switches.vectorised(self.expression, *self.symbols)


@lru_cache(maxsize=512)
def _parse(text: str, variable: str, constants: tuple[tuple[str, float], ...]) -> Formula:
    if is_word(text):
        symbol = sp.Symbol(variable, real=True)
        return Formula(text, opaque_of(text)(symbol), symbol)
    expression, (symbol,) = read_expression(text, (variable,), dict(constants))
    return Formula(text, expression, symbol)


def parse_formula(text: str, variable: str = "x", constants: Constants = None) -> Formula:
    """Read a user's formula, such as ``"beta*sign(x)"``; numbers for other names are given.

    The word for a function of Python, see :mod:`hdica.ingredients.functions`, is read, too.
    """
    return _parse(str(text), variable, tuple(sorted((constants or {}).items())))


class Functional(Pair):
    """A real function of one entry xi of the feature and the same entry x of the estimate.

    Its mean over the entries is the integral against the empirical measure of (xi, x), eq. (2)
    of Wang and Lu 2016.
    """

    def mean(self, xi: Array, x: Array) -> float:
        """Mean over the entries, both of shape (n,); NaN where it is no real number."""
        return float(np.mean(self.value(xi, x)))

    def cuts(self, xi: Array) -> tuple[float, ...]:
        """Where it or its slope may jump in x at any of these entries of the feature."""
        own, x = self.symbols
        if not self.expression.has(*switches.SWITCHES):
            return ()
        values = xi.tolist() if self.expression.has(own) else xi.tolist()[:1]
        points: set[float] = set()
        for value in values:
            section = sp.sympify(self.expression.subs(own, sp.Rational(repr(float(value)))))
            if section.has(x):
                points |= set(switches.kinks_of(section, x))
        return tuple(sorted(points))


@lru_cache(maxsize=512)
def _parse_functional(text: str, constants: tuple[tuple[str, float], ...]) -> Functional:
    return Functional(text, *read_expression(text, ("xi", "x"), dict(constants)))


def parse_functional(text: str, constants: Constants = None) -> Functional:
    """Read a formula in ``x`` and ``xi``, such as ``"(x - xi)**2"``; numbers for other names."""
    return _parse_functional(str(text), tuple(sorted((constants or {}).items())))


Guards = tuple[tuple[sp.Expr, int], ...]
"""Conditions of branches: an expression, and the sign that it has where the branch is taken."""
_FAR = np.geomspace(8.0, 1e3, 225)[1:]
GRID = np.concatenate([-_FAR[::-1], np.linspace(-8, 8, 1025), _FAR])
"""Where functions that are no polynomials are looked at; it holds 0 and the half-integers."""
_ROUNDED = 1e-12
"""Smaller values have no sign that could be trusted: 1 + tanh(x) far to the left."""
_TOUCHES = 1e-13
"""A minimum this small, relative to what is around it, is a zero."""
_CLOSE = 1e-9
"""How far from a zero, relative to its size, a branch counts as taken there."""
MANY = 16
"""Places at which a zero is looked for more closely."""
_SPLIT = (sp.Abs, sp.sign, sp.tanh, sp.sinh, sp.atan, sp.erf)
"""Functions that vanish exactly where their argument does."""


def singular_at(expression: sp.Expr, symbol: sp.Symbol) -> float | None:
    """A real number at which an expression is infinite or no real number, nearest to 0; or None.

    What would cancel is not cancelled: sin(x)/x is no number at 0 as it is computed.
    """
    points: list[float] = []
    for inner, strict, positive, guards in _conditions(expression):
        is_open = _is_open(guards, symbol)
        zeros = _zeros(inner, symbol)
        points += [zero for zero in zeros if is_open(zero, _CLOSE)] if strict else []
        if positive and inner.is_nonnegative is not True:
            points += [x for x in _negative(inner, symbol, zeros) if is_open(x, 0.0)]
    return min(points, key=lambda x: (abs(x), x)) if points else None


def _is_open(guards: Guards, symbol: sp.Symbol) -> Callable[[float, float], bool]:
    """Whether the branches that hold an expression are taken at a number, or just beside it."""
    sides = [(switches.vectorised(decided, symbol), side) for decided, side in guards]

    def is_open(x: float, width: float) -> bool:
        near = x + width * max(1.0, abs(x)) * np.array([-1.0, 0.0, 1.0])
        rows = [np.ones(3, dtype=bool), *(side * decided(near) >= 0 for decided, side in sides)]
        return bool(np.all(rows, axis=0).any())

    return is_open


def _conditions(node: sp.Expr, guards: Guards = ()) -> Iterator[tuple[sp.Expr, bool, bool, Guards]]:
    """What must not vanish (second), and what must not be negative (third), where it is taken."""
    if isinstance(node, sp.log):
        yield node.args[0], True, True, guards
    elif isinstance(node, sp.Pow) and node.base.free_symbols and node.exp.is_number:
        whole, divided = bool(node.exp.is_integer), bool(node.exp.is_negative)
        if divided or not whole:
            yield node.base, divided, not whole, guards
    if isinstance(node, switches.Choice):
        decided, above, below, _ = node.args
        yield from _conditions(decided, guards)
        yield from _conditions(above, (*guards, (decided, 1)))
        yield from _conditions(below, (*guards, (decided, -1)))
        return
    for argument in node.args:
        yield from _conditions(argument, guards)


def _zeros(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Real zeros of an expression that is itself finite."""
    if not expression.free_symbols:
        return [0.0] if expression == 0 else []
    if expression.is_nonzero or isinstance(expression, sp.exp | sp.cosh):
        return []
    if switches.has_branches(expression) and not isinstance(expression, sp.Mul):
        zeros: list[float] = []
        for piece in switches.pieces(expression, symbol):
            inside = [min(max(0.0, piece.low), piece.high)]
            if piece.expression != 0:
                inside = _zeros(piece.expression, symbol)
            zeros += [zero for zero in inside if piece.low <= zero <= piece.high]
        return zeros
    if isinstance(expression, sp.Mul):
        return [zero for part in expression.args for zero in _zeros(part, symbol)]
    if expression.is_polynomial(symbol):
        # Rounding takes multiple roots away or parts them, and pi is rounded all the same.
        rounded = not switches.is_exact(sp.Poly(expression, symbol))
        return switches.real_zeros(expression, symbol) + (
            _scanned(expression, symbol) if rounded else []
        )
    if isinstance(expression, _SPLIT) or (
        isinstance(expression, sp.Pow) and expression.exp.is_positive
    ):
        return _zeros(expression.args[0], symbol)
    return _scanned(expression, symbol)


def _scanned(expression: sp.Expr, symbol: sp.Symbol) -> list[float]:
    """Zeros seen on the grid: exact ones, changes of sign and minima that touch 0."""
    function = switches.vectorised(expression, symbol)
    y = function(GRID)
    exact = _inner(np.flatnonzero(y == 0))
    zeros = []
    for x in GRID[exact].tolist():
        # 1 + tanh(5 x) is 0 at -8 by rounding alone.
        value = expression.subs(symbol, sp.Rational(x)).evalf(30, maxn=400)
        zeros += [x] if abs(value) < 1e-100 else []
    with np.errstate(all="ignore"):
        size = np.abs(y)
        real = np.isfinite(size[1:] + size[:-1]) & (np.minimum(size[1:], size[:-1]) > _ROUNDED)
        crosses = np.flatnonzero(real & (y[1:] * y[:-1] < 0))
        low = np.flatnonzero((size[1:-1] <= size[:-2]) & (size[1:-1] < size[2:]) & (size[1:-1] > 0))
    zeros += [_narrowed(function, GRID[k], GRID[k + 1])[0] for k in _inner(crosses)]
    for k in _inner(low + 1):
        at, least = _narrowed(function, GRID[k - 1], GRID[k + 1])
        if least <= _TOUCHES * float(size[k - 1 : k + 2].max()):
            zeros.append(at)
    return zeros


def _inner(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The places of the grid that are nearest to 0: few are enough to refuse a formula."""
    return places[np.argsort(np.abs(GRID[places]), kind="stable")][:MANY]


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
    return x[switches.vectorised(expression, symbol)(x) < 0].tolist()
