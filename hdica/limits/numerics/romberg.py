"""Extrapolation of a sequence of runs, each with halved cells and steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_COLUMNS = 3
"""Powers that are eliminated at most."""


def romberg(levels: Array) -> tuple[Array, Array]:
    """Best value and its error, from runs whose error is a h^2 + b h^3 + c h^4 + ...

    All powers from the second occur: those in the step in time because the method is of order two
    and not symmetric, the odd ones in the cells because a smooth start meets a kink. Levels, two at
    least, are of shape (levels, ...), coarsest first.

    The best is the last entry of the table, its error twice the larger of its differences to the
    entry before it in its row and, divided by eight, to the last entry of the row above. The first
    alone estimates the error of the entry before, which the best one beats where the powers are
    those above; the factor two is for where they are not quite.
    """
    rows = [[levels[0]]]
    for value in levels[1:]:
        row = [value]
        for power, coarser in enumerate(rows[-1][:_COLUMNS], start=2):
            row.append(row[-1] + (row[-1] - coarser) / (2**power - 1))
        rows.append(row)
    best = rows[-1][-1]
    across = np.abs(best - rows[-1][-2])
    return best, 2 * np.maximum(across, np.abs(best - rows[-2][-1]) / 8)
