"""What becomes of the processors' time in a long study? 10^5 vectors of about 20 ms, two workers.

``hdica run`` reads, plans, computes and publishes the study in a process of its own. What its
points themselves take is the sum of their ``cpu_seconds``: a worker's processor time from the
parameters of a point to its result. Against that sum stand

- the wall time times the workers: everything counts, from the start of the command to the last
  digest of the published store, and so does whatever else the machine does meanwhile;
- the processor time of the driver, in which the scheduler lives, and of the workers: other programs
  hardly change it, but it does not know of workers that wait.

And the processor time of the same points in plain processes that keep nothing says what a point
takes without us.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import hdica
from benchmarks.rivals.bare_points import Bare
from hdica.run.plan import plan
from hdica.study.study import point_count, study_from

N, LAST = 1000, 30.0
"""Dimension of the vectors and their last time: about 20 ms a point."""
CELLS = 100
BARE = 10
"""Seeds of every cell that the plain processes compute, before and after."""


def content(points: int, last: float = LAST) -> dict[str, Any]:
    """A study of so many vectors, a multiple of a hundred, over tau, Q0 and seeds."""
    return {
        "study": "vectors",
        "title": "vectors of equal length",
        "system": "OnlineICA",
        "parameters": {"source": "uniform"},
        "grid": {
            "tau": {"start": 0.01, "stop": 0.1, "num": 10},
            "Q0": {"start": 0.0, "stop": 0.9, "num": CELLS // 10},
        },
        "times": {"start": 0, "stop": last, "num": 11},
        "methods": {"vector": {"n": N, "seeds": points // CELLS}},
    }


@dataclass(frozen=True)
class Watched:
    """What a command took, with everything that it started.

    Parameters
    ----------
    wall
        Seconds from start to end.
    driver, workers
        Processor seconds of the command itself, and of all that it started.
    driver_mib, worker_mib
        Most MiB that the command had resident, and the largest process that it started.
    """

    wall: float
    driver: float
    workers: float
    driver_mib: float
    worker_mib: float


def watched(command: list[str], folder: Path) -> Watched:
    """Run a command and look at its processes, once a second at most.

    Raises
    ------
    RuntimeError
        If it fails, with what it said.
    """
    cpu: dict[int, float] = {}
    mib: dict[int, float] = {}
    started = time.perf_counter()
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
        root = psutil.Process(process.pid)
        while process.poll() is None:
            # To look takes milliseconds of one of the cores that are measured.
            time.sleep(min(1.0, 0.05 + (time.perf_counter() - started) / 100))
            for one in _family(root):
                with suppress(psutil.Error):
                    times = one.cpu_times()
                    cpu[one.pid] = times.user + times.system
                    mib[one.pid] = max(mib.get(one.pid, 0.0), one.memory_info().rss / 2**20)
        took = time.perf_counter() - started
        said.seek(0)
        if process.returncode:
            raise RuntimeError(f"{command[0]} failed: {said.read()[-2000:]}")
    own, most = cpu.pop(process.pid, 0.0), mib.pop(process.pid, 0.0)
    return Watched(took, own, sum(cpu.values()), most, max(mib.values(), default=0.0))


def _family(root: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [root, *root.children(recursive=True)]
    return []


def measure(
    points: int = 10**5, workers: int = 2, last: float = LAST, bare: int = BARE
) -> dict[str, Any]:
    """What became of the time.

    Parameters
    ----------
    points
        Vectors, a multiple of a hundred.
    workers
        Processes.
    last
        Last time of a vector.
    bare
        Seeds of every cell that plain processes compute, before and after.
    """
    study = study_from(content(points, last))
    with (
        tempfile.TemporaryDirectory() as name,
        closing(Bare(content(CELLS * bare, last), workers)) as kernels,
    ):
        folder = Path(name)
        (segment,) = plan(study, folder / "vectors.zarr").segments
        (folder / "vectors.yaml").write_text(json.dumps(content(points, last)))
        command = [str(Path(sys.executable).parent / "hdica"), "run", "vectors.yaml", "--quiet"]
        before = _seconds(kernels)
        took = watched([*command, "--workers", str(workers), "--out", "vectors.zarr"], folder)
        after = _seconds(kernels)
        group = hdica.open_results(folder / "vectors.zarr")["vector"]
        if not bool((group.status == 1).all()):
            raise RuntimeError("not every point is done")
        own = float(group.cpu_seconds.sum())
    return {
        "points": point_count(study),
        "processes": workers,
        "block": segment.block,
        "blocks": segment.blocks,
        "own": own,
        "bare": (before + after) / 2 / (CELLS * bare),
        **vars(took),
    }


def _seconds(kernels: Bare) -> float:
    """Processor seconds of all points in plain processes, which are children of this one."""

    def spent() -> float:
        found = 0.0
        for child in psutil.Process().children():
            with suppress(psutil.Error):
                found += sum(child.cpu_times()[:2])
        return found

    before = spent()
    kernels()
    return spent() - before


def tables(found: dict[str, Any]) -> list[str]:
    """What was measured, in Markdown."""
    points, workers, own = found["points"], found["processes"], found["own"]
    busy = workers * found["wall"]
    spent = found["driver"] + found["workers"]
    bare = found["bare"]
    memory = f"driver {found['driver_mib']:.0f} MiB, worker {found['worker_mib']:.0f} MiB"
    rows = [
        ("points, blocks", f"{points}, {found['blocks']} of {found['block']} points"),
        ("wall time", f"{found['wall']:.1f} s on {workers} workers"),
        ("the points' own processor time", f"{own:.1f} s, {1e3 * own / points:.2f} ms a point"),
        ("workers x wall time over it", f"{busy / own:.4f}"),
        (
            "processor time of everything over it",
            f"{spent / own:.4f} (driver and scheduler {found['driver']:.1f} s, "
            f"workers {found['workers']:.1f} s)",
        ),
        ("the points' own over bare kernels", f"{own / points / bare:.4f} ({1e3 * bare:.2f} ms)"),
        ("most memory", memory),
    ]
    return ["| | |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows)]
