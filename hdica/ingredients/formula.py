"""User formulas: a small whitelisted grammar, differentiated by sympy, compiled by numba.

A formula such as ``"x**3 - 0.1*x"`` is read by Python's tokenizer and parser into a syntax tree,
and each node of the tree is checked and translated by hand. No user text is ever evaluated.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.polys.polyerrors import PolynomialError
from sympy.polys.polytools import NoConvergence

from hdica.errors import HdicaError
from hdica.ingredients.singular import singular_at

MAX_LENGTH = 300
MAX_DEPTH = 40
MAX_POWER = 32
MAX_NUMBER = 1e12

FUNCTIONS: dict[str, Any] = {
    "exp": sp.exp,
    "log": sp.log,
    "sqrt": sp.sqrt,
    "sin": sp.sin,
    "cos": sp.cos,
    "tanh": sp.tanh,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "atan": sp.atan,
    "erf": sp.erf,
    "sign": sp.sign,
    "abs": sp.Abs,
}
OTHERS: dict[type[ast.operator], str] = {
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitAnd: "&",
}
OPERATIONS = "named constants, + - * / **, parentheses and " + ", ".join(FUNCTIONS)


class _Reader:
    """Translates a checked syntax tree into a sympy expression."""

    def __init__(
        self, text: str, variables: tuple[str, ...], constants: Mapping[str, float]
    ) -> None:
        self.text = text
        self.symbols = {name: sp.Symbol(name, real=True) for name in variables}
        self.constants = constants

    def refuse(self, why: str) -> HdicaError:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        names = list(self.symbols)
        variables = f"variables {' and '.join(names)}" if len(names) > 1 else "variable"
        return HdicaError(
            f"formula {shown!r}: {why}; allowed are numbers, the {variables}, {OPERATIONS}"
        )

    def read(self, node: ast.expr, depth: int, power: float) -> sp.Expr:
        if depth > MAX_DEPTH:
            raise self.refuse(f"it is nested deeper than {MAX_DEPTH} levels")
        found = self.translated(node, depth, power)
        # Numbers stay small step by step: sympy would work on exp(exp(exp(9))) for ever.
        computed = not isinstance(node, ast.Constant) and not found.free_symbols
        if computed and abs(self.value(found)) > MAX_NUMBER:
            raise self.refuse(f"a number in it is larger than {MAX_NUMBER:g}")
        return found

    def value(self, number: sp.Expr) -> float:
        try:
            return float(number)
        except (TypeError, OverflowError, ValueError):
            raise self.refuse("a number in it is not finite and real") from None

    def translated(self, node: ast.expr, depth: int, power: float) -> sp.Expr:
        match node:
            case ast.Constant():
                return self.number(node.value)
            case ast.Name():
                return self.name(node.id)
            case ast.UnaryOp(op=ast.USub()):
                return -self.read(node.operand, depth + 1, power)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.read(node.operand, depth + 1, power)
            case ast.BinOp(op=ast.Pow()):
                return self.raised(node, depth, power)
            case ast.BinOp():
                left = self.read(node.left, depth + 1, power)
                return self.combined(node.op, left, self.read(node.right, depth + 1, power))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
                if name not in FUNCTIONS:
                    raise self.refuse(f"{name!r} is not a known function")
                return FUNCTIONS[name](self.read(argument, depth + 1, power))
        raise self.refuse(f"{self.written(node)} is not part of the grammar")

    def written(self, node: ast.expr) -> str:
        """The part of the text that a node stands for."""
        text = ast.get_source_segment(self.text.strip(), node) or ast.unparse(node)
        return repr(text if len(text) <= 40 else text[:37] + "...")

    def number(self, value: Any) -> sp.Expr:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(f"{str(value)[:20]!r} is not a number")
        if abs(value) > MAX_NUMBER or not math.isfinite(value):
            raise self.refuse(f"the number {str(value)[:20]} is larger than {MAX_NUMBER:g}")
        # Decimals as exact fractions, so that 0.5*2 simplifies and derivatives stay short.
        return sp.Integer(value) if isinstance(value, int) else sp.Rational(repr(value))

    def name(self, name: str) -> sp.Expr:
        if name in self.symbols:
            return self.symbols[name]
        if name in self.constants:
            return self.number(float(self.constants[name]))
        if name == "pi":
            return sp.pi
        known = [*self.symbols, "pi", *self.constants]
        raise self.refuse(f"{name!r} is neither a variable nor a constant (known: {known})")

    def raised(self, node: ast.BinOp, depth: int, power: float) -> sp.Expr:
        exponent = self.read(node.right, depth + 1, power)
        if exponent.free_symbols:
            raise self.refuse("an exponent must be a number")
        size = abs(self.value(exponent))
        if power * max(size, 1.0) > MAX_POWER:
            raise self.refuse(f"powers above {MAX_POWER} in all are not accepted")
        return self.read(node.left, depth + 1, power * max(size, 1.0)) ** exponent

    def combined(self, op: ast.operator, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                if right == 0:
                    raise self.refuse("it divides by zero")
                return left / right
            case ast.BitXor():
                right_text = self.text.strip().replace("^", "**")
                raise self.refuse(f"powers are written with ** and not with ^: write {right_text}")
        raise self.refuse(f"the operator {OTHERS[type(op)]} is not part of the grammar")


@dataclass(frozen=True)
class Formula:
    """A real function of one variable, with its derivative, antiderivative and kinks.

    Parameters
    ----------
    text
        What the user wrote.
    expression
        The same as a sympy expression in one real symbol.
    symbol
        That symbol.
    """

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
    def antiderivative(self) -> Formula:
        """An antiderivative in closed form.

        Raises
        ------
        HdicaError
            If sympy finds none.
        """
        integral = sp.integrate(self.expression, self.symbol)
        if integral.has(sp.Integral):
            raise HdicaError(f"formula {self.text!r}: no closed antiderivative was found")
        return Formula(f"integral of {self.text}", integral, self.symbol)

    @cached_property
    def compiled(self) -> Any:
        """The scalar function, compiled by numba: a C function ``double f(double)``."""
        import numba

        return numba.cfunc("float64(float64)")(_scalar(self.expression, self.symbol))

    @cached_property
    def compiled_block(self) -> Any:
        """The C function ``phi(x, out, count)`` of ``count`` neighbours in memory."""
        import numba

        one = numba.njit("float64(float64)")(_scalar(self.expression, self.symbol))

        @numba.cfunc("void(CPointer(float64), CPointer(float64), int64)")
        def block(x, out, count):  # type: ignore[no-untyped-def]
            for i in range(count):
                out[i] = one(x[i])

        return block

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
        """Where the function or its slope jumps: the real zeros inside sign and abs."""
        points: set[float] = set()
        for atom in self.expression.atoms(sp.sign, sp.Abs):
            inside = atom.args[0]
            if not inside.is_polynomial(self.symbol):
                raise HdicaError(
                    f"formula {self.text!r}: the kinks of {atom} cannot be located; "
                    "allowed inside sign and abs are polynomials"
                )
            points |= {float(r) for r in self._roots(sp.Poly(inside, self.symbol)) if r.is_real}
        return tuple(sorted(points))

    def _roots(self, polynomial: sp.Poly) -> list[sp.Expr]:
        try:
            return list(polynomial.nroots(n=15))
        except NoConvergence:
            pass  # as happens at repeated roots
        try:
            return list(polynomial.sqf_part().nroots(n=15))
        except (NoConvergence, PolynomialError) as exc:
            raise HdicaError(f"formula {self.text!r}: its kinks cannot be located") from exc

    @cached_property
    def undefined_at(self) -> float | None:
        """A real number where the function is infinite or no number, or None."""
        found = singular_at(self.expression, self.symbol)
        if found is not None:
            return found
        x = np.linspace(-8, 8, 129)
        bad = x[np.isnan(self.value(x))]
        return float(bad[0]) if bad.size else None

    @cached_property
    def is_zero(self) -> bool:
        """Whether it vanishes everywhere."""
        return bool(sp.expand(self.expression) == 0)

    @cached_property
    def is_odd(self) -> bool:
        """Whether f(-x) = -f(x) holds identically."""
        mirrored = self.expression.subs(self.symbol, -self.symbol)
        return bool(sp.simplify(mirrored + self.expression) == 0)

    @cached_property
    def elastic_net(self) -> tuple[float, float] | None:
        """(a, b) if the function is a*sign(x) + b*x, the slope of a|x| + b x^2/2, else None."""
        x, jump = self.symbol, sp.sign(self.symbol)
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


def _without_deltas(expression: sp.Expr) -> sp.Expr:
    """Drop the point masses that sympy writes for the derivative of a jump."""
    zero = expression.replace(lambda e: isinstance(e, sp.DiracDelta), lambda e: sp.Integer(0))
    return zero.doit()


def _scalar(expression: sp.Expr, symbol: sp.Symbol) -> Callable[[float], float]:
    return sp.lambdify(symbol, sp.Float(1.0) * expression, modules="math", cse=True)


def vectorised(expression: sp.Expr, *symbols: sp.Symbol) -> Callable[..., NDArray[np.float64]]:
    """The function of an expression: one array for each symbol, broadcast against each other."""
    function = sp.lambdify(symbols, expression, modules=["scipy", "numpy"], cse=True)

    def value(*arguments: Any) -> NDArray[np.float64]:
        arrays = [np.asarray(a, dtype=float) for a in arguments]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.broadcast_to(np.asarray(function(*arrays), dtype=float), shape)

    return value


def _tree(text: str) -> ast.Expression | None:
    """Syntax tree of the text, or None if it is no expression; nothing is evaluated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # such as "1if x": refused later, by name
        try:
            return ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def read_expression(
    text: str, variables: tuple[str, ...], constants: Mapping[str, float]
) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    """A text of the grammar as a sympy expression, and the symbols of its variables.

    Parameters
    ----------
    text
        What the user wrote.
    variables
        Names of the variables.
    constants
        Numbers for the other names.

    Raises
    ------
    HdicaError
        If anything is outside the grammar; nothing of the text is evaluated then or ever.
    """
    reader = _Reader(text, variables, constants)
    if len(text) > MAX_LENGTH:
        raise reader.refuse(f"it has {len(text)} characters and at most {MAX_LENGTH} are read")
    tree = _tree(text)
    if tree is None:
        raise reader.refuse("it is not a formula")
    expression = reader.read(tree.body, 0, 1.0)
    if expression.has(sp.zoo, sp.nan, sp.oo, -sp.oo) or expression.is_extended_real is False:
        raise reader.refuse("it is not a finite real function")
    return expression, tuple(reader.symbols.values())


@lru_cache(maxsize=512)
def _parse(text: str, variable: str, constants: tuple[tuple[str, float], ...]) -> Formula:
    expression, (symbol,) = read_expression(text, (variable,), dict(constants))
    return Formula(text, expression, symbol)


def parse_formula(
    text: str, variable: str = "x", constants: Mapping[str, float] | None = None
) -> Formula:
    """Read a user's formula.

    Parameters
    ----------
    text
        The formula, for example ``"beta*sign(x)"``.
    variable
        Name of the variable.
    constants
        Numbers for the other names.

    Raises
    ------
    HdicaError
        If anything is outside the grammar; nothing of the text is evaluated then or ever.
    """
    return _parse(str(text), variable, tuple(sorted((constants or {}).items())))


def constants_used(text: str, variable: str = "x") -> frozenset[str]:
    """Names in a formula other than its variable, ``pi`` and the functions."""
    if len(text) > MAX_LENGTH:
        return frozenset()
    tree = _tree(text)
    if tree is None:
        return frozenset()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(names - {variable, "pi", *FUNCTIONS})
