"""The effective potential of one entry of the estimate."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.densities.compute import FEATURE, xi_of
from hdica.analysis.describe import described
from hdica.analysis.potential.record import Potential
from hdica.analysis.reading import finished, group

Array = NDArray[np.float64]
LONG_NAMES = {
    "potential": "effective potential E_t(x, xi) - E_t(0, xi)",
    "convex": "1 where the effective potential is convex",
    "curvature": "d_t = 2h, curvature of the effective potential",
    "xi": FEATURE,
    "minimum": "where the potential of a group is least, NaN where that is an end of the range",
}


def potential(tree: xr.DataTree, settings: Potential) -> xr.Dataset:
    """E_t(x, xi): every entry follows its gradient in a noise of its own (Wang and Lu 2017, (16)).

    ``potential`` over the swept parameters, ``snapshot``, ``feature`` and ``x``, shifted to 0 at
    the point nearest to x = 0; ``minimum``, where it is least, over all of these but ``x``;
    ``convex`` and ``curvature`` over ``time``, as far as the method has them; ``xi``, the value of
    xi of a group.
    """
    data = group(tree, settings.limit)
    values = finished(data, "potential")
    zero = int(np.abs(values["x"].values).argmin())
    out = {"potential": values - values.isel(x=zero, drop=True), "xi": xi_of(data)}
    out["minimum"] = minimum_of(values)
    out |= {k: finished(data, k) for k in ("convex", "curvature") if k in data}
    found = xr.Dataset(out).reset_coords(drop=True)
    found.attrs = {"limit_method": settings.limit}
    return described(found, LONG_NAMES)


def minimum_of(values: xr.DataArray) -> xr.DataArray:
    """Where a potential over ``x`` is least; NaN where that is an end, or it is not known."""
    at = values["x"].values.astype(float)
    found = xr.apply_ufunc(
        lambda rows: np.apply_along_axis(_least, -1, rows, at), values, input_core_dims=[["x"]]
    )
    return found.reset_coords(drop=True)


def _least(y: Array, x: Array) -> float:
    """Vertex of the parabola through the least point and its neighbours.

    With an l1 penalty the potential is a parabola on either side of its kink, so that a minimum
    away from it is exact; one at a kink is within half a step, and exact where both sides are
    alike.
    """
    k = int(y.argmin())
    if not np.isfinite(y).all() or not 0 < k < y.size - 1:
        return float("nan")
    left, right = x[k] - x[k - 1], x[k + 1] - x[k]
    falls, climbs = (y[k] - y[k - 1]) / left, (y[k + 1] - y[k]) / right
    # Slopes hold at the middles of their intervals and are linear in between.
    if climbs == falls:
        return float(x[k])
    vertex = x[k] - left / 2 - falls * (left + right) / (2 * (climbs - falls))
    return float(np.clip(vertex, x[k] - left / 2, x[k] + right / 2))
