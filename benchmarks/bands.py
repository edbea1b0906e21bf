"""What do the bands of a limit cost, beside the limit itself and beside runs that would show them?

All of ``hdica.limit(..., bands=True)`` at three times: Q, R, a functional, both rates of support
recovery and the density of both groups of entries at its own points. Rivals: the same call without
``bands``, so that a ratio of 1/4 says that bands cost three limits; and 400 runs at n = 1000, whose
standard deviations are good to 3.5 %. Clock: processor time, of one thread.

Run: python -m benchmarks bands   (three minutes)
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

import hdica
from benchmarks.harness import Contestant, Row, race

NAME = "bands"
N, SEEDS = 1000, 400
NORMAL = {"normal": {"mean": math.sqrt(0.5), "var": 0.5}}
KEPT = {"thresholds": [0.5], "functionals": {"size": "abs(x)"}}
CASES: dict[str, tuple[Any, list[float]]] = {
    "online ICA, 0.2 sign(x)": (
        hdica.OnlineICA(
            tau=0.05, source="rademacher", regularizer="0.2*sign(x)", prior={"sparse": 0.3},
            start=NORMAL,
        ),
        [5.0, 20.0, 50.0],
    ),
    "OIST, 0.27 sign(x)": (
        hdica.SparsePCA(
            tau=0.5, omega=1.0, regularizer="0.27*sign(x)", prior={"sparse": 0.05}, start=NORMAL
        ),
        [1.0, 3.0, 10.0],
    ),
}  # fmt: skip


def contestants(system: Any, times: list[float], n: int, seeds: int) -> list[Contestant]:
    """Bands by theory, the limit alone, and runs."""
    limit = partial(hdica.limit, system, times=times, method="pde", **KEPT)
    runs = partial(
        hdica.simulate, system, n=n, seeds=seeds, times=times, method="vector", snapshots=times,
        **KEPT,
    )  # fmt: skip
    error = f"sd to {100 / math.sqrt(2 * seeds):.1f} %"
    return [
        Contestant("hdica, limit with bands", partial(limit, bands=True)),
        Contestant("hdica, limit alone", limit, note="no bands"),
        Contestant(f"hdica, {seeds} runs at n = {n}", runs, note=error),
    ]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    found: list[Row] = []
    with threadpool_limits(1):
        for case, (system, times) in CASES.items():
            some = times[:1] if small else times
            field = contestants(system, some, 100 if small else N, 2 if small else SEEDS)
            found += race(
                NAME, case, field, unit="ms per call", scale=1e3, repeats=repeats,
                clock=time.process_time,
            )  # fmt: skip
    return found
