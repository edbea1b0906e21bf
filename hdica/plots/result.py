"""A result as the analyses read the group of a method, and what is computed of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.convergence.compute import LONG_NAMES, against_limit
from hdica.analysis.ensemble.compute import finished_runs, passages
from hdica.analysis.reading import Cell, assembled, finished, grid_of
from hdica.errors import HdicaError, suggestion
from hdica.show.choose import Point
from hdica.show.terms import STATES, entries, order_parameters
from hdica.status import DONE
from hdica.systems.method import STATE_KINDS, TRANSITION_KINDS, varied
from hdica.systems.system import System, lookup
from hdica.verdict.ladder import moments
from hdica.verdict.resample import quantile
from hdica.verdict.survival import first_below

OWN = STATES | {"seed", "time", "snapshot", "feature", "x", "edge", "threshold"}
"""Dimensions that are no swept parameter, whatever the system."""
SEEN = "_seen"  # ends the name of what says whether a time was waited for
OUTCOMES = frozenset({"status", "cpu_seconds"})  # variables over seeds that are not averaged
MOMENTS = {
    "": ("mean", "mean over seeds"),
    "_se": ("se", "standard error of the mean"),
    "_sd": ("sd", "standard deviation over seeds"),
}


@dataclass(frozen=True)
class Result:
    """A dataset with ``status``, kinds as numbers, as a store has them, and its system's record."""

    data: xr.Dataset
    record: System | None

    @property
    def method(self) -> str:
        """The method that made it."""
        return str(self.data.attrs.get("method", "result"))

    @property
    def system(self) -> str:
        """Name of its system; empty if unknown."""
        return "" if self.record is None else self.record.name

    @property
    def entries(self) -> frozenset[str]:
        """Dimensions that number entries of a matrix."""
        return entries() if self.record is None else self.record.entries

    @property
    def varies(self) -> str:
        """The parameter whose critical values or branches these are; empty for other results."""
        methods = () if self.record is None else self.record.methods
        parameter = next((varied(m) for m in methods if m.name == self.method), None)
        return str(self.data.attrs.get("parameter") or parameter or "")

    @property
    def grid(self) -> list[str]:
        """Swept parameters."""
        return grid_of(self.data)

    @property
    def numeric(self) -> list[str]:
        """Swept parameters whose values are numbers."""
        return [d for d in self.grid if d in self.data.coords and self.data[d].dtype.kind in "fiu"]

    @property
    def axis(self) -> str:
        """The first of them; empty without any."""
        return next(iter(self.numeric), "")

    @property
    def overlap(self) -> str:
        """The first order parameter, or else the first variable in time; empty without any."""
        own = () if self.record is None else self.record.order_parameters
        names = [p.name for p in (*own, *order_parameters())]
        timed = [str(k) for k, v in self.data.data_vars.items() if "time" in v.dims]
        return next((k for k in (*names, *timed) if k in self.data), "")

    @property
    def has_densities(self) -> bool:
        """Whether it has densities of the entries at snapshots."""
        return "density" in self.data and "snapshot" in self.data["density"].dims

    @property
    def has_times(self) -> bool:
        """Whether it has times of events that runs may not have reached."""
        return any(f"{event}{SEEN}" in self.data for event in ("first", "last"))

    @property
    def content(self) -> str:
        """Its variables, for a refusal."""
        names = ", ".join(str(k) for k in self.data.data_vars if k != "status")
        return f"it holds {names or 'nothing'}"

    @property
    def about(self) -> Point:
        """Attributes that what is computed of it has too."""
        attrs = self.data.attrs
        return {k: attrs[k] for k in ("system", "parameters", "method") if k in attrs}

    def over(self, name: str) -> list[str]:
        """Swept parameters with numbers, and n, over which there are several values."""
        dims = self.data[name].dims if name else ()
        return [d for d in (*self.numeric, "n") if d in dims and self.data.sizes[d] > 1]

    def only(self, figure: str, *shown: str) -> None:
        """Refuse several values of parameters that a figure cannot show."""
        more = [d for d in self.grid if d not in shown]
        if more:
            raise HdicaError(
                f"{figure}: several values of {', '.join(more)} are not allowed in one figure "
                f"(choose one: .sel({more[0]}=...))"
            )

    def variable(self, name: str | None = None) -> str:
        """A variable by its name, or the order parameter that is meant first."""
        if name is not None:
            check("variable", name, map(str, self.data.data_vars))
        if not (name or self.overlap):
            raise HdicaError(f"{self.method}: no variable is an order parameter (name one)")
        return name or self.overlap

    def values(self, name: str, *dims: str) -> xr.DataArray:
        """A variable over some dimensions and others, NaN where a run is not finished."""
        for dim in dims:
            if dim not in self.data[name].dims:
                what = "seeds" if dim == "seed" else dim
                raise HdicaError(f"variable = {name!r} is not allowed (it has no {what})")
        return finished(self.data, name)

    def squeezed(self) -> Result:
        """The same without swept parameters of one value."""
        alone = [d for d in self.grid if self.data.sizes[d] == 1]
        return replace(self, data=self.data.squeeze(alone, drop=True))

    def of_one(self, name: str) -> Result:
        """The same with n as a dimension, and a matrix as the size of its largest entry."""
        data = self.data
        if "n" in data.coords and not data["n"].ndim:
            data = data.expand_dims("n", axis=-1)
        pairs = [d for d in data[name].dims if d in self.entries] if name in data else []
        if pairs:
            data = data.assign({name: abs(data[name]).max(pairs)})
        return replace(self, data=data)

    def at_point(self, point: Point) -> Result:
        """The same at one value of each of some swept parameters, or of n."""
        able = [d for d in (*self.grid, "n") if d in self.data.dims]
        for name in point:
            if name not in able:
                near = suggestion(name, able, what="there")
                raise HdicaError(f"{name} is no parameter that was swept ({near})")
        return replace(self, data=at(self.data, point)).squeezed()


