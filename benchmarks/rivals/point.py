"""One point of the sweep of cheap chains, as bare as it can be called."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdica
from hdica.ingredients.save import NOTHING
from hdica.systems.system import methods_of

Array = NDArray[np.float64]
N = 100
WORKERS = 2
TIMES = (0.0, 2.5, 5.0, 7.5, 10.0)


@dataclass(frozen=True)
class Grid:
    """Values of tau and Q0, and the number of seeds; a point for each combination."""

    tau: tuple[float, ...]
    q0: tuple[float, ...]
    seeds: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the overlaps: tau, Q0, seed and time."""
        return len(self.tau), len(self.q0), self.seeds, len(TIMES)


def grid(points: int) -> Grid:
    """Ten values of tau, ten of Q0, and as many seeds as make ``points``."""
    tau = tuple(np.linspace(0.01, 0.1, 10).round(12).tolist())
    q0 = tuple(np.linspace(0.0, 0.9, 10).round(12).tolist())
    return Grid(tau, q0, points // 100)


@lru_cache(maxsize=256)
def _system(tau: float, q0: float) -> Any:
    return hdica.OnlineICA(tau=tau, source="rademacher", start={"overlap": q0})


def overlap(tau: float, q0: float, seed: int) -> Array:
    """Q at the times, shape (T,)."""
    method = methods_of("OnlineICA")["chain"]
    found = method.run(_system(tau, q0), np.array(TIMES), N, seed, NOTHING)
    return found.values["Q"]
