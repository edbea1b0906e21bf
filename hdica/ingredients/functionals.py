"""Functionals: means over the entries of a user's formula in x and xi."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from hdica.ingredients.formula import vectorised
from hdica.ingredients.grammar import read_expression

Array = NDArray[np.float64]
VARIABLES = ("xi", "x")


@dataclass(frozen=True)
class Functional:
    """A real function of one entry xi of the feature and the same entry x of the estimate.

    Its mean over the entries is the integral against the empirical measure of (xi, x), eq. (2)
    of Wang and Lu 2016.

    Parameters
    ----------
    text
        What the user wrote.
    expression
        The same as a sympy expression.
    symbols
        Its symbols for xi and x.
    """

    text: str
    expression: sp.Expr
    symbols: tuple[sp.Symbol, ...]

    @cached_property
    def value(self) -> Callable[[ArrayLike, ArrayLike], Array]:
        """``value(xi, x)``: the function on arrays that broadcast against each other."""
        return vectorised(self.expression, *self.symbols)

    def mean(self, xi: Array, x: Array) -> float:
        """Mean over the entries, both of shape (n,); NaN where it is no real number."""
        return float(np.mean(self.value(xi, x)))

    def undefined_at(self, xi: ArrayLike) -> tuple[float, float] | None:
        """A pair (xi, x), abs(x) <= 8, at which the function is no real number, or None.

        Parameters
        ----------
        xi
            Values of xi to try, shape (values,): those that a prior has.
        """
        first = np.atleast_1d(np.asarray(xi, dtype=float))
        x = np.linspace(-8, 8, 129)
        rows, columns = np.nonzero(np.isnan(self.value(first[:, None], x)))
        return (float(first[rows[0]]), float(x[columns[0]])) if rows.size else None


@lru_cache(maxsize=512)
def _parse(text: str, constants: tuple[tuple[str, float], ...]) -> Functional:
    return Functional(text, *read_expression(text, VARIABLES, dict(constants)))


def parse_functional(text: str, constants: Mapping[str, float] | None = None) -> Functional:
    """Read a user's functional.

    Parameters
    ----------
    text
        A formula in ``x`` and ``xi``, for example ``"(x - xi)**2"``.
    constants
        Numbers for the other names.
    """
    return _parse(str(text), tuple(sorted((constants or {}).items())))
