"""Mean and scatter over seeds."""

from __future__ import annotations

import numpy as np
import xarray as xr


def moments(values: xr.DataArray) -> xr.Dataset:
    """Mean over seeds with its standard error, standard deviation, and how many runs there are.

    Parameters
    ----------
    values
        Over ``seed`` and others; NaN where a run is not finished, as
        :func:`hdica.analysis.reading.finished` gives them.

    Returns
    -------
    xarray.Dataset
        ``mean``, ``sd``, ``se`` = sd/sqrt(count), each without ``seed``, and ``count``, without
        ``time`` too; ``sd`` and ``se`` are NaN for a single run.
    """
    known = values.notnull()
    count = (known.all("time") if "time" in values.dims else known).sum("seed")
    sd = values.std("seed", ddof=1)
    se = sd / np.sqrt(count)
    return xr.Dataset({"mean": values.mean("seed"), "sd": sd, "se": se, "count": count})
