"""How does the cost grow with n, with the number of points, and with the workers?

No rivals: sizes are compared with the smallest one, and a power law is fitted to each cost over
all repeats. Against n: a step of the full vector and one of the chain. Against points: every stage
of a sweep of short chains, in a process of its own (``benchmarks.stages``). Against workers: the
same chains on one and on two processes; and up to 1000 workers simulated by the real Dask
scheduler and our sliding window, with tasks that sleep as long as the planner makes blocks for so
many workers. Those are threads of this process, which therefore pays for what a cluster would
have on a thousand machines.

Run: python -m benchmarks scaling [--small] [--repeats 5]   (about fifteen minutes)
     python -m benchmarks.scaling --largest 1000000 --plot docs/scaling.png
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hdica
from benchmarks.harness import Row
from benchmarks.laws import Law
from benchmarks.simulated import planned_seconds, sleepers, wall
from benchmarks.stages import STAGES, content, peak_mib, timed
from benchmarks.table import plain
from hdica.ingredients.save import NOTHING
from hdica.run.block import Block, block_of
from hdica.run.cluster import Patience, connect, spread
from hdica.run.plan import tasks
from hdica.run.settings import cluster_settings
from hdica.run.worker import Care
from hdica.store.working import place
from hdica.study.study import study_from
from hdica.systems.system import methods_of

NAME = "scaling"
ROOT = Path(__file__).parents[1]
VECTORS, FEW_VECTORS = (10**3, 10**4, 10**5, 10**6), (50, 100, 200)
CHAINS, FEW_CHAINS = (10**2, 10**4, 10**6, 10**8), (10**2, 10**4)
POINTS, FEW_POINTS = (10**3, 10**4, 10**5), (90, 360)
COORDINATE_STEPS, CHAIN_STEPS = 2 * 10**7, 2 * 10**5
PROCESSES, SHARED_POINTS = (1, 2), 10**5
SIMULATED, FEW_SIMULATED = (1, 3, 10, 30, 100, 300, 1000), (1, 4)
ROUNDS = 4
"""Blocks for each simulated worker: as few as the planner leaves where there is little work."""

Array = NDArray[np.float64]


def measured(sizes: Sequence[int], repeats: int, ask: Callable[[int], float]) -> Array:
    """Times, shape (sizes, repeats); sizes take turns, after one untimed call of each."""
    for size in sizes:
        ask(size)
    return np.array([[ask(size) for size in sizes] for _ in range(repeats)]).T


def step_seconds(method: str, steps_at: Callable[[int], int], n: int) -> float:
    """Seconds of one step of a point of dimension n."""
    ica, steps = hdica.OnlineICA(tau=0.05, source="uniform"), steps_at(n)
    times = np.array([0.0, steps / n])
    started = time.perf_counter()
    methods_of("OnlineICA")[method].run(ica, times, n, 0, NOTHING)
    return (time.perf_counter() - started) / steps


def against_n(small: bool, repeats: int) -> list[Law]:
    """A step of the vector and of the chain."""
    budget = COORDINATE_STEPS // 100 if small else COORDINATE_STEPS
    vectors, chains = (FEW_VECTORS, FEW_CHAINS) if small else (VECTORS, CHAINS)
    vector = partial(step_seconds, "vector", lambda n: max(100, budget // n))
    chain = partial(step_seconds, "chain", lambda n: CHAIN_STEPS // (100 if small else 1))
    times = measured(vectors, repeats, vector), measured(chains, repeats, chain)
    return [
        Law("step of the full vector", "n", "ns", vectors, 1e9 * times[0]),
        Law("step of the chain", "n", "ns", chains, 1e9 * times[1]),
    ]


def stages(points: int) -> dict[str, float]:
    """Seconds of every stage and peak MiB, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.stages", str(points)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def stages_here(points: int) -> dict[str, float]:
    """The same in this process."""
    with tempfile.TemporaryDirectory() as folder:
        return {**timed(points, Path(folder), 1), "driver_mib": peak_mib()}


def against_points(small: bool, points: Sequence[int], repeats: int) -> list[Law]:
    """Every stage of a sweep, and its memory."""
    ask = stages_here if small else stages
    found = [[ask(size) for _ in range(repeats)] for size in points]
    sizes = tuple(int(some[0]["points"]) for some in found)

    def law(what: str, key: str, unit: str) -> Law:
        times = np.array([[one[key] for one in some] for some in found])
        return Law(what, "points", unit, sizes, times, fitted=2)

    seconds = [law(f"sweep, {stage}", stage, "s") for stage in STAGES]
    return [*seconds, law("sweep, peak memory", "driver_mib", "MiB")]


def _blocks(points: int, out: Path, size: int | None = None) -> Iterator[Block]:
    """Blocks of some short chains, in folders that exist."""
    placed = place(study_from(content(points)), out)
    for each in placed:
        each.path.mkdir(parents=True)
    return (block_of(task.placed, task.points) for task in tasks(placed, block=size))


def sweep_seconds(points: int, workers: int) -> float:
    """Seconds of some short chains through the scheduler, on processes that are ready."""
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(cluster_settings({"mode": "local", "workers": workers})) as client,
    ):
        list(spread(client, _blocks(90, Path(folder) / "small.zarr", 9), Care(), Patience()))
        todo = _blocks(points, Path(folder) / "all.zarr")
        started = time.perf_counter()
        ended = spread(client, todo, Care(), Patience())
        failures = [failure for _, failure in ended if failure is not None]
        seconds = time.perf_counter() - started
    if failures:
        raise failures[0]
    return seconds


def simulated_ratio(block_seconds: Callable[[int], float], workers: int) -> float:
    """Wall time of :data:`ROUNDS` sleeping blocks a worker, over what they sleep."""
    seconds = block_seconds(workers)
    with sleepers(workers) as client:
        return wall(client, ROUNDS * workers, seconds) / (ROUNDS * seconds)


def against_workers(small: bool, repeats: int) -> list[Law]:
    """Real processes on the same points, and simulated workers on as many blocks each."""
    points = 900 if small else SHARED_POINTS
    simulated = FEW_SIMULATED if small else SIMULATED
    nap = (lambda workers: 0.02) if small else planned_seconds
    real = [[sweep_seconds(points, w) for _ in range(repeats)] for w in PROCESSES]
    naps = [[simulated_ratio(nap, w) for _ in range(repeats)] for w in simulated]
    return [
        Law(f"{points} chains, processes", "workers", "s", PROCESSES, np.array(real)),
        Law("time over ideal, simulated", "workers", "of ideal", simulated, np.array(naps)),
    ]


def laws(small: bool, repeats: int, largest: int = POINTS[-1]) -> list[Law]:
    """Everything that is measured, sweeps of ``largest`` points at most."""
    points = FEW_POINTS if small else [p for p in (*POINTS, 10**6) if p <= largest]
    few = 1 if small else min(repeats, 3)
    return [
        *against_n(small, repeats),
        *against_points(small, points, few),
        *against_workers(small, few),
    ]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """A case for each law."""
    return [row for law in laws(small, repeats) for row in law.rows(NAME)]


def main() -> None:
    """Print the table, and draw it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--largest", type=int, default=POINTS[-1], help="points of the largest sweep"
    )
    parser.add_argument("--plot", type=Path, help="a .png or .svg file")
    args = parser.parse_args()
    found = laws(args.small, args.repeats, args.largest)
    print(plain([row for law in found for row in law.rows(NAME)]))
    if args.plot:
        from benchmarks.draw import draw

        draw(found, args.plot)


if __name__ == "__main__":
    main()
