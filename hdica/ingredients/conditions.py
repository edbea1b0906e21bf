"""Conditions in formulas: comparisons and what joins them, as choices between two values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from itertools import pairwise

import sympy as sp

from hdica.ingredients.switches import Choice

Condition = Callable[[sp.Expr, sp.Expr], sp.Expr]
"""The first of two values where the condition holds, else the second."""
MAX_COMPARISONS = 12
"""Each may double what is computed."""


def _greater(s: sp.Expr, weight: int) -> Condition:
    return lambda yes, no: Choice(s, yes, no, sp.Integer(weight))


def _both(one: Condition, other: Condition) -> Condition:
    return lambda yes, no: one(other(yes, no), no)


def _either(one: Condition, other: Condition) -> Condition:
    return lambda yes, no: one(yes, other(yes, no))


def _opposite(one: Condition) -> Condition:
    return lambda yes, no: one(no, yes)


def _compared(node: ast.Compare, side: Callable[[ast.expr], sp.Expr]) -> Condition | None:
    if not all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
        return None
    values = [side(one) for one in (node.left, *node.comparators)]
    found = []
    for op, (left, right) in zip(node.ops, pairwise(values), strict=True):
        above = right - left if isinstance(op, ast.Lt | ast.LtE) else left - right
        found.append(_greater(above, int(isinstance(op, ast.LtE | ast.GtE))))
    return reduce(_both, found)


def condition_of(
    node: ast.expr,
    side: Callable[[ast.expr], sp.Expr],
    inner: Callable[[ast.expr], Condition | None],
) -> Condition | None:
    """The condition that a part of a formula is, or None.

    ``side`` reads what is compared, ``inner`` the conditions that are joined: by ``and``, ``or``
    and ``not``, or as NumPy joins them, by ``&``, ``|`` and ``~``.
    """
    match node:
        case ast.Compare():
            return _compared(node, side)
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            found = inner(node.operand)
            return None if found is None else _opposite(found)
        case ast.BoolOp(op=op, values=values):
            return _joined([inner(one) for one in values], isinstance(op, ast.And))
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as op):
            sides = [inner(node.left), inner(node.right)]
            return _joined(sides, isinstance(op, ast.BitAnd))
    return None


def _joined(found: list[Condition | None], both: bool) -> Condition | None:
    conditions = [one for one in found if one is not None]
    if len(conditions) < len(found):
        return None
    return reduce(_both if both else _either, conditions)
