"""What rules are made of: contrasts G(s) that ICA makes extreme, and pushes G(u, c).

A push is how far an estimate moves along a sample: a projected rule is
x <- x + n^-1/2 F(u, c) y + n^-1 psi(x) with |x|^2 = n and F = tau G, where u = x.y/sqrt(n) is what
the estimate sees of the sample y, and c is the sample's component along the feature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from hdica.errors import HdicaError
from hdica.ingredients.formula import (
    CFunction,
    Constants,
    Formula,
    Pair,
    compiled_pair,
    parse_formula,
)
from hdica.ingredients.grammar import read_expression
from hdica.ingredients.plain import Array, Function
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.ingredients.switches import SWITCHES, vectorised

NAMED = {
    "exp": "-exp(-s**2/2)",
    "logcosh": "log(cosh(s))",
    "kurtosis": "s**4 - 3",
    "he4": "s**4 - 6*s**2 + 3",
}
"""Contrasts by name: Hyvarinen and Oja 2000, and the fourth Hermite polynomial."""
SPELLINGS = {"He4": "he4", "kurt": "kurtosis"}
_END, _NODES = 14.0, 32
"""Beyond, the standard normal law has less than 1e-43."""


@dataclass(frozen=True)
class Contrast:
    """A contrast G of one variable s with its first two derivatives, g = G' and g'.

    ``name`` is one of :data:`NAMED`, or empty for a formula; ``formula`` is G as one in ``s``.
    """

    name: str
    formula: Formula

    @cached_property
    def value(self) -> Function:
        """G on arrays of any shape."""
        return _log_cosh if self.name == "logcosh" else self.formula.value

    @cached_property
    def slope(self) -> Function:
        """G' = g on arrays of any shape."""
        return np.tanh if self.name == "logcosh" else self.formula.derivative.value

    @cached_property
    def curvature(self) -> Function:
        """G'' = g' on arrays of any shape."""
        return _sech2 if self.name == "logcosh" else self.formula.derivative.derivative.value

    @cached_property
    def gaussian_mean(self) -> float:
        """E G(s) for a standard normal s: what a Gaussian direction has."""
        return self.hermite(0)

    def hermite(self, k: int) -> float:
        """Hermite coefficient c_k = E G(s) He_k(s) for a standard normal s."""
        kinks = (k for k in self.formula.kinks if abs(k) < _END)
        edges = np.unique([*np.linspace(-_END, _END, 57), *kinks])
        points, weights = panel_nodes(edges, _NODES)
        polynomial = np.polynomial.hermite_e.hermeval(points, [0.0] * k + [1.0])
        law = weights * np.exp(-points * points / 2) / math.sqrt(2 * math.pi)
        return dot(law * polynomial, self.value(points))


def _log_cosh(s: Array) -> Array:
    size = np.abs(s)
    return size + np.log1p(np.exp(-2 * size)) - math.log(2)


def _sech2(s: Array) -> Array:
    # 1 - tanh^2 has no digits where it is small.
    small = np.exp(-np.abs(s))
    return (2 * small / (1 + small * small)) ** 2


@lru_cache(maxsize=128)
def _contrast(name: str, formula: Formula) -> Contrast:
    bad = formula.undefined_at
    if bad is not None:
        raise HdicaError(
            f"contrast = {formula.text!r} is not allowed (it is infinite or no real number at "
            f"s = {bad:.6g}; allowed are functions that are finite at every real s)"
        )
    slope = formula.derivative
    for kink in formula.kinks:
        if jumps(slope.value, kink):
            raise HdicaError(
                f"contrast = {formula.text!r} is not allowed (its slope jumps at s = {kink:.6g}; "
                "allowed are functions with a continuous slope)"
            )
    if slope.derivative.is_zero:
        raise HdicaError(
            f"contrast = {formula.text!r} is not allowed (its slope is constant, so that no "
            "direction differs from another)"
        )
    return Contrast(name, formula)


def jumps(slope: Function, at: float) -> bool:
    """Whether a slope has two values at a point; one that is steep there, such as s^(1/2), has not.

    What is left of a jump closer to the point is all of it, of a steep rise little.
    """
    size = max(1.0, abs(at))

    def across(h: float) -> tuple[float, float]:
        left, right = slope(at + size * np.array([-h, h]))
        return abs(float(right - left)), abs(float(left))

    (wide, height), (narrow, _) = across(1e-9), across(1e-13)
    return wide > 1e-6 * (1 + height) and narrow > wide / 2


def make_contrast(spec: str, constants: Constants = None) -> Contrast:
    """The contrast of a name or a formula in ``s``, with numbers for its named constants.

    ``"exp"`` for -exp(-s^2/2), ``"logcosh"`` for log cosh s, ``"kurtosis"`` for s^4 - 3, ``"he4"``
    for s^4 - 6 s^2 + 3, or a formula such as ``"log(cosh(2*s))/2"``. Refused if it is no such
    function, is not finite everywhere, its slope jumps or is constant.
    """
    name = SPELLINGS.get(spec, spec)
    text = NAMED.get(name, spec)
    try:
        formula = parse_formula(text, "s", {} if name in NAMED else constants)
    except HdicaError as exc:
        raise HdicaError(f"contrast: {exc}", exc.fields) from exc
    return _contrast(name if name in NAMED else "", formula)


class Push(Pair):
    """G(u, c) of a rule, smooth in u and c."""

    coefficients = None

    @cached_property
    def slope(self) -> Callable[[ArrayLike, ArrayLike], Array]:
        """Its derivative with respect to u."""
        return vectorised(sp.diff(self.expression, self.symbols[0]), *self.symbols)

    @cached_property
    def compiled_pair(self) -> CFunction:
        """The function, compiled by numba: a C function ``double G(double u, double c)``."""
        return compiled_pair(self.expression, *self.symbols)


@lru_cache(maxsize=512)
def _parse_push(text: str, constants: tuple[tuple[str, float], ...]) -> Push:
    expression, symbols = read_expression(text, ("u", "c"), dict(constants))
    if expression.atoms(*SWITCHES):
        raise HdicaError(
            f"push = {text!r} is not allowed (a smooth function: no sign, abs, max, min, clip, "
            "relu, where or comparison)"
        )
    return Push(text, expression, symbols)


def parse_push(text: str, constants: Constants = None) -> Push:
    """Read a formula in ``u`` and ``c``, such as ``"tanh(c - u)"``; numbers for other names."""
    return _parse_push(str(text), tuple(sorted((constants or {}).items())))