def check(key: str, value: object, allowed: Iterable[object]) -> None:
    """Refuse a value that is not one of those that are allowed."""
    names = list(allowed)
    if value not in names:
        near = suggestion(value, map(str, names))
        raise HdicaError(f"{key} = {value!r} is not allowed ({near})")


def read(data: xr.Dataset) -> Result:
    """A dataset of ``simulate``, ``limit`` and their like, or of a group of a store."""
    record, own = lookup(data.attrs.get("system")), OWN
    if record is not None:
        outputs = (output for method in record.methods for output in method.outputs.always)
        own |= ({dim for output in outputs for dim in output.dims} - {"n"}) | record.entries
    if "status" not in data:  # done everywhere, over the parameters that were swept
        grid = [d for d in data.dims if d not in own]
        coords = {d: data[d] for d in grid if d in data.coords}
        done = np.full([data.sizes[d] for d in grid], DONE, np.uint8)
        data = data.assign(status=xr.DataArray(done, coords, grid))
    return Result(_coded(data), record)


def _coded(data: xr.Dataset) -> xr.Dataset:
    """Kinds of states and transitions as a store has them: numbers, NaN where there are fewer."""
    if "kind" not in data or data["kind"].dtype.kind not in "OUT":
        return data
    kinds = data["kind"]
    names = TRANSITION_KINDS if "transition" in kinds.dims else STATE_KINDS
    code = {name: float(k) for k, name in enumerate(names)}
    values = [code.get(str(kind), np.nan) for kind in kinds.values.ravel()]
    data = data.assign(kind=kinds.copy(data=np.array(values, float).reshape(kinds.shape)))
    if "stable" in data:
        data = data.assign(stable=data["stable"].astype(float).where(data["kind"].notnull()))
    return data


