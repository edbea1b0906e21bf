"""The sweep of cheap points with xyzpy: a Runner, and a Harvester that keeps it on disk."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import xyzpy
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray

from benchmarks.rivals.point import TIMES, WORKERS, Grid, overlap

Array = NDArray[np.float64]


@lru_cache(maxsize=1)
def _pool(workers: int) -> ProcessPoolExecutor:
    """As the pool that xyzpy makes by itself, which joblib in the same process would break."""
    return ProcessPoolExecutor(workers)


def stop() -> None:
    """End the processes that wait for the next call."""
    _pool(WORKERS).shutdown(wait=True)
    _pool.cache_clear()


def sweep(grid: Grid, folder: Path, workers: int) -> Array:
    """Q, shape (tau, Q0, seed, time).

    Parameters
    ----------
    grid
        The points.
    folder
        Where ``q.h5`` is written.
    workers
        Processes of loky, one task a point.
    """
    runner = xyzpy.Runner(
        overlap,
        var_names=["Q"],
        var_dims={"Q": ["time"]},
        var_coords={"time": np.array(TIMES)},
    )
    harvester = xyzpy.Harvester(runner, data_name=str(folder / "q.h5"))
    combos = {"tau": grid.tau, "q0": grid.q0, "seed": range(grid.seeds)}
    harvester.harvest_combos(combos, executor=_pool(workers), verbosity=0)
    q = harvester.full_ds["Q"].transpose("tau", "q0", "seed", "time")
    return np.asarray(q.values)
