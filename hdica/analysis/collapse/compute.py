"""Measured points of every n on the curve that they share, and on one of wrong exponents."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import special

from hdica.analysis.collapse import judge
from hdica.analysis.collapse.measure import measured
from hdica.analysis.collapse.record import RIGHT, Collapse
from hdica.analysis.describe import described
from hdica.analysis.reading import finished, group
from hdica.limits.collapse.laws import law
from hdica.status import DIVERGED

LONG_NAMES = {
    "measured": "measured value: {w}",
    "se": "standard error of the measured value",
    "low": "lower end of the 95 % interval of the measured value",
    "high": "upper end of the 95 % interval of the measured value",
    "runs": "runs that are done",
    "open": "runs that ended before they showed it",
    "hits": "runs that went up, where these are counted",
    "diverged": "runs that diverged or failed",
    "predicted": "prediction at n",
    "sd": "standard deviation of a run in theory",
    "offset": "prediction at n less that of the law that all n share; 0 of a share",
    "shift": "distance by which the law is shifted to be the prediction at n, of a share",
    "score": "normal score of the measured value beside the prediction at n",
    "x": "control in units of its window, with the shift",
    "y": "measured value less the offset, in its unit",
    "y_low": "lower end of the 95 % interval of y",
    "y_high": "upper end of the 95 % interval of y",
    "law": "the law that all n share, at x",
    "x_control": "x with a wrong power of n",
    "y_control": "y with a wrong power of n",
    "y_control_low": "lower end of the 95 % interval of y with a wrong power of n",
    "y_control_high": "upper end of the 95 % interval of y with a wrong power of n",
    "law_control": "the law that all n share, at x with a wrong power of n",
    "score_control": "normal score beside the prediction with wrong powers of n",
    "curve": "the law that all n share, for figures",
    "curve_control": "the same over x with a wrong power of n",
    "curve_control_at": "where it is",
    "chi2": "sum of squared scores",
    "points": "cells in it",
    "worst": "least p-value of a cell times the number of cells",
    "p_value": "p-value of all cells beside their predictions",
    "chi2_control": "sum of squared scores with wrong powers of n",
    "points_control": "cells in it",
    "worst_control": "least p-value of a cell with wrong powers of n times the number of cells",
    "p_control": "p-value of all cells with wrong powers of n",
}
WHAT = {
    "fold": "mean time of the fall",
    "separatrix": "share of runs that go up",
    "pitchfork": "steady mean of {v}^2",
}
SURE = 1e-9
"""A probability nearer to 0 or 1 tells no shift."""
CURVE = 161
ALONE = {"fold": (-1.0, 6.0), "separatrix": (-3.0, 3.0), "pitchfork": (-6.0, 6.0)}
"""Scaled controls between which a law stands without points."""
SHOWN = {"fold": 6.0, "separatrix": 4.0, "pitchfork": 6.0}
"""Largest scaled control of figures; beyond it there is little noise."""


def collapse(tree: xr.DataTree, settings: Collapse) -> xr.Dataset:
    """Measured values of every n in units of theory, beside the law that all n share.

    Over the swept parameters and ``n``: the measured value with its error, the prediction at n,
    x, y = (measured - offset)/unit, with the offset that the prediction at n has beyond the law,
    and the score of measured beside predicted. The control has the same with x and unit that go
    with wrong powers of n, right at the geometric mean of the n: its scores tell whether the runs
    would have seen them. ``curve`` is the law over ``at``.
    """
    data, theory = group(tree, settings.simulation), group(tree, settings.theory)
    runs = measured(data, theory, settings)
    # What theory has at other cells is nothing to these.
    runs, known = xr.align(runs, _theory(theory, settings.kind), join="left")
    lost = (data["status"] >= DIVERGED).sum("seed").reset_coords(drop=True)
    out = runs.merge(known.broadcast_like(runs["measured"])).assign(diverged=lost)
    out = out.transpose(*runs["measured"].dims)
    out = _scaled(out, settings, "")
    out = _scaled(out, settings, "_control")
    out = out.merge(_curve(out, settings.kind)).drop_vars("unit")
    right, wrong = RIGHT[settings.kind], settings.wrong
    out.attrs = {"kind": settings.kind, "variable": settings.variable, "level": settings.level}
    out.attrs |= {"simulation": settings.simulation, "theory": settings.theory}
    out.attrs |= {"window": right.window, "size": right.size}
    out.attrs |= {"wrong_window": wrong.window, "wrong_size": wrong.size}
    what = WHAT[settings.kind].format(v=settings.variable)
    units = {"measured": str(data["first"].attrs.get("units", "1"))} if "first" in data else {}
    return described(out, {k: v.replace("{w}", what) for k, v in LONG_NAMES.items()}, "", units)


def _theory(theory: xr.Dataset, kind: str) -> xr.Dataset:
    """Scaled control, unit, law and prediction; infinite controls are none.

    What the prediction has beyond the law is taken off a time or a square; of a share it is the
    distance by which the law has to be shifted, so that shares stay between 0 and 1.
    """
    x = finished(theory, "scaled")
    unit = finished(theory, "unit") if "unit" in theory else xr.ones_like(x)
    predicted, found = finished(theory, "predicted"), finished(theory, "law")
    near = np.isfinite(x) & np.isfinite(found)
    shift = xr.zeros_like(x)
    if kind == "separatrix":
        inside = (predicted > SURE) & (predicted < 1 - SURE)
        shift = (special.ndtri(predicted) - x).where(inside, 0.0)
        found = x.copy(data=law(kind, (x + shift).values))
    offset = predicted - unit * found if kind != "separatrix" else xr.zeros_like(x)
    parts = {"x": x + shift, "shift": shift, "unit": unit, "law": found, "offset": offset}
    parts["predicted"] = predicted
    if "sd" in theory:
        parts["sd"] = finished(theory, "sd")
    return xr.Dataset({k: v.where(near).reset_coords(drop=True) for k, v in parts.items()})


def _scaled(out: xr.Dataset, settings: Collapse, tail: str) -> xr.Dataset:
    """Points in units of theory, or in those of wrong powers of n, and how they lie."""
    x, unit, found = out["x"], out["unit"], out["law"]
    predicted = out["predicted"]
    if tail:
        right, wrong = RIGHT[settings.kind], settings.wrong
        grown = out["n"] / np.exp(np.log(out["n"].astype(float)).mean())
        x = (x - out["shift"]) * grown ** (wrong.window - right.window) + out["shift"]
        x = x.transpose(*out["x"].dims)
        unit = unit * grown ** (wrong.size - right.size)
        found = x.copy(data=law(settings.kind, x.values))
        predicted = out["offset"] + unit * found
    fit = _fit(out, predicted)
    more = {
        f"y{tail}{end}": (out[f"{name}"] - out["offset"]) / unit
        for name, end in (("measured", ""), ("low", "_low"), ("high", "_high"))
    }
    more |= {f"score{tail}": out["measured"].copy(data=fit.score)}
    if tail:
        more |= {"x_control": x, "law_control": found}
    whole = {"chi2": fit.chi2, "points": fit.points, "worst": fit.worst}
    more |= {f"{name}{tail}": xr.DataArray(value) for name, value in whole.items()}
    return out.assign(more).assign({"p_control" if tail else "p_value": fit.p_value})


def _fit(out: xr.Dataset, predicted: xr.DataArray) -> judge.Fit:
    dims = out["measured"].dims
    at = predicted.transpose(*dims).values
    if bool(out["hits"].notnull().any()):
        hits = out["hits"].where(out["measured"].notnull()).values
        return judge.shares(hits, out["runs"].values, at)
    cv = (out["sd"] / out["predicted"]).transpose(*dims).values if "sd" in out else None
    return judge.means(out["measured"].values, out["se"].values, out["runs"].values, at, cv)


def _curve(out: xr.Dataset, kind: str) -> xr.Dataset:
    """The law over the range of the points, right and wrong."""
    found = {}
    for name in ("x", "x_control"):
        known = out[name].where(out["measured"].notnull()).values
        x = known[np.isfinite(known)]
        # Where nothing is measured yet the law stands alone.
        ends = (x.min(), x.max()) if x.size else ALONE[kind]
        low, high = max(ends[0], -SHOWN[kind]), min(ends[1], SHOWN[kind])
        more = 0.03 * max(high - low, 1e-9)
        found[name] = np.linspace(low - more, high + more, CURVE)
    return xr.Dataset(
        {
            "curve": ("at", law(kind, found["x"])),
            "curve_control": ("at", law(kind, found["x_control"])),
            "curve_control_at": ("at", found["x_control"]),
        },
        coords={"at": found["x"]},
    )
