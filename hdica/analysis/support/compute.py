"""Recovery of the feature's support by thresholding the estimate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.laws import LONG_NAMES as AGREEMENT
from hdica.analysis.laws import Part, agreement, companions
from hdica.analysis.reading import comparisons_in, finished, group, over
from hdica.analysis.settings import names
from hdica.analysis.support.record import Support

LONG_NAMES = {
    **AGREEMENT,
    "tpr": "true positive rate, mean over seeds",
    "tpr_se": "standard error of the true positive rate",
    "tpr_limit": "limit of the true positive rate",
    "fpr": "false positive rate, mean over seeds",
    "fpr_se": "standard error of the false positive rate",
    "fpr_limit": "limit of the false positive rate",
    "misclassified": "misclassified share, mean over seeds",
    "misclassified_se": "standard error of the misclassified share",
    "misclassified_limit": "limit of the misclassified share",
    "area_limit": "area under the limit's true against false positive rate",
}

RATES = ("tpr", "fpr", "misclassified")


def support(tree: xr.DataTree, settings: Support) -> xr.Dataset:
    """True and false positive rates of the support {i: |x_i| > threshold}, against the limit's.

    Over ``simulation``, the swept parameters, ``n``, ``snapshot`` and ``threshold``: the rates'
    means over seeds with standard errors, and the limit's rates; per snapshot the area under the
    limit's curve of true against false positives, and the verdict of
    :func:`hdica.analysis.laws.agreement` on both rates together.
    """
    simulations, limit_name, level = names(settings.simulation), settings.limit, settings.level
    limits, groups = group(tree, limit_name), [group(tree, name) for name in simulations]
    curves = {rate: companions(limits, rate, finished(limits, rate)) for rate in RATES}
    tests = comparisons_in(groups, "tpr", "threshold")
    out = xr.Dataset()
    if simulations:
        parts = [_compare(data, limits, curves, level / tests) for data in groups]
        out = over(parts, "simulation", simulations, ["count"])
    for rate in RATES:
        out[f"{rate}_limit"] = curves[rate]["limit"].reset_coords(drop=True)
    out["area_limit"] = area(out["tpr_limit"], out["fpr_limit"])
    out.attrs = {"limit_method": limit_name, "level": level, "tests": tests}
    out.attrs["level_each"] = level / tests
    return described(out, LONG_NAMES)


def _compare(
    data: xr.Dataset, limits: xr.Dataset, curves: Mapping[str, xr.Dataset], level: float
) -> xr.Dataset:
    """One simulation method against the limit."""
    rates = {rate: finished(data, rate).reset_coords(drop=True) for rate in RATES}
    count = rates["tpr"].notnull().all("threshold").sum("seed")
    out = xr.Dataset({"count": count})
    for rate, values in rates.items():
        out[rate] = values.mean("seed")
        out[f"{rate}_se"] = values.std("seed", ddof=1) / np.sqrt(count)
    active = _active(data, limits)
    parts = [
        Part(rates[rate], curves[rate], share, "threshold")
        for rate, share in (("tpr", active), ("fpr", 1 - active))
    ]
    return xr.merge([out, agreement(parts, level)], join="exact")


def _active(data: xr.Dataset, limits: xr.Dataset) -> xr.DataArray:
    """Share of entries with xi != 0, over n; a half where no method keeps it."""
    if "weight" in limits and "xi" in limits:
        share = finished(limits, "weight").where(finished(limits, "xi") != 0).sum("feature")
    else:
        share = xr.DataArray(0.5)
    return share.reset_coords(drop=True).expand_dims(n=data["n"].values)


def area(tpr: xr.DataArray, fpr: xr.DataArray) -> xr.DataArray:
    """Area under the true positive rate as a function of the false one, by trapezoids.

    The curve is closed by its ends (0, 0) and (1, 1); NaN where a rate is NaN.
    """
    tpr, fpr = (rate.transpose(..., "threshold") for rate in xr.broadcast(tpr, fpr))
    # Rates fall as the threshold rises: from (1, 1) to (0, 0).
    one, zero = np.ones((*tpr.shape[:-1], 1)), np.zeros((*tpr.shape[:-1], 1))
    y, x = (np.concatenate([one, rate.values, zero], axis=-1) for rate in (tpr, fpr))
    found = -np.trapezoid(y, x, axis=-1)
    return tpr.isel(threshold=0, drop=True).copy(data=found)
