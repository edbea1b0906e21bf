"""The one recording loop: advance a state from time to time and measure it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.streams import RUN
from hdica.ingredients.schedules import Schedule

Array = NDArray[np.float64]
Advance = Callable[[Array, Array], int]


def steps_of(times: Array, n: int) -> NDArray[np.int64]:
    """Step k = floor(t n) of each time, forgiving the rounding of decimal times.

    Parameters
    ----------
    times
        Shape (T,), in samples per dimension.
    n
        Dimension.
    """
    return np.floor(times * n * (1 + 1e-12) + 1e-9).astype(np.int64)


def _step_sizes(schedule: Schedule, n: int) -> Callable[[int, int], Array]:
    """``(first, count)`` -> step sizes of ``count`` steps from step ``first`` on."""
    if schedule.constant is not None:
        same = np.full(RUN, schedule.constant)
        return lambda first, count: same[:count]
    return lambda first, count: contiguous(schedule.value((first + np.arange(count)) / n))


def record(
    advance: Advance,
    measure: Callable[[], dict[str, float]],
    draw_source: Callable[[int], Array],
    schedule: Schedule,
    times: Array,
    n: int,
) -> tuple[dict[str, Array], str]:
    """Run a rule and measure it at the given times.

    Parameters
    ----------
    advance
        ``advance(source, tau)`` makes as many steps as the arrays are long, in place, and
        returns how many succeeded.
    measure
        Order parameters of the present state.
    draw_source
        ``draw_source(size)`` continues the stream of sources.
    schedule
        Step sizes; step k uses tau(k/n).
    times
        Shape (T,), increasing.
    n
        Dimension.

    Returns
    -------
    values
        One array of shape (T,) per order parameter, NaN after a divergence.
    diverged
        Empty, or the sentence that says at which step and time.
    """
    recorded: dict[str, Array] = {name: np.full(times.size, np.nan) for name in measure()}
    step_sizes = _step_sizes(schedule, n)
    done = 0
    source = np.empty(0)
    for index, target in enumerate(steps_of(times, n)):
        while done < target:
            offset = done % RUN
            if offset == 0:
                source = draw_source(RUN)
            stop = min(offset + int(target - done), RUN)
            made = advance(source[offset:stop], step_sizes(done, stop - offset))
            done += made
            if made < stop - offset:
                return recorded, f"the update was not finite at step {done} (t = {done / n:.6g})"
        for name, value in measure().items():
            recorded[name][index] = value
    return recorded, ""


def contiguous(values: Any) -> Array:
    """Writable float64 array in C order, as the compiled kernels take it."""
    return np.require(values, dtype=float, requirements=["C", "W"])
