"""A result as the analyses read the group of a method: with a status, its grid and its system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from hdica.analysis.reading import finished, grid_of
from hdica.errors import HdicaError, suggestion
from hdica.show.choose import Point
from hdica.show.terms import STATES, entries, order_parameters
from hdica.status import DONE
from hdica.systems.method import STATE_KINDS, TRANSITION_KINDS, varied
from hdica.systems.system import System, lookup
from hdica.verdict.ladder import moments

OWN = STATES | {"seed", "time", "snapshot", "feature", "x", "edge", "threshold"}
"""Dimensions that are no swept parameter, whatever the system."""
SEEN = "_seen"
"""Ends the name of what says whether a time was waited for."""
OUTCOMES = frozenset({"status", "cpu_seconds"})
"""Variables over seeds that are not averaged."""
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
    record = lookup(data.attrs.get("system"))
    if "status" not in data:
        data = data.assign(status=_status(data, record))
    return Result(_coded(data), record)


def _status(data: xr.Dataset, record: System | None) -> xr.DataArray:
    """Done everywhere, over the parameters that were swept."""
    methods = () if record is None else record.methods
    own = OWN | {d for method in methods for o in method.outputs.always for d in o.dims} - {"n"}
    own |= set() if record is None else record.entries
    grid = [d for d in data.dims if d not in own]
    coords = {d: data[d] for d in grid if d in data.coords}
    return xr.DataArray(np.full([data.sizes[d] for d in grid], DONE, np.uint8), coords, grid)


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
    data = result.data
    out: dict[str, xr.DataArray] = {}
    for name in _averaged(data) if variable is None else [result.variable(variable)]:
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


def _averaged(data: xr.Dataset) -> list[str]:
    """Numbers over seeds of which a mean says something."""
    names = {str(k): v for k, v in data.data_vars.items() if "seed" in v.dims}
    return [
        name
        for name, values in names.items()
        if values.dtype.kind in "fiu" and name not in OUTCOMES
        and not name.endswith(SEEN) and f"{name}{SEEN}" not in data
    ]  # fmt: skip
