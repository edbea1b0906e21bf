"""Means of a selection as rows, by pandas alone.

Any arithmetic of xarray loads dask.array, and with it SciPy: longer than all else that a table on a
terminal waits for. :func:`hdica.sweep.outcome.query.average` says the same as labelled arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hdica.sweep.outcome.query import (
    check_means,
    has_shared_noise,
    rows,
    without_empty,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def mean_table(data: xr.Dataset, dims: Sequence[str], order: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of means over some dimensions, each with its standard error and count beside it.

    Points without a value are left out and not counted, rows without any value left out.

    Parameters
    ----------
    data
        The selection, loaded.
    dims
        Dimensions to average over.
    order
        Of the coordinates; those that it does not name come first.

    Raises
    ------
    HdicaError
        If one is no dimension, or is given twice, or a variable has no mean.
    """
    import pandas as pd

    names = [str(name) for name in data.data_vars]
    check_means(data, dims, names)
    frame = rows(data, order)
    keys = [c for c in frame.columns if c not in names and not set(data[c].dims) & set(dims)]
    groups, columns = _by(frame, keys), {}
    for name in names:
        over = [dim for dim in dims if dim in data[name].dims]
        if not over:
            columns[name] = groups[name].first()
            continue
        columns[name] = groups[name].mean()
        columns[f"{name}_se"] = _standard_error(frame, keys, name, over, has_shared_noise(data))
        columns[f"{name}_count"] = groups[name].count()
    means = pd.DataFrame(columns).reset_index()[[*keys, *columns]]
    return without_empty(means, list(columns))


def _by(frame: pd.DataFrame, keys: list[str]) -> Any:
    """Rows of equal keys together, in their first order; all of them without keys."""
    return frame.groupby(keys or np.zeros(len(frame)), sort=False, dropna=False)


def _standard_error(
    frame: pd.DataFrame, keys: list[str], name: str, over: list[str], shared: bool
) -> pd.Series:
    """Standard error of each mean; where points share their noise, seeds alone are independent."""
    if shared and "seed" in over:
        frame = _by(frame, [*keys, "seed"])[name].mean().reset_index()
    return _by(frame, keys)[name].sem()
