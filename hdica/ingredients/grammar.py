"""The grammar of formulas: what a user's text may hold, read into a sympy expression.

A formula such as ``"x**3 - 0.1*x"`` is read by Python's tokenizer and parser into a syntax tree,
and each node of the tree is checked and translated by hand. No user text is ever evaluated.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from functools import reduce

import sympy as sp

from hdica.errors import HdicaError, closest
from hdica.ingredients.functions import is_word
from hdica.ingredients.switches import Choice, Largest

Condition = Callable[[sp.Expr, sp.Expr], sp.Expr]
"""The first of two values where the condition holds, else the second."""
MAX_COMPARISONS = 12
"""Each may double what is computed."""


def _both(first: Condition, second: Condition) -> Condition:
    return lambda yes, no: first(second(yes, no), no)


def _either(first: Condition, second: Condition) -> Condition:
    return lambda yes, no: first(yes, second(yes, no))


MAX_LENGTH = 300
MAX_DEPTH = 40
MAX_POWER = 32
MAX_DEGREE = 2 * MAX_POWER
"""Of a polynomial that is a product: its powers are bounded one by one."""
MAX_NUMBER = 1e12

_OF_SYMPY = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sinh", "cosh", "atan", "erf", "sign")
FUNCTIONS: dict[str, Callable[..., sp.Expr]]
FUNCTIONS = {**{name: getattr(sp, name) for name in _OF_SYMPY}, "abs": sp.Abs}
MORE: dict[str, Callable[..., sp.Expr]] = {
    "arctan": sp.atan,
    "relu": lambda x: Largest(x, sp.Integer(0)),
    # Without exp(-x), which overflows, and its slope with it.
    "sigmoid": lambda x: (1 + sp.tanh(x / 2)) / 2,
    "max": lambda *several: reduce(Largest, several),
    "min": lambda *several: -reduce(Largest, [-x for x in several]),
    "clip": lambda x, low, high: -Largest(-Largest(x, low), -high),
}
"""Functions that are made of others."""
ARGUMENTS = {"max": (2, 64), "min": (2, 64), "clip": (3, 3)}
"""How many a function takes at least and at most; all others take one."""
OPERATIONS = (
    "named constants, + - * / **, parentheses, "
    + ", ".join([*FUNCTIONS, *MORE])
    + ", where(x > 0, a, b), and comparisons with and, or, not"
)


WORDS = {
    **dict.fromkeys(("cube", "cubic", "pow3", "kurtosis"), "x**3"),
    **dict.fromkeys(("square", "quadratic", "skew"), "x**2"),
    **{"logcosh": "tanh(x)", "gauss": "x*exp(-x**2/2)", "linear": "x", "identity": "x"},
    **{"l1": "sign(x)", "lasso": "sign(x)", "l2": "x", "ridge": "x"},
    "e": "exp(1)",
    **{"maximum": "max(x, a)", "minimum": "min(x, a)", "absolute": "abs(x)", "fabs": "abs(x)"},
}
"""What is written for words by which others name functions."""
ROLES = {
    **{"x": "an entry of the estimate", "xi": "an entry of the feature", "n": "the dimension"},
    **{"u": "the projection of a sample on the estimate", "t": "the time"},
}
"""Names that formulas of other fields have, which are no constants."""
NO_NUMBERS = {"inf", "infinity", "oo", "nan"}
_FACTOR = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*(?=[A-Za-z_(])")
"""A number beside a name or a parenthesis: a product without its sign."""


def _hint(name: str) -> str:
    """What to write for the name of a function that is no function of the grammar; may be empty."""
    if name.lower() in WORDS:
        return f": write {WORDS[name.lower()]}"
    close = closest(name, [*FUNCTIONS, *MORE])
    if not close:
        return ""
    return f": write {close}(x)" if close == name else f": did you mean {close}(x)?"


class _Reader:
    """Translates a checked syntax tree into a sympy expression."""

    def __init__(
        self, text: str, variables: tuple[str, ...], constants: Mapping[str, float], unknown: str
    ) -> None:
        self.text, self.unknown = text, unknown
        self.symbols = {name: sp.Symbol(name, real=True) for name in variables}
        self.constants = constants
        self.depth, self.power = -1, 1.0

    def refuse(self, why: str) -> HdicaError:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        names = list(self.symbols)
        variables = f"variables {' and '.join(names)}" if len(names) > 1 else "variable"
        return HdicaError(
            f"formula {shown!r}: {why}; allowed are numbers, the {variables}, {OPERATIONS}"
        )

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refuse(f"it is nested deeper than {MAX_DEPTH} levels")

    def read(self, node: ast.expr) -> sp.Expr:
        self.enter()
        expression = self.translated(node)
        self.depth -= 1
        # Numbers stay small step by step: sympy would work on exp(exp(exp(9))) for ever.
        computed = not isinstance(node, ast.Constant) and not expression.free_symbols
        if computed and abs(self.value(expression)) > MAX_NUMBER:
            raise self.refuse(f"a number in it is larger than {MAX_NUMBER:g}")
        return expression

    def value(self, number: sp.Expr) -> float:
        try:
            return float(number)
        except (TypeError, OverflowError, ValueError):
            raise self.refuse("a number in it is not finite and real") from None

    def translated(self, node: ast.expr) -> sp.Expr:
        match node:
            case ast.Constant():
                return self.number(node.value)
            case ast.Name():
                return self.name(node.id)
            case ast.UnaryOp(op=ast.USub()):
                return -self.read(node.operand)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.read(node.operand)
            case ast.BinOp(op=ast.Pow()):
                return self.raised(node)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()) if self.condition(node):
                return self.as_value(node)
            case ast.BinOp():
                left = self.read(node.left)
                return self.combined(node.op, left, self.read(node.right))
            case ast.Call(func=ast.Name(id="where"), args=[test, above, below], keywords=[]):
                return self.switched(test, above, below)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.called(name, arguments)
            case ast.IfExp():
                return self.switched(node.test, node.body, node.orelse)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp() if self.condition(node):
                return self.as_value(node)
        named = node.func if isinstance(node, ast.Call) else node
        hint = _hint(named.attr) if isinstance(named, ast.Attribute) else ""
        if isinstance(node, ast.Call) and not isinstance(named, ast.Attribute):
            hint = _product(self.text)
        raise self.refuse(f"{self.written(node)} is not part of the grammar{hint}")

    def called(self, name: str, arguments: list[ast.expr]) -> sp.Expr:
        function = FUNCTIONS.get(name) or MORE.get(name)
        if name == "where":
            raise self.refuse("'where' takes a condition and two values")
        if function is None:
            number = name in self.symbols or name in self.constants
            raise self.refuse(
                f"{name!r} is not a function{_product(self.text)}"
                if number
                else f"{name!r} is not a known function{_hint(name)}"
            )
        least, most = ARGUMENTS.get(name, (1, 1))
        if not least <= len(arguments) <= most:
            wanted = f"{least} or more" if most > least else str(least)
            raise self.refuse(f"{name!r} takes {wanted} arguments, not {len(arguments)}")
        return function(*map(self.read, arguments))

    def as_value(self, node: ast.expr) -> sp.Expr:
        """1 where a condition holds, else 0."""
        return self.switched(node, ast.Constant(1), ast.Constant(0))

    def switched(self, test: ast.expr, above: ast.expr, below: ast.expr) -> sp.Expr:
        holds = self.condition(test)
        if holds is None:
            raise self.refuse(f"{self.written(test)} is not a condition such as x > 0")
        return holds(self.read(above), self.read(below))

    def inner(self, node: ast.expr) -> Condition | None:
        """A condition inside another one."""
        self.enter()
        holds = self.condition(node)
        self.depth -= 1
        return holds

    def condition(self, node: ast.expr) -> Condition | None:
        """A condition as a choice between two values; None of what is none.

        Comparisons are joined by ``and``, ``or`` and ``not``, or as NumPy joins them, by ``&``,
        ``|`` and ``~``.
        """
        match node:
            case ast.Compare():
                return self.compared(node)
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                holds = self.inner(node.operand)
                return None if holds is None else lambda yes, no: holds(no, yes)
            case ast.BoolOp(op=op, values=parts):
                join = _both if isinstance(op, ast.And) else _either
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as sign):
                parts = [node.left, node.right]
                join = _both if isinstance(sign, ast.BitAnd) else _either
            case _:
                return None
        joined = list(map(self.inner, parts))
        conditions = [condition for condition in joined if condition is not None]
        return reduce(join, conditions) if len(conditions) == len(joined) else None

    def compared(self, node: ast.Compare) -> Condition | None:
        if not all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
            return None
        values = list(map(self.read, (node.left, *node.comparators)))

        def holds(op: ast.cmpop, left: sp.Expr, right: sp.Expr) -> Condition:
            above = right - left if isinstance(op, ast.Lt | ast.LtE) else left - right
            weight = sp.Integer(int(isinstance(op, ast.LtE | ast.GtE)))
            return lambda yes, no: Choice(above, yes, no, weight)

        return reduce(_both, map(holds, node.ops, values, values[1:]))

    def written(self, node: ast.expr) -> str:
        """The part of the text that a node stands for."""
        text = ast.get_source_segment(self.text.strip(), node) or ast.unparse(node)
        return repr(text if len(text) <= 40 else text[:37] + "...")

    def number(self, value: object) -> sp.Expr:
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
        if name.lower() in NO_NUMBERS:
            raise self.refuse(f"{name!r} is no finite number")
        names = [*self.symbols, "pi", *self.constants]
        close = closest(name, names)
        hint = f": did you mean {close!r}?" if close else _hint(name)
        if not hint and name in ROLES:
            hint = f": {name} is {ROLES[name]}, on which this formula does not depend"
        hint = hint or f": {self.unknown.format(name)}"
        raise self.refuse(f"{name!r} is neither a variable nor a constant (known: {names}){hint}")

    def raised(self, node: ast.BinOp) -> sp.Expr:
        exponent = self.read(node.right)
        if exponent.free_symbols:
            raise self.refuse("an exponent must be a number")
        before = self.power
        self.power *= max(abs(self.value(exponent)), 1.0)
        if self.power > MAX_POWER:
            raise self.refuse(f"powers above {MAX_POWER} in all are not accepted")
        base = self.read(node.left)
        self.power = before
        return base**exponent

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
        sign = ast.unparse(ast.BinOp(ast.Name("a"), op, ast.Name("b"))).split()[1]
        raise self.refuse(f"the operator {sign} is not part of the grammar")


def _degree(expression: sp.Expr) -> int:
    """At most the degree of a polynomial, known without multiplying it out; 0 of all else."""
    match expression:
        case sp.Symbol():
            return 1
        case sp.Add():
            return max(map(_degree, expression.args))
        case sp.Mul():
            return sum(map(_degree, expression.args))
        case sp.Pow(exp=sp.Integer() as power) if power > 0:
            return _degree(expression.base) * int(power)
    return 0


def _tree(text: str) -> ast.Expression | None:
    """Syntax tree of the text, or None if it is no expression; nothing is evaluated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # such as "1if x": refused later, by name
        try:
            return ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def _product(text: str) -> str:
    """What to write where a sign of a product is missing; empty if that is not what is missing."""
    signed = _FACTOR.sub(r"\1*", re.sub(r"\)\s*\(", ")*(", text.strip()))
    functions = "|".join([*FUNCTIONS, *MORE, "where"])
    called = rf"(?<![\w.])(?!(?:{functions})\b)([A-Za-z_]\w*)\s*\("
    signed = re.sub(called, r"\1*(", signed)
    return f": write {signed}" if signed != text.strip() and _tree(signed) is not None else ""


