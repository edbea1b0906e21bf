"""The effective potential of one entry of the estimate."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.compute import xi_of
from hdica.analysis.describe import described
from hdica.analysis.potential.names import LONG_NAMES
from hdica.analysis.potential.settings import Potential
from hdica.analysis.reading import finished, group


def potential(tree: xr.DataTree, settings: Potential) -> xr.Dataset:
    """E_t(x, xi): every entry follows its gradient in a noise of its own (000, eq. (16)).

    Parameters
    ----------
    tree
        A published store.
    settings
        What the study asks for.

    Returns
    -------
    xarray.Dataset
        ``potential`` over the swept parameters, ``snapshot``, ``feature`` and ``x``, shifted to 0
        at the point nearest to x = 0; ``convex`` and ``curvature`` over ``time``, as far as the
        method has them; ``xi``, the value of xi of a group.
    """
    data = group(tree, settings.limit)
    values = finished(data, "potential")
    zero = int(np.abs(values["x"].values).argmin())
    out = {"potential": values - values.isel(x=zero, drop=True), "xi": xi_of(data)}
    out |= {k: finished(data, k) for k in ("convex", "curvature") if k in data}
    found = xr.Dataset(out).reset_coords(drop=True)
    found.attrs = {"limit_method": settings.limit}
    return described(found, LONG_NAMES)
