"""Seconds of each stage of a sweep of short chains, and its memory, in a process of its own.

Run: python -m benchmarks.stages POINTS [--workers 2]   (prints JSON)
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

import hdica
from hdica.analysis.aggregate import aggregate
from hdica.run.plan import plan, tasks
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.query import query
from hdica.store.verify import verify
from hdica.store.working import place
from hdica.study.study import study_from

STAGES = ("validate", "plan", "place", "run", "publish", "open", "query", "aggregate", "verify")
N, SEEDS = 50, 10
"""Dimension of the chains, and points a cell at most."""


def content(points: int) -> dict[str, Any]:
    """About so many chains of n = 50 to t = 1, over tau, Q0 and at most ten seeds."""
    seeds = min(SEEDS, max(1, points // 9))
    side = max(3, round((points / seeds) ** 0.5))
    return {
        "study": "short",
        "title": "short chains",
        "system": "OnlineICA",
        "parameters": {"source": "rademacher"},
        "grid": {
            "tau": {"start": 0.01, "stop": 0.1, "num": side},
            "Q0": {"start": 0.0, "stop": 0.9, "num": side},
        },
        "times": {"start": 0, "stop": 1, "num": 5},
        "methods": {"chain": {"n": N, "seeds": seeds}},
        "analysis": {"phase": {"simulation": "chain", "x": "tau", "y": "Q0", "success": 0.5}},
    }


def timed(points: int, folder: Path, workers: int) -> dict[str, float]:
    """Seconds of each stage, and how many points it was.

    Parameters
    ----------
    points
        About how many.
    folder
        Where the stores are written.
    workers
        Processes; 1 computes in this one.
    """
    given, seconds = content(points), {}

    def clocked(name: str, stage: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        found = stage()
        seconds[name] = time.perf_counter() - started
        return found

    study, out = clocked("validate", lambda: study_from(given)), folder / "short.zarr"
    planned = clocked("plan", lambda: plan(study, out))
    clocked("place", lambda: tasks(place(study, out)))
    cluster = {"mode": "local" if workers > 1 else "serial", "workers": workers}
    clocked("run", lambda: run(study, out, cluster=cluster, progress=False))
    clocked("publish", lambda: publish(study, out))
    tree = clocked("open", lambda: hdica.open_results(out))
    clocked("query", lambda: query(tree, {"Q0": "0"}, "chain", ["Q"], ["seed"]))
    clocked("aggregate", lambda: aggregate(tree))
    verdict = clocked("verify", lambda: verify(out))
    if verdict.word != "whole" or verdict.points != planned.points:
        raise RuntimeError(f"{out} is {verdict.word}: {verdict.points} of {planned.points} points")
    return {"points": planned.points, **seconds}


def peak_mib() -> float:
    """Most MiB that this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def largest_child() -> Iterator[list[float]]:
    """Most MiB that any process started from here has resident, looked up ten times a second."""
    found, over = [0.0], threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                try:
                    found[0] = max(found[0], child.memory_info().rss / 2**20)
                except psutil.Error:
                    continue

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    yield found
    over.set()
    watching.join()


def main() -> None:
    """Print seconds of the stages and peak MiB of this process and of the largest worker."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=int)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as folder:
        timed(90, Path(small), 1)  # imports and compiled code are loaded before the clock runs
        with largest_child() as worker:
            found = timed(args.points, Path(folder), args.workers)
    print(json.dumps({**found, "driver_mib": peak_mib(), "worker_mib": worker[0]}))


if __name__ == "__main__":
    main()
