"""The one recording loop: begin a state, advance it from time to time and observe it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.observe import Observation
from hdica.finite.streams import RUN, Stream
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start

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


def begin(prior: Prior, start: Start, n: int, stream: Stream) -> tuple[Array, Array]:
    """Feature xi and first estimate x, each of shape (n,), from the stream ``"start"``."""
    rng = stream("start")
    xi = prior.feature(rng, n)
    return contiguous(xi), contiguous(start.estimate(rng, xi))


def snapshot_rows(snapshots: tuple[float, ...], times: Array) -> dict[int, list[int]]:
    """Which snapshots are taken at each output time, forgiving the rounding of decimal times.

    Parameters
    ----------
    snapshots
        Times of the snapshots.
    times
        Shape (T,), the output times.

    Raises
    ------
    HdicaError
        If a snapshot is not one of the output times.
    """
    rows: dict[int, list[int]] = {}
    for row, snapshot in enumerate(snapshots):
        nearest = int(np.argmin(np.abs(times - snapshot)))
        if abs(times[nearest] - snapshot) > 1e-12 * abs(snapshot) + 1e-9:
            raise HdicaError(
                f"snapshots: t = {snapshot:g} is not allowed (a snapshot is one of the output "
                f"times; the nearest is {times[nearest]:g})"
            )
        rows.setdefault(nearest, []).append(row)
    return rows


def not_finite() -> str:
    """Why a kernel stops, unless it can stop for another reason."""
    return "the update was not finite"


def record(
    advance: Advance,
    observation: Observation,
    draw_source: Callable[[int], Array],
    schedule: Schedule,
    times: Array,
    n: int,
    why: Callable[[], str] = not_finite,
) -> tuple[dict[str, Array], str]:
    """Run a rule and observe it at the given times.

    Parameters
    ----------
    advance
        ``advance(source, tau)`` makes as many steps as the arrays are long, in place, and
        returns how many succeeded.
    observation
        What to read off the present state, at every time and at the snapshots.
    draw_source
        ``draw_source(size)`` continues the stream of sources.
    schedule
        Step sizes; step k uses tau(k/n).
    times
        Shape (T,), increasing.
    n
        Dimension.
    why
        ``why()``: what happened, after a step that did not succeed.

    Returns
    -------
    values
        One array of shape (T,) per number read at every time and of shape (snapshots, ...) per
        array read at the snapshots, NaN after a divergence; and what does not change.
    diverged
        Empty, or the sentence that says at which step and time.

    Raises
    ------
    HdicaError
        If a snapshot is not one of the times.
    """
    rows = snapshot_rows(observation.snapshots, times)
    numbers = {name: np.full(times.size, np.nan) for name in observation.at_times()}
    arrays = {
        name: np.full((len(observation.snapshots), *value.shape), np.nan)
        for name, value in observation.at_snapshots().items()
    }
    recorded = numbers | arrays | observation.once
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
                return recorded, f"{why()} at step {done} (t = {done / n:.6g})"
        for name, number in observation.at_times().items():
            numbers[name][index] = number
        if index in rows:
            for name, array in observation.at_snapshots().items():
                arrays[name][rows[index]] = array
    return recorded, ""


def contiguous(values: Any) -> Array:
    """Writable float64 array in C order, as the compiled kernels take it."""
    return np.require(values, dtype=float, requirements=["C", "W"])
