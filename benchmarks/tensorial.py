"""What does a step of online tensorial ICA cost, in ns a coordinate, with many seeds at once?

The rule of Li and Jordan (2021) in d dimensions, 64 seeds, constant η, one thread, float64. Ours
are the trajectories of ``method="vector"``, eight seeds side by side. Rivals make the same steps: a
loop over steps in NumPy that moves all seeds at once, the loop in Numba with
``np.random.Generator``, and a kernel in C, eight seeds side by side and with the same kind of
generator, as the stand-in for what the machine can do.

Run: python -m benchmarks tensorial   (some minutes; rivals that are not installed are left out)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.harness import Contestant, Row, present, race
from benchmarks.vector import spoken
from hdica.finite.random import LANES
from hdica.finite.random.streams import streams_of
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.rule import TensorialRule, run_together

Array = NDArray[np.float64]

NAME = "tensorial"
UNIT = "ns per coordinate-step"
SEEDS = 64


@dataclass(frozen=True)
class Rival:
    """A module of ``benchmarks.rivals`` with a function ``tensorial``.

    Parameters
    ----------
    name, module, needs
        In the table, where its code is, and what has to be installed.
    nanoseconds
        Roughly what a coordinate-step costs, which fixes the number of steps of a timed call.
    """

    name: str
    module: str
    needs: tuple[str, ...]
    nanoseconds: float


RIVALS = (
    Rival("NumPy, all seeds at once", "numpy_tensorial", (), 8),
    Rival("Numba loop with Generator", "numba_tensorial", ("numba",), 4),
    Rival("C kernel", "c_tensorial", ("gcc",), 0.4),
)


@dataclass(frozen=True)
class Case:
    """A source in d dimensions, at eta = 0.1/d^2."""

    source: Literal["rademacher", "uniform"]
    d: int
    seeds: int = SEEDS

    @property
    def label(self) -> str:
        """Name in the table."""
        return f"{self.source}, d = {spoken(self.d)}"

    @property
    def eta(self) -> float:
        """Step size."""
        return 0.1 / self.d**2

    def steps(self, seconds: float, nanoseconds: float) -> int:
        """As many as take about so long."""
        return max(1, round(seconds * 1e9 / nanoseconds / self.d / self.seeds))


def anywhere(d: int, rng: np.random.Generator) -> Array:
    """A random direction."""
    v = rng.standard_normal(d)
    return np.asarray(v / np.linalg.norm(v))


def ends(case: Case, steps: int, eta: float, seeds: int) -> Array:
    """Our vectors after some steps, shape (seeds, d)."""
    schedule, start = make_schedule(eta, name="eta"), partial(anywhere, case.d)
    rule = TensorialRule(case.d, make_source(case.source), -1.0, schedule, start)
    stream, times = streams_of({"benchmark": NAME}, "vector", 1), np.array([float(steps)])
    found = []
    for first in range(0, seeds, LANES):
        streams = [stream(seed) for seed in range(first, min(first + LANES, seeds))]
        made = run_together([rule] * len(streams), times, streams, frozenset({"v"}))
        found += [values["v"][0] for values, _ in made]
    return np.array(found)


def ours(case: Case, seconds: float) -> Contestant:
    """Our trajectories, starts and records included."""
    steps = case.steps(seconds, 0.3)
    call = partial(ends, case, steps, case.eta, case.seeds)
    return Contestant("hdica", call, case.seeds * case.d * steps, note=f"{case.seeds} seeds")


def theirs(rival: Rival, case: Case, seconds: float) -> Contestant:
    """The rival's steps, from starts that are there already."""
    steps, rng = case.steps(seconds, rival.nanoseconds), np.random.Generator(np.random.SFC64(0))
    advance: Callable[..., Array] = import_module(f"benchmarks.rivals.{rival.module}").tensorial
    v = np.array([anywhere(case.d, rng) for _ in range(case.seeds)])
    call = partial(advance, v, steps, source=case.source, eta=case.eta, rng=rng)
    return Contestant(rival.name, call, case.seeds * case.d * steps)


def cases(small: bool) -> list[Case]:
    """What is raced."""
    if small:
        return [Case("rademacher", 20, 8), Case("uniform", 20, 8)]
    return [
        *(Case("rademacher", d) for d in (20, 100, 1000)),
        *(Case("uniform", d) for d in (20, 100, 1000)),
    ]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    rivals = [rival for rival in RIVALS if present(rival.name, *rival.needs)]
    seconds, found = 1e-4 if small else 1.0, []
    with threadpool_limits(1):
        for case in cases(small):
            contestants = [ours(case, seconds), *(theirs(r, case, seconds) for r in rivals)]
            found += race(NAME, case.label, contestants, unit=UNIT, scale=1e9, repeats=repeats)
    return found
