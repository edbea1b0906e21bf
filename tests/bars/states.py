"""Reference steady states of online ICA: roots and folds of tau T(Q), by scanning every overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from tests.bars.tables import Table

_SCAN = np.sin(np.linspace(0.004, math.pi / 2 - 1e-5, 700))
_NEAR_ONE = np.concatenate([_SCAN, 1 - np.geomspace(4e-11, 4e-15, 9)])
"""A source is nearly found where f nearly vanishes at its values."""
_KNOWN = 1e3
"""How often its error the learning must be where an extremum counts."""


@dataclass(frozen=True)
class Found:
    """A number, how well it is known, and at which overlap."""

    value: float
    error: float
    q: float
    stable: bool = False


def step_size_at(table: Table, q: float) -> float:
    """T(Q) = -2 <(c - Q u) f>/(Q <f**2>), with which Q is a steady state."""
    pull, power = table(q)
    return float(-2 * pull / (q * power))


def _known(table: Table, q: float) -> float:
    """Relative error of T."""
    off, (pull, power) = table.error(q), table(q)
    return float(off[0] / abs(pull) + off[1] / power) + 4e-16


def _sides(table: Table) -> tuple[int, ...]:
    return (1,) if table.parities is not None else (1, -1)


def folds(table: Table) -> list[Found]:
    """Local extrema of T > 0; those of rounding are left out."""
    found = []
    for side in _sides(table):
        t = np.array([step_size_at(table, side * q) for q in _SCAN])
        turns = np.flatnonzero((t[1:-1] - t[:-2]) * (t[2:] - t[1:-1]) < 0) + 1
        for k in turns[t[turns] > 0]:
            peak = -1 if t[k] > t[k - 1] else 1
            best = minimize_scalar(
                lambda q, peak=peak, side=side: peak * step_size_at(table, side * q),
                bounds=(_SCAN[k - 1], _SCAN[k + 1]), method="bounded", options={"xatol": 1e-10},
            )  # fmt: skip
            q = side * float(best.x)
            if abs(table(q)[0]) > _KNOWN * table.error(q)[0]:
                value = step_size_at(table, q)
                found.append(Found(value, value * _known(table, q), q))
    return found


def roots(table: Table, tau: float) -> list[Found]:
    """Overlaps other than 0 at which nothing moves."""

    def excess(q: float) -> float:
        return step_size_at(table, q) - tau

    found = []
    for side in (1, -1):
        over = np.array([excess(side * q) for q in _NEAR_ONE])
        for k in np.flatnonzero(over[:-1] * over[1:] < 0):
            low, high = sorted((side * _NEAR_ONE[k], side * _NEAR_ONE[k + 1]))
            q = float(brentq(excess, low, high, xtol=1e-15, rtol=8.9e-16))
            step = min(1e-6 * (1 - abs(q)) + 1e-9, 0.3 * (1 - abs(q)))
            slope = (excess(q + step) - excess(q - step)) / (2 * step)
            off = (tau * _known(table, q)) / abs(slope) + 2e-16
            # dQ/dt has the sign of Q (T - tau).
            found.append(Found(q, off, q, stable=slope * q < 0))
    return found