def at(data: xr.Dataset, point: Point, lead: str = "") -> xr.Dataset:
    """Data at a value, or several, of each of some dimensions; ``lead`` is for the refusal."""
    for key, wanted in point.items():
        values, places = data[key].values, []
        for value in wanted if isinstance(wanted, list) else [wanted]:
            number = values.dtype.kind in "fiu" and isinstance(value, int | float)
            same = np.isclose(values, value, rtol=1e-9, atol=1e-12) if number else values == value
            if not np.any(same):
                near = suggestion(value, (f"{one}" for one in values[:8]), what="there")
                raise HdicaError(f"{lead}{key} = {value!r} is not there ({near})")
            places.append(int(np.argmax(same)))
        data = data.isel({key: places})
    return data


def matching(
    other: object, what: str, like: xr.Dataset | None = None, dims: Iterable[str] = ()
) -> Result | None:
    """A dataset beside the one that is drawn, at the values that this has of some dimensions."""
    if other is None:
        return None
    if not isinstance(other, xr.Dataset):
        kind = type(other).__name__
        raise HdicaError(f"{what}: a {kind} is not allowed (a Dataset, such as hdica.limit gives)")
    if like is not None:
        point = {d: like[d].values.tolist() for d in dims if d in other.dims}
        other = at(other, point, f"{what}: ")
    return read(other)


def means(result: Result, variable: str | None = None) -> xr.Dataset:
    """Means over seeds, each with its standard error ``<name>_se`` and deviation ``<name>_sd``."""
    data, out = result.data, dict[str, xr.DataArray]()
    averaged = [
        str(name)
        for name, values in data.data_vars.items()
        if "seed" in values.dims and values.dtype.kind in "fiu" and name not in OUTCOMES
        and not str(name).endswith(SEEN) and f"{name}{SEEN}" not in data
    ]  # fmt: skip
    # Where all that is drawn is times until an end, the first of them says why it has no mean.
    ended = [name for name in map(str, data.data_vars) if f"{name}{SEEN}" in data]
    names = averaged or ended[:1] if variable is None else [result.variable(variable)]
    for name in names:
        if f"{name}{SEEN}" in data:
            raise HdicaError(
                f"variable = {name!r} is not allowed (runs that ended before count as shorter in a "
                "mean; plot.escapes shows their survival)"
            )
        moment, attrs = moments(result.values(name, "seed")), data[name].attrs
        units = {k: v for k, v in attrs.items() if k == "units"}
        for end, (part, text) in MOMENTS.items():
            about = f"{attrs.get('long_name', name)}: {text}"
            out[f"{name}{end}"] = moment[part].assign_attrs(long_name=about, **units)
        done = f"runs of {name} that are done"
        out[f"{name}_runs"] = moment["count"].assign_attrs(long_name=done)
    if not out:
        raise HdicaError(f"{result.method}: no variable has seeds (a simulation is needed)")
    return xr.Dataset(out, attrs=result.about)


DISTANCE = {
    "difference": "mean of {v} over seeds minus its limit",
    "difference_error": "standard error of the mean of {v} and the limit's own error together",
    "z": "difference over its error",
    **{k: LONG_NAMES[k] for k in ("sup_error", "sup_error_se", "sup_time", "mean", "se", "limit")},
    "runs": "runs that are done",
}

CROSSINGS = {
    "passage": ("median", "median over runs, infinite where fewer than half cross"),
    "passage_low": ("median_low", "lower end of the 95 % interval of the median"),
    "passage_high": ("median_high", "upper end of the 95 % interval of the median"),
    "passage_se": ("median_se", "standard error of the median"),
    "passage_mean": ("mean", "mean over runs, infinite if one never crosses"),
    "passage_mean_se": ("mean_se", "standard error of the mean"),
    "reached": ("reached", "runs that cross"),
    "never": ("never", "runs that have not crossed by the last time"),
}
"""Names of crossings, and what they are, by those of first passages below a level."""


