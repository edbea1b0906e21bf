"""What does the pipeline add to the kernels? Wall time of a whole study on two cores over theirs.

Rival: the same points by two plain processes that keep nothing, each with half the seeds, started
and loaded before the clock runs. Ours pays for all it does: ``hdica run`` in a new process reads
the study, plans it, starts workers, computes into the checksummed working store and publishes;
``snakemake --cores 2`` does the same as two jobs. Points are full vectors of online ICA (n = 1000)
and chains, over τ, Q0 and as many seeds as fill the time asked for.

Run: python -m benchmarks overhead [--small] [--repeats 5]   (half an hour)
     python -m benchmarks.overhead --seconds 60 [--repeats 1]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import hdica
from benchmarks.harness import Contestant, Row, race
from benchmarks.rivals.bare_points import Bare, overlap_sum
from benchmarks.table import plain
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.segment import segments_of
from hdica.study.study import study_from

NAME = "overhead"
WORKERS = 2
SHORT, LONG, SMALL = 60.0, 600.0, 0.05
"""Seconds that a study shall take; what Snakemake adds to a long one it adds to a short one."""
TRIAL = 16
"""Seeds of the trial: chains run eight at a time."""
ROOT = Path(__file__).parents[1]
Route = Callable[[], float]


def content(seeds: int) -> dict[str, Any]:
    """The study: twelve cells, ``seeds`` vectors and as many chains in each."""
    where = {"n": 1000, "seeds": seeds}
    return {
        "study": "filled",
        "title": "vectors and chains",
        "system": "OnlineICA",
        "parameters": {"source": "uniform"},
        "grid": {"tau": [0.02, 0.05, 0.08, 0.1], "Q0": [0.2, 0.5, 0.8]},
        "times": {"start": 0, "stop": 5, "num": 11},
        "methods": {"vector": where, "chain": where},
    }


def seeds_for(seconds: float) -> int:
    """Seeds that keep two processes busy for so long: an even number, from a short trial."""
    segments = segments_of(study_from(content(TRIAL)))
    for segment in segments:
        overlap_sum(segment, segment.seeds, cells=1)
    started = time.perf_counter()
    for segment in segments:
        overlap_sum(segment, segment.seeds)
    one = (time.perf_counter() - started) / TRIAL
    return WORKERS * max(1, round(seconds / one))


def _read(out: Path) -> float:
    """Sum of the last overlaps of a published store."""
    tree = hdica.open_results(out)
    return float(sum(group["Q"].isel(time=-1).sum() for group in tree.children.values()))


def _call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def command_line(seeds: int) -> float:
    """The sum through ``hdica run`` in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "filled.yaml").write_text(json.dumps(content(seeds)))
        command = [_program("hdica"), "run", "filled.yaml", "--workers", str(WORKERS), "--quiet"]
        _call([*command, "--out", "filled.zarr"], folder)
        return _read(folder / "filled.zarr")


def workflow(seeds: int) -> float:
    """The sum through ``snakemake --cores 2`` in a folder of its own, up to the published store."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("workflow", "profiles"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy2(ROOT / "Snakefile", folder)
        (folder / "config/studies").mkdir(parents=True)
        (folder / "config/config.yaml").write_text("studies: [filled]\n")
        (folder / "config/studies/filled.yaml").write_text(json.dumps(content(seeds)))
        target = "results/filled.manifest.json"
        _call([_program("snakemake"), "--cores", str(WORKERS), target], folder)
        return _read(folder / "results/filled.zarr")


def in_process(seeds: int) -> float:
    """The sum by the same steps in this process, for a quick look."""
    with tempfile.TemporaryDirectory() as name:
        study, out = study_from(content(seeds)), Path(name) / "filled.zarr"
        run(study, out, cluster={"mode": "serial"}, progress=False)
        publish(study, out)
        return _read(out)


OURS = {"hdica run": command_line, "hdica in snakemake": workflow}


def _ready(small: Route, full: Route) -> Route:
    """A route for :func:`race`, whose first call is not timed and need not be long."""
    calls = chain([small], repeat(full))
    return lambda: next(calls)()


NOTES = {
    "hdica in process": "both stores, one process",
    "hdica run": "new process, workers, both stores",
    "hdica in snakemake": "shard and publish",
    "bare kernels": f"{WORKERS} processes, loaded before, nothing kept",
}


def measure(
    seconds: float, repeats: int, ours: Mapping[str, Callable[[int], float]] = OURS
) -> list[Row]:
    """One case: a study that keeps two processes busy for about ``seconds``."""
    seeds = seeds_for(seconds)
    points = sum(s.size for s in segments_of(study_from(content(seeds))))
    case = f"{points} points, about {seconds:g} s on {WORKERS} cores"
    with closing(Bare(content(seeds), WORKERS)) as kernels:
        routes: dict[str, tuple[Route, Route]] = {
            name: (partial(route, WORKERS), partial(route, seeds)) for name, route in ours.items()
        }
        routes["bare kernels"] = (float, kernels)
        entered = [Contestant(k, _ready(*both), note=NOTES[k]) for k, both in routes.items()]
        return race(NAME, case, entered, unit="s", scale=1.0, repeats=repeats)


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """A case for each length of the study."""
    if small:
        return measure(SMALL, 1, {"hdica in process": in_process})
    long = measure(LONG, 1, {"hdica run": command_line})
    return [*measure(SHORT, min(repeats, 3)), *long]


def added(found: list[Row]) -> str:
    """What each of our routes adds to the bare kernels, in words."""
    times = {row.contestant: row.median for row in found}
    bare = times.pop("bare kernels")
    return "; ".join(
        f"{name}: {time / bare:.3f} of the bare kernels" for name, time in times.items()
    )


def main() -> None:
    """Print the table for one length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    found = measure(args.seconds, args.repeats)
    print(plain(found))
    print(added(found))


if __name__ == "__main__":
    main()
