"""Step sizes that follow what is observed, as kernels take them: rows of numbers, one a point."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.schedules import Schedule

AVERAGE, GAIN, POWER, SCALE, SIZES = range(5)


def rows_of(schedules: Sequence[Schedule], n: int) -> NDArray[np.float64] | None:
    """A row a schedule, shape (schedules, numbers); None of schedules in time."""
    seen = [one.observed for one in schedules if one.observed is not None]
    rows = [[0.0, one.rate / n, one.power, one.scale, *one.sizes] for one in seen]
    return np.array(rows, dtype=float) if rows else None


@numba.njit(error_model="numpy")
def observed(row, u):  # type: ignore[no-untyped-def]
    """The step size of a step, and what its sample shows is taken into the average of the row."""
    fourth = row[POWER] == 4.0
    # An average that is no number any more belongs to a point that has stopped.
    share = min(row[AVERAGE], 1.0) if row[AVERAGE] > 0.0 else 0.0
    last = row.size - SIZES - 1
    place = last * (math.sqrt(share) if fourth else share)
    low = min(int(place), last - 1)
    begin = row[SIZES + low]
    square = u * u
    shown = (square * square - 3.0 if fourth else square - 1.0) / row[SCALE]
    row[AVERAGE] += row[GAIN] * (shown - row[AVERAGE])
    return begin + (place - low) * (row[SIZES + low + 1] - begin)