def bands(values: xr.DataArray, level: float, of: str) -> xr.Dataset:
    """``low``, ``middle`` and ``high`` over seeds, and the number of ``runs``.

    Of the runs, the median and the quantiles between which this share of them lies; of their mean,
    the mean and its interval of this level by Student's t, whose ends are NaN for a single run.
    """
    if not (isinstance(level, int | float) and 0 < level < 1):
        raise HdicaError(f"level = {level!r} is not allowed (between 0 and 1)")
    check("of", of, ("runs", "mean"))
    if of == "mean":
        result = moments(values)
        middle, runs = result["mean"], result["count"]
        score = stats.t.isf((1 - level) / 2, np.maximum(runs.values - 1, 1))
        half = result["se"] * xr.DataArray(score, runs.coords, runs.dims)
        interval = {"low": middle - half, "high": middle + half}
        return xr.Dataset({"middle": middle, **interval, "runs": runs})
    grid = [str(d) for d in values.dims if d not in ("seed", "time")]
    timed = tuple(d for d in ("time",) if d in values.dims)
    shares = {"low": (1 - level) / 2, "middle": 0.5, "high": (1 + level) / 2}
    cells: list[Cell] = []
    for cell in finished_runs(values):
        ordered = np.sort(cell, axis=0)
        ends = {k: (timed, quantile(ordered, share).value) for k, share in shares.items()}
        cells.append({**ends, "runs": len(cell)})
    return assembled(cells, grid, {d: values[d].values for d in (*grid, *timed)})


def distance(values: xr.DataArray, limits: xr.Dataset) -> xr.Dataset:
    """The mean over seeds minus the limit, with the errors of both; runs may have one n or none."""
    for dim in set(values.dims) & set(limits["limit"].dims):
        if not values.indexes[dim].isin(limits["limit"].indexes[dim]).all():
            raise HdicaError(f"limit: it is not there at every {dim} of the runs")
    single = "n" not in values.dims
    if single:
        values = values.expand_dims(n=[values["n"].item() if "n" in values.coords else np.nan])
    out = against_limit(values.reset_coords(drop=True), limits)
    if single:
        out = out.isel(n=0, drop=bool(np.isnan(out["n"].values[0])))
    error = np.sqrt(out["se"] ** 2 + limits["error"].fillna(0.0) ** 2)
    out = out.assign(difference_error=error, limit=limits["limit"]).rename(count="runs")
    return out[list(DISTANCE)]


def crossings(values: xr.DataArray, level: float, rising: bool | None) -> xr.Dataset:
    """When curves first cross a level, and with seeds the median and the mean of these times.

    ``passage`` over all but ``time``; the attribute ``rising`` says whether curves rise to it: if
    that is not asked for, they do where most begin below.
    """
    first = values.isel(time=0).values
    first = first[np.isfinite(first)]
    if rising is None:
        rising = bool(first.size and np.median(first) < level)
    sign, time = -1.0 if rising else 1.0, values["time"].values.astype(float)
    units = {"units": str(values["time"].attrs.get("units", "1"))}
    at = xr.apply_ufunc(
        lambda y: first_below(time, sign * y, sign * level), values, input_core_dims=[["time"]]
    )
    text = f"first {'rises' if rising else 'falls'} to {level:g}, infinite if it never does"
    out = xr.Dataset({"passage": at.assign_attrs(long_name=text, **units)})
    if "seed" in values.dims:
        grid = [str(d) for d in values.dims if d not in ("seed", "time")]
        coords: dict[str, Any] = {d: values[d].values for d in grid} | {"share": [0.5]}
        cells = finished_runs(sign * values)
        times = passages(cells, time, [sign * level], grid, coords)[list(CROSSINGS)]
        times = times.isel(crossing=0, share=0, drop=True)
        for own, (name, text) in CROSSINGS.items():
            timed = {} if name in ("reached", "never") else units
            out[name] = times[own].assign_attrs(long_name=text, **timed)
    return out.assign_attrs(level=level, rising=int(rising))
