"""When a curve that is known at some times first goes below a value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def first_below(time: Array, values: Array, level: float) -> Array:
    """First time at which values are at or below a level, in the units of ``time``.

    Between two output times the logarithm of the value is taken as linear in time, the value itself
    where it or the level is not above 0: a run that went below and came back between two output
    times is not seen there. Infinite where it never does, NaN where the curve is not known.

    Parameters
    ----------
    time
        Increasing, shape (times,).
    values
        Shape (..., times).
    level
        The value.
    """
    below = values <= level
    never = ~below.any(axis=-1)
    after = below.argmax(axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(values, k[..., None], -1)[..., 0] for k in (before, after))
    part = np.where(after > 0, _part(high, low, level), 0.0)
    found = time[before] + part * (time[after] - time[before])
    known = np.isfinite(values).all(axis=-1)
    return np.where(known, np.where(never, math.inf, found), math.nan)


def _part(high: Array, low: Array, level: float) -> Array:
    """Share of the way from above the level to at or below it at which the level is met."""
    with np.errstate(divide="ignore", invalid="ignore"):
        straight = (high - level) / (high - low)
        curved = np.log(high / level) / np.log(high / low) if level > 0 else straight
    return np.where((low > 0) & (level > 0), curved, straight)
