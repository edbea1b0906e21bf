"""All zeros of a function of one variable whose slope is known, tangential pairs included."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[Array, Array]]
"""Values and slopes at an array of points."""
_GENERATIONS = 12
_ROUNDING = 1e-12


def _refined(function: Function, nodes: Array) -> tuple[Array, Array, Array]:
    """Nodes between which the cubic through values and slopes describes the function.

    Intervals are halved until the cubic predicts the value half-way to a small part of the
    smallest value nearby: then it has the zeros that the function has.
    """
    x = np.unique(nodes)
    f, s = function(x)
    open_ = np.ones(x.size - 1, dtype=bool)
    for _ in range(_GENERATIONS):
        left = np.flatnonzero(open_)
        if left.size == 0:
            break
        right, width = left + 1, np.diff(x)[left]
        middle = (x[left] + x[right]) / 2
        value, slope = function(middle)
        cubic = (f[left] + f[right]) / 2 + width * (s[left] - s[right]) / 8
        least = np.minimum(np.minimum(np.abs(f[left]), np.abs(f[right])), np.abs(value))
        rough = np.abs(value - cubic) > 0.02 * least + _ROUNDING
        rough &= width > 1e-9
        x = np.insert(x, right, middle)
        f, s = np.insert(f, right, value), np.insert(s, right, slope)
        open_ = np.zeros(x.size - 1, dtype=bool)
        # Every halved interval has moved to the right by the insertions before it.
        moved = left[rough] + np.flatnonzero(rough)
        open_[moved] = open_[moved + 1] = True
    return x, f, s


def _between(function: Function, a: float, b: float, which: int) -> float:
    """Zero of the value (0) or the slope (1) between two points of opposite sign.

    Evaluated alone, a point may have the other sign: then the value there is rounding.
    """
    if a == b:
        return a

    @cache  # the method begins with both ends again
    def one(x: float) -> float:
        return float(function(np.array([x]))[which][0])

    at_a, at_b = one(a), one(b)
    if at_a * at_b > 0:
        return a if abs(at_a) < abs(at_b) else b
    return float(
        scipy.optimize.brentq(one, a, b, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=200)
    )


def find_zeros(function: Function, nodes: Array) -> Array:
    """Every zero between the first and the last node, by increasing position.

    ``function`` gives values and slopes, continuous between the nodes; its corners must be among
    them. Where it only touches zero to rounding, the point of contact is one.
    """
    x, f, s = _refined(function, nodes)
    found = list(x[f == 0.0])
    for i, j in pairwise(range(x.size)):
        if f[i] * f[j] < 0:
            found.append(_between(function, x[i], x[j], 0))
        elif f[i] * s[i] < 0 < f[j] * s[j]:
            touch = _between(function, x[i], x[j], 1)
            value = float(function(np.array([touch]))[0][0])
            if value * f[i] < 0:
                found.append(_between(function, x[i], touch, 0))
                found.append(_between(function, touch, x[j], 0))
            elif abs(value) < _ROUNDING:
                found.append(touch)
    return np.array(sorted(set(found)))
