"""Pushes: how far an estimate moves along a sample, F = tau G(u, c), by a user's formula.

A projected rule is x <- x + n^-1/2 F(u, c) y + n^-1 psi(x) with |x|^2 = n, where u = x.y/sqrt(n) is
what the estimate sees of the sample y, and c is the sample's component along the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Pair, compiled_pair, vectorised
from hdica.ingredients.grammar import read_expression
from hdica.ingredients.switches import SWITCHES

Array = NDArray[np.float64]


class Push(Pair):
    """G(u, c) of a rule, smooth in u and c."""

    coefficients: ClassVar[None] = None

    @cached_property
    def slope(self) -> Callable[[ArrayLike, ArrayLike], Array]:
        """Its derivative with respect to u."""
        return vectorised(sp.diff(self.expression, self.symbols[0]), *self.symbols)

    @cached_property
    def compiled_pair(self) -> Any:
        """The function, compiled by numba: a C function ``double G(double u, double c)``."""
        return compiled_pair(self.expression, *self.symbols)


@lru_cache(maxsize=512)
def _parse(text: str, constants: tuple[tuple[str, float], ...]) -> Push:
    expression, symbols = read_expression(text, ("u", "c"), dict(constants))
    if expression.atoms(*SWITCHES):
        raise HdicaError(
            f"push = {text!r} is not allowed (a smooth function: no sign, abs, max, min, clip, "
            "relu, where or comparison)"
        )
    return Push(text, expression, symbols)


def parse_push(text: str, constants: Mapping[str, float] | None = None) -> Push:
    """Read a formula in ``u`` and ``c``, such as ``"tanh(c - u)"``; numbers for other names."""
    return _parse(str(text), tuple(sorted((constants or {}).items())))
