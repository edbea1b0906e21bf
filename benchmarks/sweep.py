"""How long does a sweep of 10 000 cheap points take on two workers, from question to one mean?

The points are short chains of online ICA over τ, Q0 and seeds. Everyone returns the mean of Q
at the last time over all points, from numbers that are equal bit for bit. Ours validates a
study, plans it, computes it into the checksummed working store, publishes that and reads it
back. Rivals: joblib (loky, result in memory and in one file), xyzpy (Runner and Harvester, its
HDF5 file) and xsweep (its Zarr store); they call the method's bare function, which spares them
what a simulation called by its users costs. "cold" starts loky's two processes anew, imports
included; otherwise they wait from the call before. xsweep forks in every call, and ours decides
by its cost model whether processes are worth their start.

Run: python -m benchmarks sweep [--small] [--repeats 5]   (about three minutes)
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdica
from benchmarks.harness import Contestant, Row, present, race
from benchmarks.rivals.point import TIMES, WORKERS, Grid, N, grid, overlap
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import Study, study_from

NAME = "sweep"
POINTS, FEW = 10_000, 200

Array = NDArray[np.float64]
Sweep = Callable[[Grid, Path, int], Array]
RIVALS = {
    "joblib": "loky, in batches; in memory and in one file",
    "xyzpy": "Harvester, a loky task a point; HDF5",
    "xsweep": "forked processes, in batches; Zarr store",
}


def study(points: Grid) -> Study:
    """The same points as a study."""
    content: dict[str, Any] = {
        "study": "chains",
        "title": "short chains",
        "system": "OnlineICA",
        "parameters": {"source": "rademacher"},
        "grid": {"tau": list(points.tau), "Q0": list(points.q0)},
        "times": list(TIMES),
        "methods": {"chain": {"n": N, "seeds": points.seeds}},
    }
    return study_from(content)


def ours(points: Grid, folder: Path, workers: int) -> Array:
    """Q, shape (tau, Q0, seed, time), through the working and the published store.

    Parameters
    ----------
    points
        The points.
    folder
        Where the stores are written.
    workers
        As for ``hdica run``.
    """
    asked, out = study(points), folder / "chains.zarr"
    run(asked, out, workers=workers, progress=False)
    publish(asked, out)
    q = hdica.open_results(out)["chain"].Q.squeeze("n", drop=True)
    return np.asarray(q.transpose("tau", "Q0", "seed", "time").values)


def bare(points: Grid, folder: Path, workers: int) -> Array:
    """The same by a plain loop in this process, which keeps nothing."""
    found = [overlap(*p) for p in product(points.tau, points.q0, range(points.seeds))]
    return np.array(found).reshape(points.shape)


def rivals() -> dict[str, ModuleType]:
    """The module of every rival that is installed."""
    known = {name: f"benchmarks.rivals.{name}_sweep" for name in RIVALS if present(name, name)}
    return {name: import_module(path) for name, path in known.items()}


def question(
    sweep: Sweep, points: Grid, before: Callable[[], None] | None = None
) -> Callable[[], float]:
    """The mean of Q at the last time, through one sweep in a folder of its own."""

    def ask() -> float:
        if before:
            before()
        with tempfile.TemporaryDirectory() as folder:
            return float(sweep(points, Path(folder), WORKERS)[..., -1].mean())

    return ask


def contestants(points: Grid, small: bool) -> list[Contestant]:
    """Ours, the plain loop, and the rivals with warm and with cold processes."""
    size = float(np.prod(points.shape[:3]))
    found = [
        Contestant("hdica", question(ours, points), size, note="run, publish, open_results"),
        Contestant("plain loop", question(bare, points), size, note="one process, nothing kept"),
    ]
    for name, module in rivals().items():
        found.append(Contestant(name, question(module.sweep, points), size, note=RIVALS[name]))
        if hasattr(module, "stop") and not small:
            asked = question(module.sweep, points, module.stop)
            found.append(Contestant(f"{name}, cold", asked, size, note="processes started anew"))
    return found


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """One case."""
    points = grid(FEW if small else POINTS)
    size = int(np.prod(points.shape[:3]))
    case = f"{size} chains of {round(N * TIMES[-1])} steps, {WORKERS} workers"
    entered = contestants(points, small)
    return race(NAME, case, entered, unit="µs per point", scale=1e6, repeats=repeats)
