"""The finest lengths of a density, which its cells must resolve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula

Array = NDArray[np.float64]
_REACH = 4.0
"""Where most of a law with E[x^2] = 1 lies."""
_SIDE = 1e-9


@dataclass(frozen=True)
class Lengths:
    """What the regularizer contributes.

    ``jump`` is half its largest: near it the density decays like exp(-B jump |x|/g); ``slope`` its
    largest positive one elsewhere, which narrows peaks as 2h does; ``own`` its own length, range
    over slope, infinite for a function that is linear by pieces.
    """

    jump: float
    slope: float
    own: float

    def finest(self, g: float, strength: float, h2: float) -> float:
        """The finest length at one time."""
        steep, curved = strength * self.jump, h2 + strength * self.slope
        found = [self.own]
        if steep > 0:
            found.append(g / steep)
        if curved > 0:
            found.append(math.sqrt(g / curved))
        return min(found)


@lru_cache(maxsize=64)
def lengths(phi: Formula) -> Lengths:
    """Lengths of a regularizer, by sampling it between its kinks."""
    kinks = [k for k in phi.kinks if abs(k) < _REACH]
    sides = np.array(kinks)
    jumps = np.abs(phi.value(sides + _SIDE) - phi.value(sides - _SIDE)) / 2
    slope, own = 0.0, math.inf
    edges = np.array([-_REACH, *kinks, _REACH])
    for low, high in pairwise(edges.tolist()):
        x = np.linspace(low + _SIDE, high - _SIDE, 2001)
        value = phi.value(x)
        rise = np.diff(value) / np.diff(x)
        slope = max(slope, float(rise.max()))
        if np.ptp(rise) > 1e-6 * (np.abs(rise).max() + 1e-300):
            own = min(own, float(np.ptp(value) / np.abs(rise).max()))
    return Lengths(float(jumps.max(initial=0.0)), slope, own)
