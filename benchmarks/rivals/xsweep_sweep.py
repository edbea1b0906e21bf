"""The sweep of cheap points with xsweep: its Zarr store, processes, and points in batches.

A task carries the whole plan with it, so that a task a point would send 10^4 plans of 10^4
points; in batches of many points, as its contract allows, it sends few.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xsweep import SweepPolicy
from xsweep import sweep as lifted
from xsweep.delivery import GROUP_DIM

from benchmarks.rivals.point import TIMES, Grid, overlap

Array = NDArray[np.float64]


@lifted("batch(tau, q0, seed) -> Q(time)", version="1")
def chains(tau: xr.DataArray, q0: xr.DataArray, seed: xr.DataArray) -> xr.DataArray:
    """Q of a batch of points."""
    points = zip(tau.values.tolist(), q0.values.tolist(), seed.values.tolist(), strict=True)
    found = np.stack([overlap(*point) for point in points])
    return xr.DataArray(found, dims=[GROUP_DIM, "time"], coords={"time": list(TIMES)}, name="Q")


def sweep(grid: Grid, folder: Path, workers: int) -> Array:
    """Q, shape (tau, Q0, seed, time).

    Parameters
    ----------
    grid
        The points.
    folder
        Where ``q.zarr`` is written.
    workers
        Processes, forked in every call.
    """
    space = xr.Dataset(
        {
            "tau": ("tau", list(grid.tau)),
            "q0": ("q0", list(grid.q0)),
            "seed": ("seed", np.arange(grid.seeds)),
        }
    )
    size = int(np.ceil(np.prod(grid.shape[:3]) / (4 * workers)))
    policy = SweepPolicy(
        store=folder / "q.zarr",
        executor="process",
        max_workers=workers,
        batch_size=size,
        on_error="raise",
    )
    found = chains(space, policy=policy)
    return np.asarray(found["Q"].transpose("tau", "q0", "seed", "time").values)
