"""Functionals: means over the entries of a user's formula in x and xi."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.ingredients.formula import Pair
from hdica.ingredients.grammar import read_expression
from hdica.ingredients.pieces import kinks_of
from hdica.ingredients.switches import SWITCHES

Array = NDArray[np.float64]


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
        if not self.expression.has(*SWITCHES):
            return ()
        values = xi.tolist() if self.expression.has(own) else xi.tolist()[:1]
        found: set[float] = set()
        for value in values:
            here = sp.sympify(self.expression.subs(own, sp.Rational(repr(float(value)))))
            if here.has(x):
                found |= set(kinks_of(here, x))
        return tuple(sorted(found))


@lru_cache(maxsize=512)
def _parse(text: str, constants: tuple[tuple[str, float], ...]) -> Functional:
    return Functional(text, *read_expression(text, ("xi", "x"), dict(constants)))


def parse_functional(text: str, constants: Mapping[str, float] | None = None) -> Functional:
    """Read a formula in ``x`` and ``xi``, such as ``"(x - xi)**2"``; numbers for other names."""
    return _parse(str(text), tuple(sorted((constants or {}).items())))
