"""A race: contestants take turns at the same work in one process, and what counts is the ratio.

On a shared machine the speed of everything drifts by tens of per cent, so a contestant's time is
divided by ours of the same repeat, and the ratios' median and quartiles are reported.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PROGRAMS = ("gcc",)
"""What :func:`missing` looks for on the path; every other name is a Python module."""
SPOKEN = {
    "jax": "JAX",
    "numba": "Numba",
    "pde": "py-pde",
    "fipy": "FiPy",
    "pycont": "PyCont-Lite",
}


@dataclass(frozen=True)
class Contestant:
    """One way to do the work of a case.

    Parameters
    ----------
    name
        ``"hdica"``, ``"NumPy loop"``, ``"C kernel"``, ...
    run
        One timed call. The harness makes one untimed call first, so that nothing is imported or
        compiled on the clock.
    work
        Units of work in one call: coordinate-steps, points, solutions.
    error
        Largest error against the reference, where a benchmark compares at equal error.
    note
        What a reader has to know to judge the comparison.
    """

    name: str
    run: Callable[[], Any]
    work: float = 1.0
    error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """What one contestant needed in one case.

    Parameters
    ----------
    benchmark, case, contestant
        Who did what.
    unit
        Of ``median``, ``low`` and ``high``: ``"ns per coordinate-step"``, ``"ms per solution"``.
    median, low, high
        Time per unit of work: median and quartiles over the repeats.
    ratio, ratio_low, ratio_high
        Contestant's time over ours, per unit of work and in the same repeat: median and
        quartiles. Above 1 we are faster.
    error, note
        As in :class:`Contestant`.
    """

    benchmark: str
    case: str
    contestant: str
    unit: str
    median: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    error: float | None = None
    note: str = ""


def race(
    benchmark: str,
    case: str,
    contestants: Sequence[Contestant],
    *,
    unit: str,
    scale: float,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Row]:
    """Time the contestants in turns.

    Parameters
    ----------
    benchmark, case
        What is raced.
    contestants
        Ours is the first. They take turns within a repeat, in reversed order in every other
        one, so that a machine that slows down steadily favours nobody.
    unit, scale
        Of the times: seconds times ``scale`` per unit of work.
    repeats
        Number of timed calls of each.
    clock
        Seconds, from any origin.
    """
    for contestant in contestants:
        contestant.run()
    times = np.empty((len(contestants), repeats))
    for repeat in range(repeats):
        turns = list(enumerate(contestants))
        for row, contestant in reversed(turns) if repeat % 2 else turns:
            started = clock()
            contestant.run()
            times[row, repeat] = scale * (clock() - started) / contestant.work
    return compare(benchmark, case, contestants, times, unit)


def compare(
    benchmark: str, case: str, contestants: Sequence[Contestant], times: Array, unit: str
) -> list[Row]:
    """Rows of one case from times per unit of work, shape (contestants, repeats)."""
    return [
        Row(
            benchmark,
            case,
            contestant.name,
            unit,
            *_quartiles(own),
            *_quartiles(own / times[0]),
            contestant.error,
            contestant.note,
        )
        for contestant, own in zip(contestants, times, strict=True)
    ]


def _quartiles(values: Array) -> tuple[float, float, float]:
    """Median, lower and upper quartile."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return float(median), float(low), float(high)


def missing(*modules_or_programs: str) -> str:
    """Empty if all are there, else the sentence that names those that are not."""
    absent = [
        SPOKEN.get(name, name)
        for name in modules_or_programs
        if (shutil.which(name) if name in PROGRAMS else importlib.util.find_spec(name)) is None
    ]
    verb = "are" if len(absent) > 1 else "is"
    return f"{' and '.join(absent)} {verb} not installed" if absent else ""


def present(rival: str, *needs: str) -> bool:
    """Whether a rival can take part; if not, say why."""
    why = missing(*needs)
    if why:
        print(f"left out: {rival} ({why})")
    return not why
