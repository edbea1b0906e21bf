"""The sweep of cheap points with joblib: two loky processes, results in memory and in one file."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray

from benchmarks.rivals.point import Grid, overlap

Array = NDArray[np.float64]


def stop() -> None:
    """End the processes that joblib keeps for the next call."""
    get_reusable_executor().shutdown(wait=True)


def sweep(grid: Grid, folder: Path, workers: int) -> Array:
    """Q, shape (tau, Q0, seed, time). Points go to the processes in batches that joblib chooses.

    Parameters
    ----------
    grid
        The points.
    folder
        Where ``q.joblib`` is written.
    workers
        Processes.
    """
    points = product(grid.tau, grid.q0, range(grid.seeds))
    with joblib.Parallel(n_jobs=workers, backend="loky") as pool:
        found = pool(joblib.delayed(overlap)(*point) for point in points)
    q = np.array(found).reshape(grid.shape)
    joblib.dump(q, folder / "q.joblib")
    return q
