"""How the end of a run changes along a parameter, seed by seed, where points share their noise."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.describe import described
from hdica.analysis.reading import asked, finished, group, over, overlaps, swept
from hdica.verdict.resample import CONFIDENCE, shares_noise

LONG_NAMES = {
    "": "change of the mean of {v} at the last time per unit of {p}",
    "_low": "lower end of the 95 % interval of the change per unit of {p}",
    "_high": "upper end of the 95 % interval of the change per unit of {p}",
    "_se": "standard error of the change per unit of {p}, over seeds that both ends share",
    "_se_apart": "the same with independent noise at both ends",
    "_count": "seeds that are done at both ends",
}
"""By ending of the name; the slope itself is ``slope_p``."""

ASKED = ("phase", "steady", "convergence", "compare")
"""Analyses whose variable is taken, in this order."""


def slopes(tree: xr.DataTree) -> xr.Dataset | None:
    """Slope of the mean at the last time from one value of a parameter to the next.

    Points that share their noise rise and fall together, so that the difference of two of them,
    formed for each seed alone, varies much less than either. Its mean over seeds has the error of a
    mean of independent numbers.

    For every swept number p, over ``simulation``, the swept parameters with ``p_between`` in place
    of p (the middles of its values) and ``n``: ``slope_p`` with its 95 % interval by Student's t
    and its standard error ``slope_p_se``; ``slope_p_se_apart``, what that would be with noise of
    their own; and ``slope_p_count``, the seeds finished on both sides. None if no method shares
    noise or no number is swept.
    """
    variable = _variable(tree)
    names = [
        name
        for name, node in tree.children.items()
        if shares_noise(node.to_dataset()) and "time" in getattr(node.get(variable), "dims", ())
    ]
    groups = [group(tree, name) for name in names]
    parts = [_slopes(finished(data, variable).isel(time=-1, drop=True)) for data in groups]
    if not any(parts):
        return None
    found = [xr.Dataset(part).reset_coords(drop=True) for part in parts]
    counts = dict.fromkeys(k for part in parts for k in part if k.endswith("_count"))
    out = over(found, "simulation", names, list(counts))
    out.attrs = {"variable": variable, "time": float(groups[0]["time"].values[-1])}
    return described(out, _table(out), variable)


def _variable(tree: xr.DataTree) -> str:
    """The variable that the study looks at."""
    found = (asked(tree, name) for name in ASKED)
    named = [settings.variable for settings in found if settings is not None]
    return next(iter((*named, *overlaps(tree))), "")


def _slopes(ends: xr.DataArray) -> dict[str, xr.DataArray]:
    """Slopes along every swept number."""
    found: dict[str, xr.DataArray] = {}
    for name in swept(ends):
        if ends.sizes[name] > 1 and ends[name].dtype.kind in "fiu":
            found |= {f"slope_{name}{k}": v for k, v in paired_slope(ends, name).items()}
    return found


def paired_slope(ends: xr.DataArray, parameter: str) -> dict[str, xr.DataArray]:
    """Slope between neighbouring values of a parameter, from differences within each seed.

    By ending of the name, over ``<parameter>_between`` in place of the parameter, of ends over it,
    ``seed`` and more; NaN where a run is not finished.
    """
    at = ends[parameter].values.astype(float)
    middle = {parameter: f"{parameter}_between"}
    left, right = (
        ends.isel({parameter: cut}).rename(middle).drop_vars(middle[parameter])
        for cut in (slice(-1), slice(1, None))
    )
    width = xr.DataArray(np.diff(at), dims=middle[parameter])
    difference = right - left
    both = difference.notnull()
    count = both.sum("seed")
    root = np.sqrt(count.where(count > 1))
    slope, error = difference.mean("seed") / width, difference.std("seed", ddof=1) / root / width
    alone = sum(side.where(both).var("seed", ddof=1) for side in (left, right))
    half = error * xr.apply_ufunc(stats.t.ppf, 0.5 + CONFIDENCE / 2, (count - 1).clip(min=1))
    found = {
        "": slope,
        "_low": slope - half,
        "_high": slope + half,
        "_se": error,
        "_se_apart": alone**0.5 / root / width,
        "_count": count,
    }
    coords = {middle[parameter]: (at[1:] + at[:-1]) / 2}
    return {name: values.assign_coords(coords) for name, values in found.items()}


def parameters_of(data: xr.Dataset) -> list[str]:
    """Parameters along which there are slopes, in order."""
    ends = [str(name).removesuffix("_se_apart") for name in data if str(name).endswith("_se_apart")]
    return [name.removeprefix("slope_") for name in ends]


def _table(out: xr.Dataset) -> dict[str, str]:
    return {
        f"slope_{p}{ending}": text.format(p=p, v="{v}")
        for p in parameters_of(out)
        for ending, text in LONG_NAMES.items()
    }
