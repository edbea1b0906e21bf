"""As which powers of swept parameters a quantity falls or grows, measured and predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.describe import Cell, assembled, described
from hdica.analysis.exponents.fit import fitted
from hdica.analysis.exponents.record import Exponents
from hdica.analysis.reading import at_end, check_positive, group, over
from hdica.status import DIVERGED
from hdica.verdict.resample import shares_noise

LONG_NAMES = {
    "value": "{s} of {v} over seeds",
    "value_low": "lower end of the 95 % interval of the {s} of {v}",
    "value_high": "upper end of the 95 % interval of the {s} of {v}",
    "seeds": "seeds that are done",
    "diverged": "seeds that diverged",
    "used": "1 where a cell takes part in the fit",
    "fitted": "{s} of {v} by the fitted power law",
    "exponent": "exponent of the parameter in the {s} of {v}",
    "exponent_low": "lower end of the 95 % interval of the exponent",
    "exponent_high": "upper end of the 95 % interval of the exponent",
    "exponent_error": "standard error of the exponent",
    "chi2": "weighted sum of squared residuals of the power law",
    "dof": "its expectation if the power law is exact",
    "p_value": "p-value of the power law being exact",
    "widening": "factor by which scatter about the power law widens the intervals of exponents",
    "cells": "cells in the fit",
    "left_out": "cells without two finished seeds or whose {s} is not positive beyond its noise",
    "predicted": "{v} in theory",
    "predicted_exponent": "exponent of the parameter in theory, fitted to the same cells",
    "ratio": "{s} of {v} over theory",
    "ratio_low": "lower end of the 95 % interval of the ratio",
    "ratio_high": "upper end of the 95 % interval of the ratio",
    "ratio_error": "standard error of the ratio",
}
STATISTICS: dict[str, Callable[..., Any]] = {"median": np.nanmedian, "mean": np.nanmean}
COUNTS = ("seeds", "diverged", "used", "cells", "left_out")
BY_PARAMETER = (
    "exponent",
    "exponent_low",
    "exponent_high",
    "exponent_error",
    "predicted_exponent",
)


def exponents(tree: xr.DataTree, settings: Exponents) -> xr.Dataset:
    """Power laws of a statistic of seeds, fitted in logarithms, and their prediction.

    Over ``simulation`` and the swept parameters, with ``n`` where there is one: the statistic with
    its interval, whether the cell takes part, the fitted value; over ``simulation``, what is not
    in ``over`` (a fit each) and ``parameter``: exponents with 95 % intervals; and without
    ``parameter`` how far the law is exact. With a theory the same of it, by the same weights, and
    the ratio of both in each cell. Variances of cells come of seeds drawn again.
    """
    groups = {name: group(tree, name) for name in settings.simulation}
    for data in groups.values():
        for name in settings.over:
            check_positive(data, name, "analysis.exponents.over")
    theory = None
    if settings.theory:
        theory = at_end(group(tree, settings.theory), settings.variable)
    parts = [_simulated(data, theory, settings) for data in groups.values()]
    out = over(parts, "simulation", list(groups), COUNTS)
    out.attrs = {"variable": settings.variable, "statistic": settings.statistic}
    out.attrs["theory"] = settings.theory or ""
    table = {k: text.replace("{s}", settings.statistic) for k, text in LONG_NAMES.items()}
    return described(out, table, settings.variable)


def _simulated(data: xr.Dataset, theory: xr.DataArray | None, settings: Exponents) -> xr.Dataset:
    """Fits of one method, one for each combination of what is not in ``over``."""
    values = at_end(data, settings.variable)
    along = list(settings.over)
    others = [str(d) for d in values.dims if d not in (*along, "seed")]
    runs = values.transpose(*others, *along, "seed")
    known = _predicted(theory, runs.isel(seed=0, drop=True))
    axes = np.meshgrid(*(np.log(runs[d].values.astype(float)) for d in along), indexing="ij")
    log_p, shape = np.stack([p.ravel() for p in axes], axis=1), axes[0].shape
    made = []
    for i in np.ndindex(*(runs.sizes[d] for d in others)):
        here = runs.values[i].reshape(len(log_p), -1)
        predicted = known.values[i].ravel()
        statistic, shared = STATISTICS[settings.statistic], shares_noise(data)
        made.append(_shaped(fitted(here, log_p, predicted, statistic, shared), along, shape))
    coords = {d: runs[d].values for d in [*others, *along]} | {"parameter": along}
    out = assembled(made, others, coords)
    if theory is None:
        out = out.drop_vars([k for k in out if "predicted" in str(k) or "ratio" in str(k)])
    diverged = (data["status"] == DIVERGED).sum("seed").reset_coords(drop=True)
    return out.assign(diverged=diverged)


def _shaped(found: dict[str, Any], along: Sequence[str], shape: tuple[int, ...]) -> Cell:
    """The numbers of a fit with their dimensions."""
    out: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name, value in found.items():
        if name in BY_PARAMETER:
            out[name] = (("parameter",), value)
        elif np.ndim(value):
            out[name] = (tuple(along), np.reshape(value, shape))
        else:
            out[name] = ((), value)
    return out


def _predicted(theory: xr.DataArray | None, like: xr.DataArray) -> xr.DataArray:
    """The theory in the cells of a simulation; NaN where it has none."""
    if theory is None:
        return xr.full_like(like, np.nan)
    if "n" in theory.dims and "n" not in like.dims:
        theory = theory.isel(n=-1, drop=True)
    _, known = xr.align(like, theory, join="left")
    known = known.broadcast_like(like).transpose(*like.dims)
    return known.where((known > 0) & np.isfinite(known))
