"""Whether so many of some 95 % intervals hold a value as would if it were right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
OPEN, CLEAR = 1e-2, 1e-4
"""Chances of so few below which a value is not said to agree, and is said to differ."""


def verdict_of(inside: NDArray[np.bool_]) -> str:
    """``agrees``, ``differs`` or ``undecided``; the intervals have independent errors.

    With few intervals one of them may miss by chance: six of six, or five of six, agree. Without
    any it is ``undecided``.
    """
    from scipy import stats

    if not inside.size:
        return "undecided"
    p = stats.binomtest(int(inside.sum()), inside.size, CONFIDENCE, "less").pvalue
    return "agrees" if p > OPEN else ("differs" if p < CLEAR else "undecided")
