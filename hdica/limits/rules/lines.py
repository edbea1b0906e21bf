"""An update along one variable of its sample, the others as they are: changes of sign and poles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from hdica.ingredients import switches
from hdica.ingredients.plain import Array
from hdica.ingredients.update import Update
from hdica.limits.rules.points import Variable

LOOKS = 65
"""Places on a line at which changes of sign are looked for."""
_HALVINGS, _MOST_ROOTS = 45, 6
_POLES, _BESIDE, _GROWTH = 16, (1e-4, 1e-7), 0.98
"""Lines on which poles are looked for, distances at which F is seen, and the least exponent."""


@dataclass(frozen=True, eq=False)
class Line:
    """Lines through a sample: u = ``overlaps`` v + ``across`` e and v = ``scales`` c."""

    update: Update
    variables: Sequence[Variable]
    overlaps: Array
    across: Array
    scales: Array
    constant: Array
    """The arguments that are not random."""

    def along(
        self, function: Callable[..., Array], whole: Array, variable: int
    ) -> Callable[[Array], Array]:
        """A function of one variable, of shape (rows, any), at the others, (variables, rows)."""
        k, m = self.overlaps.shape

        def value(x: Array) -> Array:
            base = np.repeat(whole[:, :, None], x.shape[1], axis=2)
            base[variable] = x
            v = self.scales[:, None, None] * base[:m]
            u = np.einsum("km,mrx->krx", self.overlaps, v)
            u += np.einsum("kj,jrx->krx", self.across, base[m : m + k])
            return function(*u, *v, *base[m + k :], *(np.full(x.shape, c) for c in self.constant))

        return value

    def pole(self, power: int) -> sp.Expr | None:
        """A denominator near whose zeros the mean of a power of F is infinite; None if none is."""
        if not any(e.exp.is_negative for one in self.update.expressions for e in one.atoms(sp.Pow)):
            return None
        shares = np.random.default_rng(LOOKS).random((len(self.variables), _POLES))
        pairs = zip(self.variables, shares, strict=True)
        whole = np.array([variable.quantile(share) for variable, share in pairs])
        for one in self.update.expressions:
            powers = [e for e in one.atoms(sp.Pow) if e.exp.is_negative and e.base.free_symbols]
            bases = sorted({e.base for e in powers}, key=str)
            for base, (j, variable) in itertools.product(bases, enumerate(self.variables)):
                # |x| has the zeros of x.
                zero = base.args[0] if isinstance(base, sp.Abs) else base
                denominator, force = (
                    self.along(switches.vectorised(formula, *self.update.arguments), whole, j)
                    for formula in (zero, one)
                )
                with np.errstate(all="ignore"):
                    looks = variable.looks(LOOKS)
                    found = [one(denominator, looks, _POLES) for one in (sign_changes, touched)]
                    places = np.concatenate(found, axis=1)
                    places[~variable.surrounds(places)] = np.nan
                    for side in (1.0, -1.0):
                        far, near = (np.abs(force(places + side * gap)) for gap in _BESIDE)
                        growth = np.log(near / far) / math.log(_BESIDE[0] / _BESIDE[1])
                        if np.any((growth >= _GROWTH / power) | np.isinf(near)):
                            return zero
        return None


def sign_changes(value: Callable[[Array], Array], looks: Array, rows: int) -> Array:
    """Where a function of a row and a number changes sign, NaN where it does less often."""
    grid = np.broadcast_to(looks, (rows, looks.size))
    signs = np.sign(value(grid))
    row, column = np.nonzero(signs[:, 1:] * signs[:, :-1] < 0)
    place = np.arange(row.size) - np.searchsorted(row, row)
    near = place < _MOST_ROOTS
    row, column, place = row[near], column[near], place[near]
    places = np.full((rows, _MOST_ROOTS), np.nan)
    low, high = grid[row, column].copy(), grid[row, column + 1].copy()
    side = signs[row, column]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        whole = np.full((rows, _MOST_ROOTS), 0.0)
        whole[row, place] = middle
        same = np.sign(value(whole)[row, place]) == side
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    places[row, place] = (low + high) / 2
    return places


def touched(value: Callable[[Array], Array], looks: Array, rows: int) -> Array:
    """Where the size of a function of a row and a number is least, shape (rows, 1)."""
    size = np.abs(value(np.broadcast_to(looks, (rows, looks.size))))
    least = np.clip(np.argmin(size, axis=1), 1, looks.size - 2)
    low, high = looks[least - 1][:, None], looks[least + 1][:, None]
    for _ in range(_HALVINGS):
        one, other = (2 * low + high) / 3, (low + 2 * high) / 3
        left = np.abs(value(one)) < np.abs(value(other))
        low, high = np.where(left, low, one), np.where(left, other, high)
    return (low + high) / 2
