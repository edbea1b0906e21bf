"""Means over seeds along a swept parameter, with intervals and what theory predicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.dependence.record import BOUNDS, Dependence, bound
from hdica.analysis.describe import described
from hdica.analysis.reading import at_end, check_numbers, grid_of, group, over
from hdica.status import DIVERGED
from hdica.verdict.cells import judged
from hdica.verdict.resample import CONFIDENCE

LONG_NAMES = {
    "mean": "mean of the output over seeds",
    "se": "standard error of the mean of the output",
    "low": "lower end of the 95 % interval of the mean of the output",
    "high": "upper end of the 95 % interval of the mean of the output",
    "sd": "standard deviation of the output over seeds",
    "seeds": "seeds that are done",
    "diverged": "seeds that diverged or failed",
    "predicted": "the output in theory",
    "difference": "mean of the output less theory",
    "claimed": "1 where the study claims the prediction",
    "margin": "by how much the control is off, to either side",
    "verdict": "agrees, differs or undecided",
    "p_value": "p-value of the prediction, corrected for all points that are judged",
    "seeds_needed": "seeds that would decide an undecided point",
}
COUNTS = ("seeds", "diverged")


def dependence(tree: xr.DataTree, settings: Dependence) -> xr.Dataset | None:
    """Mean, 95 % interval and prediction of outputs, over ``simulation``, ``output`` and the grid.

    The intervals are Student's over seeds; the difference to theory has the error of the mean. None
    if no parameter is named and none is swept over numbers.
    """
    groups = {name: group(tree, name) for name in settings.simulation}
    if settings.over is None:
        found = longest(groups[settings.simulation[0]])
        if found is None:
            return None
        settings = settings.model_copy(update={"over": found})
    assert settings.over is not None
    for data in groups.values():
        check_numbers(data, settings.over, "analysis.dependence.over")
        for name in settings.where:
            check_numbers(data, name, "analysis.dependence.where")
    theory = group(tree, settings.theory) if settings.theory else None
    parts = [_simulated(data, theory, settings) for data in groups.values()]
    out = over(parts, "simulation", list(groups), COUNTS)
    out.attrs = {"variable": settings.variable, "over": settings.over, "log": settings.log}
    out.attrs |= {"theory": settings.theory or "", "levels": list(settings.levels.values())}
    out.attrs["level_names"] = list(settings.levels)
    if bool(out["difference"].notnull().any()):
        out = with_verdicts(out, settings.control, settings.where)
    return described(out, LONG_NAMES)


def with_verdicts(out: xr.Dataset, control: float, where: Mapping[str, str]) -> xr.Dataset:
    """The same with the verdict of every point at the largest n.

    Points of an output that the study claims are judged together, and so are all others.
    """
    means = out["mean"]

    def like(values: xr.DataArray) -> xr.DataArray:
        return values.broadcast_like(means).transpose(*means.dims)

    claimed = like(_claimed(out, where))
    last = like(out["n"] == out["n"].max()) if "n" in out.dims else xr.ones_like(claimed)
    largest = abs(out["predicted"]).max([d for d in means.dims if d != "output"])
    margin, freedom = like(control * largest), like(out["seeds"]) - 1
    verdict = xr.full_like(means, "", dtype="<U9")
    p_value, needed = xr.full_like(means, np.nan), xr.full_like(means, np.nan)
    for output in out["output"]:
        for part in (claimed, ~claimed):
            at = (part & last & (out["output"] == output)).transpose(*means.dims).values
            difference, error, dof, off = (
                one.values[at] for one in (out["difference"], out["se"], freedom, margin)
            )
            part_of = judged(difference, error, off, dof)
            verdict.values[at], p_value.values[at] = part_of.verdict, part_of.p_value
            needed.values[at] = np.ceil(part_of.seeds * (freedom.values[at] + 1))
    found = {"margin": margin, "verdict": verdict, "p_value": p_value, "seeds_needed": needed}
    attrs = {"control": control, "where": list(where), "where_bounds": list(where.values())}
    return out.assign(found | {"claimed": claimed.astype(int)}).assign_attrs(attrs)


def _claimed(out: xr.Dataset, where: Mapping[str, str]) -> xr.DataArray:
    """Where all bounds on swept parameters hold."""
    claimed = xr.DataArray(True)
    for name, text in where.items():
        sign, number = bound(text)
        claimed = claimed & BOUNDS[sign](out[name], number)
    return claimed


def longest(data: xr.Dataset) -> str | None:
    """The parameter that is swept over most numbers; None if none is over two or more."""
    known = [d for d in grid_of(data) if data[d].dtype.kind in "fiu" and data.sizes[d] > 1]
    return max(known, key=lambda d: data.sizes[d], default=None)


def _simulated(data: xr.Dataset, theory: xr.Dataset | None, settings: Dependence) -> xr.Dataset:
    """All outputs of one method, over ``output``."""
    parts = []
    for output in settings.outputs:
        part = _means(at_end(data, output))
        prediction = settings.prediction(output)
        if theory is not None and prediction:
            part["predicted"] = _like(at_end(theory, prediction), part["mean"])
        else:
            part["predicted"] = xr.full_like(part["mean"], np.nan)
        part["difference"] = part["mean"] - part["predicted"]
        parts.append(part)
    found = xr.concat(parts, xr.DataArray(list(settings.outputs), dims="output", name="output"))
    lost = (data["status"] >= DIVERGED).sum("seed").reset_coords(drop=True)
    return found.assign(diverged=lost).transpose("output", ..., settings.over)


def _means(values: xr.DataArray) -> xr.Dataset:
    """Mean over the finished seeds with its interval; NaN without any."""
    seeds = values.notnull().sum("seed")
    mean, sd = values.mean("seed"), values.std("seed", ddof=1).where(seeds > 1)
    se = sd / np.sqrt(seeds.where(seeds > 0))
    score = stats.t.ppf(0.5 + CONFIDENCE / 2, np.maximum(seeds.values - 1, 1))
    half = se * xr.DataArray(score, seeds.coords, seeds.dims)
    ends = {"low": mean - half, "high": mean + half}
    return xr.Dataset({"mean": mean, "se": se, **ends, "sd": sd, "seeds": seeds})


def _like(theory: xr.DataArray, mean: xr.DataArray) -> xr.DataArray:
    """Theory in the cells of a simulation; at its largest n where the simulation has none."""
    if "n" in theory.dims and "n" not in mean.dims:
        theory = theory.isel(n=-1, drop=True)
    _, known = xr.align(mean, theory, join="left")
    return known.broadcast_like(mean).transpose(*mean.dims)
