"""What does a point of the full vector cost where 32 step sizes share their noise?

Online ICA (uniform source, f = x³, dense prior) at 32 values of τ, and OIST at 32 values of
β, one seed, float64, one thread. Ours is the function that a sweep calls for a block of points,
``methods_of(system, "shared")["vector"].run_all``. The rival is the same method with noise of
each point's own, ``methods_of(system)["vector"].run_all``: the ratio is what sharing saves. The
note says how many times more the difference of Q between the first and the last value then varies
over seeds.

Run: python -m benchmarks shared_noise   (half a minute)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import hdica
from benchmarks.harness import Contestant, Row, race
from benchmarks.table import number
from benchmarks.vector import spoken
from hdica.systems.system import methods_of

NAME = "shared_noise"
UNIT = "ns per coordinate-step"
POINTS = 32
PROBLEMS: dict[str, Callable[[], list[Any]]] = {
    "online ICA, 32 values of τ": lambda: [
        hdica.OnlineICA(tau=tau, source="uniform", start={"overlap": 0.7})
        for tau in np.linspace(0.005, 0.05, POINTS).tolist()
    ],
    "sparse PCA, 32 values of β": lambda: [
        hdica.SparsePCA(
            tau=0.5,
            regularizer="beta*sign(x)",
            constants={"beta": beta},
            prior={"sparse": 0.05},
            start={"overlap": 0.7},
        )
        for beta in np.linspace(0.05, 0.36, POINTS).tolist()
    ],
}


def block(systems: Sequence[Any], noise: str, n: int, steps: int) -> Contestant:
    """One block of a sweep: all points of one seed."""
    method = methods_of(type(systems[0]).__name__, noise)["vector"]
    trials, times = [(system, 0) for system in systems], np.array([0.0, steps / n])
    name = "hdica, shared noise" if noise == "shared" else "hdica, own noise"
    call = partial(method.run_all, trials, times, n)
    return Contestant(name, call, len(systems) * n * steps)


def reduction(systems: Sequence[Any], n: int, seeds: int, t: float = 2.0) -> float:
    """Variance over seeds of Q's difference between first and last, own noise over shared."""
    found = []
    for noise in ("own", "shared"):
        runs = [
            hdica.simulate(s, n=n, times=[t], seeds=range(seeds), method="vector", noise=noise)
            for s in (systems[0], systems[-1])
        ]
        found.append(float(np.var((runs[1].Q - runs[0].Q).values[:, -1], ddof=1)))
    return found[0] / found[1]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    found = []
    with threadpool_limits(1):
        for label, make in PROBLEMS.items():
            systems = make()[: 4 if small else POINTS]
            gain = reduction(systems, n=64 if small else 1000, seeds=8 if small else 64)
            for n in (64,) if small else (10**3, 10**4):
                steps = 10 if small else 10**7 // n
                note = f"var(Q_1 - Q_{len(systems)}) {number(gain)} times ours"
                ours, theirs = (block(systems, noise, n, steps) for noise in ("shared", "own"))
                theirs = Contestant(theirs.name, theirs.run, theirs.work, note=note)
                case = f"{label}, n = {spoken(n)}"
                found += race(NAME, case, [ours, theirs], unit=UNIT, scale=1e9, repeats=repeats)
    return found
