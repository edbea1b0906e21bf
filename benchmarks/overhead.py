"""What does the pipeline add to the bare computation of many cheap points?

Rival: the same points computed by calling the method in a loop, keeping the numbers in memory.
The pipeline validates the study, plans it, runs it in process, writes the checksummed working
store, publishes it and reads it back. Both run in this process, alternating.

Run: python -m benchmarks.overhead [--points 2000] [--repeats 5]   (about 10 s)
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import hdica
from hdica.ingredients.save import NOTHING
from hdica.sweep.publish import publish
from hdica.sweep.runner import run
from hdica.sweep.study import Study, study_from
from hdica.systems.registry import methods_of


def trivial(points: int) -> Study:
    """A study of chains of ten steps: nothing but overhead."""
    content: dict[str, Any] = {
        "study": "trivial",
        "title": "trivial points",
        "system": "OnlineICA",
        "parameters": {"source": "rademacher", "tau": 0.1},
        "grid": {"Q0": {"start": 0.0, "stop": 0.9, "num": 10}},
        "times": [0, 0.1],
        "methods": {"chain": {"n": 100, "seeds": points // 10}},
    }
    return study_from(content)


def bare(points: int) -> float:
    """Sum of all final overlaps, by a plain loop."""
    method, times, total = methods_of("OnlineICA")["chain"], np.array([0.0, 0.1]), 0.0
    for q0 in np.linspace(0, 0.9, 10).round(12).tolist():
        ica = hdica.OnlineICA(tau=0.1, source="rademacher", start={"overlap": q0})
        for seed in range(points // 10):
            total += float(method.run(ica, times, 100, seed, NOTHING).values["Q"][-1])
    return total


def pipeline(points: int) -> float:
    """The same sum, through study, working store and published store."""
    with tempfile.TemporaryDirectory() as folder:
        study, out = trivial(points), Path(folder) / "trivial.zarr"
        run(study, out, cluster={"mode": "serial"}, progress=False)
        publish(study, out)
        return float(hdica.open_results(out)["chain"].Q.isel(time=-1).sum())


def measure(points: int, repeats: int) -> dict[str, list[float]]:
    """Wall seconds of each route, repeated in alternation after one warm-up."""
    seconds: dict[str, list[float]] = {"bare": [], "pipeline": []}
    bare(10)
    pipeline(10)
    for _ in range(repeats):
        for name, route in (("bare", bare), ("pipeline", pipeline)):
            started = time.perf_counter()
            route(points)
            seconds[name].append(time.perf_counter() - started)
    return seconds


def main() -> None:
    """Print medians, spread, difference and ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    seconds = measure(args.points, args.repeats)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        print(f"{name:9s} {middle[name]:.3f} s (from {min(values):.3f} to {max(values):.3f})")
    print(f"overhead  {middle['pipeline'] - middle['bare']:.3f} s for {args.points} points")
    print(f"ratio     {middle['pipeline'] / middle['bare']:.2f}")


if __name__ == "__main__":
    main()
