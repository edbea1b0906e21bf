"""A dataset as the analyses read the group of a method: with a status, its grid and its system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from hdica.analysis.reading import finished
from hdica.errors import HdicaError, suggestion
from hdica.show.terms import STATES, order_parameters
from hdica.status import DONE
from hdica.systems.outputs import STATE_KINDS, TRANSITION_KINDS
from hdica.systems.registry import lookup
from hdica.systems.system import System

OWN = STATES | {"seed", "time", "snapshot", "feature", "x", "edge", "threshold"}
"""Dimensions that are no swept parameter, whatever the system."""

NUMERIC = "swept, with numbers"
"""What a list of parameters that an axis may show is called."""
Labelled = TypeVar("Labelled", xr.Dataset, xr.DataArray)


@dataclass(frozen=True)
class Source:
    """A dataset that hdica made.

    Parameters
    ----------
    data
        As a store has it: with ``status``, and kinds of states as numbers.
    record
        Of its system; None if no system of this name is known here.
    """

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
    def grid(self) -> list[str]:
        """Swept parameters."""
        return [str(d) for d in self.data["status"].dims if d not in ("n", "seed")]

    @property
    def numeric(self) -> list[str]:
        """Swept parameters whose values are numbers."""
        return [d for d in self.grid if d in self.data.coords and self.data[d].dtype.kind in "fiu"]

    def variable(self, name: str | None = None) -> str:
        """A variable by its name, or the order parameter that is meant first."""
        if name is not None:
            if name not in self.data.data_vars:
                near = suggestion(name, map(str, self.data.data_vars))
                raise HdicaError(f"variable = {name!r} is not allowed ({near})")
            return name
        own = () if self.record is None else self.record.order_parameters
        first = [p.name for p in (*own, *order_parameters())]
        others = [str(k) for k, v in self.data.data_vars.items() if "time" in v.dims]
        found = next((k for k in (*first, *others) if k in self.data), None)
        if found is None:
            raise HdicaError(f"{self.method}: no variable is an order parameter (name one)")
        return found

    def values(self, name: str | None = None) -> xr.DataArray:
        """A variable, NaN where a run diverged or is not finished."""
        return finished(self.data, self.variable(name))

    def sized(self) -> xr.Dataset:
        """The data with n as a dimension, where there is one n."""
        data = self.data
        return data.expand_dims("n", axis=-1) if "n" in data.coords and not data["n"].ndim else data


def read(data: xr.Dataset) -> Source:
    """A dataset of ``simulate``, ``limit`` and their like, or of a group of a store."""
    record = lookup(data.attrs.get("system"))
    if "status" not in data:
        data = data.assign(status=_status(data, record))
    return Source(_coded(data), record)


def _status(data: xr.Dataset, record: System | None) -> xr.DataArray:
    """Done everywhere, over the parameters that were swept."""
    known = () if record is None else record.methods
    own = OWN | {d for method in known for o in method.outputs.always for d in o.dims} - {"n"}
    own |= set() if record is None else record.entries
    grid = [d for d in data.dims if d not in own]
    shape = [data.sizes[d] for d in grid]
    coords = {d: data[d] for d in grid if d in data.coords}
    return xr.DataArray(np.full(shape, DONE, np.uint8), coords, grid)


def _coded(data: xr.Dataset) -> xr.Dataset:
    """Kinds of states and transitions as a store has them: numbers, NaN where there are fewer."""
    if "kind" not in data or data["kind"].dtype.kind not in "OUT":
        return data
    kinds = data["kind"]
    names = TRANSITION_KINDS if "transition" in kinds.dims else STATE_KINDS
    code = {name: float(k) for k, name in enumerate(names)}
    values = np.array([code.get(str(one), np.nan) for one in kinds.values.ravel()], dtype=float)
    data = data.assign(kind=kinds.copy(data=values.reshape(kinds.shape)))
    if "stable" in data:
        data = data.assign(stable=data["stable"].astype(float).where(data["kind"].notnull()))
    return data


def tree_of(groups: Mapping[str, Source]) -> xr.DataTree:
    """Several results as the groups of one store, for the analyses."""
    name = next((one.system for one in groups.values() if one.system), "")
    found = {key: one.data for key, one in groups.items()}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"system": name}), **found})


def at(values: Labelled, point: Mapping[str, Any], what: str) -> Labelled:
    """A result at a point of another's grid, or a sentence that it is not there."""
    for key, value in point.items():
        if key not in values.dims:
            continue
        try:
            values = values.sel({key: value})
        except KeyError:
            near = suggestion(value, map(str, values[key].values[:6].tolist()), what="there")
            raise HdicaError(f"{what}: {key} = {value} is not there ({near})") from None
    return values


def matching(given: Any, what: str) -> Source | None:
    """A dataset that was given beside the one that is drawn; None if none was."""
    if given is None:
        return None
    if not isinstance(given, xr.Dataset):
        kind = type(given).__name__
        raise HdicaError(f"{what}: a {kind} is not allowed (a Dataset, such as hdica.limit gives)")
    return read(given)