def read_expression(
    text: str,
    variables: tuple[str, ...],
    constants: Mapping[str, float],
    unknown: str = "give it a number in constants, such as {{{0}: 0.2}}",
) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    """A text of the grammar as a sympy expression, and the symbols of its variables.

    ``unknown`` is what a sentence says of a name that is none of them.
    """
    reader = _Reader(text, variables, constants, unknown)
    if len(text) > MAX_LENGTH:
        raise reader.refuse(f"it has {len(text)} characters and at most {MAX_LENGTH} are read")
    tree = _tree(text)
    if tree is None:
        if re.search(r"(?<![=<>!])=(?!=)", text):
            raise reader.refuse("a constant gets its number in constants, such as {beta: 0.2}")
        raise reader.refuse(f"it is not a formula{_product(text)}")
    comparisons = (node.ops for node in ast.walk(tree) if isinstance(node, ast.Compare))
    if sum(map(len, comparisons)) > MAX_COMPARISONS:
        raise reader.refuse(f"more than {MAX_COMPARISONS} comparisons are not accepted")
    expression = reader.read(tree.body)
    if expression.has(sp.zoo, sp.nan, sp.oo, -sp.oo) or expression.is_extended_real is False:
        raise reader.refuse("it is not a finite real function")
    if max(map(_degree, sp.preorder_traversal(expression))) > MAX_DEGREE:
        raise reader.refuse(f"products of a degree above {MAX_DEGREE} are not accepted")
    return expression, tuple(reader.symbols.values())


def constants_used(text: str, variable: str = "x") -> frozenset[str]:
    """Names in a formula other than its variable, ``pi`` and the functions."""
    tree = None if len(text) > MAX_LENGTH or is_word(text) else _tree(text)
    if tree is None:
        return frozenset()
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called
    }
    return frozenset(names - {variable, "pi", *FUNCTIONS})
