"""Phase diagrams of which a refinement computes some cells: which these are, and what all show."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.ndimage import distance_transform_edt

from hdica.analysis import reading
from hdica.show.words import count
from hdica.status import DIVERGED, DONE, LEFT_OUT

EDGE = 0.05
"""A threshold is estimated only where the success share leaves 0 and reaches 1 this closely."""


def contours(success: xr.DataArray, counted: xr.DataArray, status: xr.DataArray) -> xr.DataArray:
    """1 where the share of successes among the runs that count exceeds a level, else 0.

    Over ``level``: from :data:`EDGE` to 1 - EDGE a threshold is estimated, and 1/2 is its place.
    NaN where a run has not ended, so that one which fails cannot choose cells.
    """
    ended = ((status == DONE) | (status == DIVERGED)).all("seed") & counted.any("seed")
    share = (success & counted).sum("seed") / counted.sum("seed")
    levels = xr.DataArray([EDGE, 0.5, 1 - EDGE], dims="level")
    return (share > levels).where(ended).astype(float)


def left_out(data: xr.Dataset) -> xr.DataArray:
    """Which cells a study leaves out."""
    return (data["status"] == LEFT_OUT).all([d for d in ("n", "seed") if d in data.dims])


def nearest(tree: xr.DataTree, data: xr.Dataset, x: str, y: str) -> xr.DataArray | None:
    """Number of the nearest cell that a refinement has computed, in steps of the finest grid.

    None of a study without a refinement.
    """
    if not reading.written(tree).get("refine"):
        return None

    def numbers(there: np.ndarray) -> np.ndarray:
        rows, columns = distance_transform_edt(~there, return_distances=False, return_indices=True)
        return np.asarray(rows * there.shape[1] + columns, dtype=float)

    dims = [[x, y]]
    return xr.apply_ufunc(
        numbers, ~left_out(data), input_core_dims=dims, output_core_dims=dims, vectorize=True
    )


def spread_out(data: xr.Dataset, x: str, y: str) -> xr.Dataset:
    """Maps in which a cell that a refinement left out is as the nearest that it has computed.

    All cells between are on the same side, or the refinement would have divided them. The data are
    as they were where a study has no refinement, and so no variable ``nearest``.
    """
    if "nearest" not in data:
        return data
    numbers = data["nearest"]
    number, columns = numbers.drop_vars([x, y]).astype(int), numbers.sizes[y]
    places = {x: number // columns, y: number % columns}
    others = {str(d): n for d, n in number.sizes.items() if d not in places}
    places |= {d: xr.DataArray(np.arange(n), dims=d) for d, n in others.items()}
    out = data.copy()
    for name, values in data.items():
        if {x, y} <= {*values.dims}:
            moved = values.drop_vars([*places], errors="ignore").isel(places)
            out[name] = moved.transpose(*values.dims).assign_coords(values.coords)
    return out


def plateaus(data: xr.Dataset, x: str, y: str) -> xr.DataArray:
    """Shares of the nearest cells where these are on a plateau: so are all up to them."""
    share = spread_out(data, x, y)["probability"]
    return share.where((share <= EDGE) | (share >= 1 - EDGE))


def note_of(data: xr.Dataset) -> str:
    """How many cells of a refined map are computed, and what the others show; else empty."""
    if "nearest" not in data:
        return ""
    numbers = data["nearest"].stack(cell=[data.attrs["x"], data.attrs["y"]])
    own = int((numbers == np.arange(numbers.sizes["cell"])).sum())
    return (
        f" {count(own)} of {count(numbers.size)} cells are computed, closest together where "
        "neighbours differ; each other cell shows the nearest of them."
    )
