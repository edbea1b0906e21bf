"""Updates of a rule of K estimates and M features, as formulas of the projections of a sample.

A rule moves x_k to x_k + n^-1/2 F_k y + n^-1 psi(x_k). F_k is a function of u_1 ... u_K, where
u_k = y.x_k/sqrt(n), of v_1 ... v_M, the components of the sample along the features, of further
random numbers of the sample, of the norms sqrt(x_k.x_k/n) and of the time t.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import sympy as sp

from hdica.errors import HdicaError
from hdica.ingredients import switches
from hdica.ingredients.formula import CFunction
from hdica.ingredients.grammar import read_expression
from hdica.ingredients.plain import Array

NORMALISATIONS = ("none", "norm", "symmetric", "gram-schmidt")
"""What a rule does to its estimates after each step; kernels take the place in this list."""
RESERVED = ("u", "v", "norm", "label", "t")
"""Names that a rule has a meaning for, alone or with the number of an estimate or a feature."""
UNKNOWN = "give it a number in constants, {{{0}: 0.2}}, or a law in noise, {{{0}: gaussian}}"
"""What to do about a name that a formula does not know."""
_MOST_SWITCHES = 6
"""Switches in an expression up to which it is taken apart into their branches."""
_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_MONOTONE = (sp.tanh, sp.sinh, sp.atan, sp.erf)
"""Functions that have the sign of their argument."""


def numbered(name: str, count: int) -> tuple[str, ...]:
    """The name of one of ``count`` variables: ``u`` alone, or ``u1``, ``u2``, ..."""
    return (name,) if count == 1 else tuple(f"{name}{k}" for k in range(1, count + 1))


@dataclass(frozen=True)
class Update:
    """F_1 ... F_K of a rule.

    ``expressions`` has one for each estimate, with the label written out; ``u``, ``v``, ``noise``
    and ``norm`` are its variables, ``t`` the time; ``constants`` have the values ``numbers``.
    """

    expressions: tuple[sp.Expr, ...]
    u: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    noise: tuple[sp.Symbol, ...]
    norm: tuple[sp.Symbol, ...]
    t: sp.Symbol
    constants: tuple[sp.Symbol, ...] = ()
    numbers: tuple[float, ...] = field(default=(), compare=False)

    @property
    def random(self) -> tuple[sp.Symbol, ...]:
        """The variables over which averages are taken: u, v and the noise."""
        return (*self.u, *self.v, *self.noise)

    @property
    def arguments(self) -> tuple[sp.Symbol, ...]:
        """All variables in the order in which compiled code takes them."""
        return (*self.random, *self.norm, self.t, *self.constants)

    def fixed(self, norms: Sequence[float], t: float) -> Array:
        """The arguments after the random ones: norms, time and constants."""
        return np.array([*norms, t, *self.numbers], dtype=float)

    @cached_property
    def written_out(self) -> tuple[sp.Expr, ...]:
        """The expressions with their constants as numbers."""
        pairs = zip(self.constants, self.numbers, strict=True)
        values = {symbol: sp.Rational(repr(value)) for symbol, value in pairs}
        return tuple(one.subs(values) for one in self.expressions)

    @cached_property
    def used(self) -> frozenset[sp.Symbol]:
        """The variables that occur."""
        return frozenset().union(*(one.free_symbols for one in self.expressions))

    @property
    def uses_norms(self) -> bool:
        """Whether a norm occurs."""
        return not self.used.isdisjoint(self.norm)

    @property
    def uses_time(self) -> bool:
        """Whether the time occurs."""
        return self.t in self.used

    @cached_property
    def transcendental(self) -> int:
        """How many functions and roots an evaluation computes, beyond arithmetic and switches."""
        functions = {
            e
            for one in self.expressions
            for e in one.atoms(sp.Function)
            if not isinstance(e, switches.SWITCHES)
        }
        return len(functions)

    def over(self, name: str) -> tuple[Update, float] | None:
        """The update divided by a constant, and that; None unless it is a product with it."""
        symbol = sp.Symbol(name, real=True)
        if symbol not in self.constants:
            return None
        products = [
            sp.factor_terms(one).as_independent(symbol, as_Add=False) for one in self.expressions
        ]
        if any(factor != symbol for _, factor in products):
            return None
        pairs = zip(self.constants, self.numbers, strict=True)
        numbers = {str(one): number for one, number in pairs}
        number = numbers.pop(name)
        left = tuple(one for one in self.constants if one != symbol)
        rest = tuple(one for one, _ in products)
        return replace(
            self, expressions=rest, constants=left, numbers=tuple(numbers.values())
        ), number

    @cached_property
    def degree(self) -> int | None:
        """Total degree in u, v and the noise; None of what is no polynomial in them."""
        return degree_in(self.expressions, self.random)

    @cached_property
    def factors(self) -> tuple[sp.Expr, ...]:
        """Expressions across whose zeros an F_k or its slope may jump, each without a product."""
        switching = (one.atoms(*switches.SWITCHES) for one in self.expressions)
        parts = {
            part
            for switch in frozenset().union(*switching)
            for part in _factors(switches.decides(switch))
            if not part.free_symbols.isdisjoint(self.random)
        }
        return tuple(sorted(parts, key=str))

    @cached_property
    def forms(self) -> tuple[sp.Expr, ...]:
        """Affine expressions in u, v and the noise of which all F are functions."""
        every = (form for one in self.expressions for form in _forms(one, self.random))
        return tuple(sorted(set(every), key=str))

    @property
    def address(self) -> int:
        """Where the C function ``void F(double *arguments, double *values, int64 count)`` is.

        Arguments are of shape (arguments, count), values of shape (K, count).
        """
        return _compiled(self).address


def values_of(update: Update, arguments: Array) -> Array:
    """F_1 ... F_K, shape (K, N), at arguments of shape (arguments, N), by the compiled function."""
    rows = np.ascontiguousarray(arguments, dtype=float)
    out = np.empty((len(update.expressions), rows.shape[1]))
    writer(update, rows, out)()
    return out


def writer(update: Update, rows: Array, out: Array) -> Callable[[], None]:
    """Writes F, shape (K, N), at the present arguments, shape (arguments, N), by compiled code.

    Both are contiguous, and stay where they are as long as it is used.
    """
    compiled, places = _CALL(update.address), (rows.ctypes.data, out.ctypes.data)
    return lambda: compiled(*places, rows.shape[1])


def degree_in(expressions: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]) -> int | None:
    """Highest total degree of polynomials in some symbols; None where one is no polynomial."""
    if not all(one.is_polynomial(*symbols) for one in expressions):
        return None
    return max(0, *(int(sp.Poly(one, *symbols).total_degree()) for one in expressions))


@lru_cache(maxsize=128)
def _compiled(update: Update) -> CFunction:
    """The compiled function, the same for all values of the constants."""
    import numba

    many, outputs = len(update.arguments), len(update.expressions)
    row = sp.DeferredVector("row")
    places = {symbol: row[k] for k, symbol in enumerate(update.arguments)}
    rows = tuple(one.subs(places) for one in update.expressions)
    function = numba.njit(error_model="numpy")(switches.several_on_numbers(rows, row))

    @numba.cfunc("void(CPointer(float64), CPointer(float64), int64)", error_model="numpy")
    def values(arguments, out, count):  # type: ignore[no-untyped-def]
        row = np.empty(many)
        for i in range(count):
            for k in range(many):
                row[k] = arguments[k * count + i]
            made = function(row)
            for k in range(outputs):
                out[k * count + i] = made[k]

    return values


def _factors(expression: sp.Expr) -> Iterator[sp.Expr]:
    """Factors of an expression, one of which vanishes where it does."""
    for factor in sp.Mul.make_args(sp.factor(expression)):
        part = factor
        while isinstance(part, _MONOTONE) or (isinstance(part, sp.Pow) and part.exp.is_positive):
            part = part.args[0]
        inside = sorted(part.atoms(*switches.SWITCHES), key=str)
        if isinstance(part, sp.Mul):
            yield from _factors(part)
        elif inside and len(inside) <= _MOST_SWITCHES:
            # It vanishes where it does with one branch or the other.
            for branch in switches.branches_of(inside[0]):
                yield from _factors(part.subs(inside[0], branch))
        elif part.free_symbols:
            yield -part if part.could_extract_minus_sign() else part


def _forms(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> Iterator[sp.Expr]:
    """The largest affine parts of an expression."""
    if expression.free_symbols.isdisjoint(symbols):
        return
    parts = sp.Add.make_args(expression)
    affine = [one for one in parts if degree_in([one], symbols) == 1]
    if affine:
        yield sp.Add(*affine)
    for part in parts:
        if part not in affine:
            for one in part.args:
                yield from _forms(one, symbols)


def _read(
    text: str, variables: Sequence[str], constants: Mapping[str, float]
) -> tuple[sp.Expr, dict[str, sp.Symbol]]:
    """An expression with its constants as symbols, but for those in exponents; and the symbols."""
    names = (*variables, *constants)
    try:
        expression, symbols = read_expression(text, names, {})
    except HdicaError:
        expression, symbols = read_expression(text, tuple(variables), constants, UNKNOWN)
    return expression, {str(symbol): symbol for symbol in symbols}


def parse_update(
    texts: Sequence[str],
    label: str = "",
    features: int = 1,
    noise: Sequence[str] = (),
    constants: Mapping[str, float] | None = None,
) -> Update:
    """Read the formulas of an update, one an estimate.

    Parameters
    ----------
    texts
        Formulas in ``u`` (``u1``, ``u2``, ... of several estimates), ``v`` (``v1``, ... of several
        features), the names of the noise, ``norm``, ``label`` and ``t``. Where all are equal they
        may name ``u`` and ``norm`` of their own estimate.
    label
        A formula in the v, the noise and t; empty if there is none.
    features
        M.
    noise
        Names of further random numbers of a sample.
    constants
        Numbers for other names.

    Raises
    ------
    HdicaError
        If a formula is none; the sentence says what is allowed.
    """
    pairs = tuple(sorted((constants or {}).items()))
    return _parsed(tuple(texts), label, features, tuple(noise), pairs)


def descent(f: str, features: int, constants: Mapping[str, float]) -> Update:
    """F = -t f(u) of one estimate, f a formula in ``x``: a step size stands in for the time."""
    return _descent(f, features, tuple(sorted(constants.items())))


@lru_cache(maxsize=512)
def _descent(f: str, features: int, pairs: tuple[tuple[str, float], ...]) -> Update:
    constants = dict(pairs)
    expression, symbols = _read(f, ("x",), constants)
    read = parse_update(("u",), "", features)
    used = {str(one): one for one in expression.free_symbols}
    # Under names that no variable can have.
    own = {name: sp.Symbol(f"constant {name}", real=True) for name in constants if name in used}
    swaps = {used[name]: symbol for name, symbol in own.items()} | {symbols["x"]: read.u[0]}
    return replace(
        read,
        expressions=(-read.t * expression.subs(swaps, simultaneous=True),),
        constants=tuple(own.values()),
        numbers=tuple(float(constants[name]) for name in own),
    )


@lru_cache(maxsize=512)
def _parsed(
    texts: tuple[str, ...],
    label: str,
    features: int,
    noise: tuple[str, ...],
    constants: tuple[tuple[str, float], ...],
) -> Update:
    values, many = dict(constants), len(texts)
    u, v, norm = numbered("u", many), numbered("v", features), numbered("norm", many)
    try:
        target = _read(label, (*v, *noise, "t"), values)[0] if label else None
    except HdicaError as exc:
        raise HdicaError(f"label: {exc}", ["label", "noise", "constants"]) from None
    own = ("u", "norm") if many > 1 and len(set(texts)) == 1 else ()
    variables = (*u, *v, *noise, *norm, *own, *(("label",) if label else ()), "t")
    expressions = []
    for k, text in enumerate(texts):
        try:
            expression, symbols = _read(text, variables, values)
        except HdicaError as exc:
            missing = not label and re.search(r"\blabel\b", text)
            why = "no label is given, as a formula in v and the noise" if missing else str(exc)
            raise HdicaError(f"update: {why}", ["update", "label", "constants"]) from None
        swaps = {symbols[name]: symbols[f"{name}{k + 1}"] for name in own}
        if target is not None:
            swaps[symbols["label"]] = target
        expressions.append(expression.subs(swaps) if swaps else expression)

    def symbols_of(names: Sequence[str]) -> tuple[sp.Symbol, ...]:
        return tuple(sp.Symbol(name, real=True) for name in names)

    groups = (symbols_of(u), symbols_of(v), symbols_of(noise), symbols_of(norm))
    used = frozenset().union(*(one.free_symbols for one in expressions))
    free = [name for name in values if sp.Symbol(name, real=True) in used]
    numbers = tuple(float(values[name]) for name in free)
    return Update(tuple(expressions), *groups, sp.Symbol("t", real=True), symbols_of(free), numbers)
