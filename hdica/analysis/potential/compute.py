"""The effective potential of one entry of the estimate."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.compute import FEATURE, xi_of
from hdica.analysis.describe import described
from hdica.analysis.potential.record import Potential
from hdica.analysis.reading import finished, group

LONG_NAMES = {
    "potential": "effective potential E_t(x, xi) - E_t(0, xi)",
    "convex": "1 where the effective potential is convex",
    "curvature": "d_t = 2h, curvature of the effective potential",
    "xi": FEATURE,
}


def potential(tree: xr.DataTree, settings: Potential) -> xr.Dataset:
    """E_t(x, xi): every entry follows its gradient in a noise of its own (000, eq. (16)).

    ``potential`` over the swept parameters, ``snapshot``, ``feature`` and ``x``, shifted to 0 at
    the point nearest to x = 0; ``convex`` and ``curvature`` over ``time``, as far as the method has
    them; ``xi``, the value of xi of a group.
    """
    data = group(tree, settings.limit)
    values = finished(data, "potential")
    zero = int(np.abs(values["x"].values).argmin())
    out = {"potential": values - values.isel(x=zero, drop=True), "xi": xi_of(data)}
    out |= {k: finished(data, k) for k in ("convex", "curvature") if k in data}
    found = xr.Dataset(out).reset_coords(drop=True)
    found.attrs = {"limit_method": settings.limit}
    return described(found, LONG_NAMES)
