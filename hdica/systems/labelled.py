"""Points of a system as labelled data: which method, and what its numbers are called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends.common import BackendArray
from xarray.core import indexing

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.save import Save
from hdica.systems.arguments import check_held
from hdica.systems.method import Array, Method, PointResult, Role
from hdica.systems.parameters import Parameters
from hdica.systems.system import System, record_of, systems

Methods = Callable[[System], Sequence[Method]]
"""Which methods of a system give a kind of result, in the order in which to try them."""
_ABOUT = {
    "snapshot": "time of the snapshot",
    "feature": "value of xi in the group",
    "x": "entry of the estimate",
    "edge": "edge of the bins around x",
    "threshold": "threshold on abs(x)",
    "entry": "number of the entry",
}
"""Dimensions of what every system can keep."""


def about(record: System) -> dict[str, dict[str, str]]:
    """Attributes of the dimensions that results of a system may have."""
    attrs = {name: {"long_name": words} for name, words in _ABOUT.items()}
    attrs |= {dim.name: {"long_name": dim.about} for dim in record.dimensions}
    attrs["snapshot"]["units"] = record.clock.units
    return attrs | {"time": {"long_name": record.clock.long_name, "units": record.clock.units}}


def candidates(
    system: Parameters, name: str, kind: str, able: Methods, auto: Methods
) -> list[Method]:
    """The named one of the methods ``able``, or for ``"auto"`` all of ``auto``, in order."""
    record = record_of(system)
    allowed = {method.name: method for method in able(record)}
    if not allowed:
        others = ", ".join(one.name for one in systems().values() if able(one))
        raise HdicaError(f"{kind}: system = {record.name} is not allowed (allowed: {others})")
    if not isinstance(name, str) or name not in ("auto", *allowed):
        raise HdicaError(
            f"{kind}: method = {name!r} is not known ({suggestion(str(name), ['auto', *allowed])})"
        )
    methods = list(auto(record)) if name == "auto" else [allowed[name]]
    if not methods:
        raise HdicaError(
            f"{kind}: no method of {record.name} gives what is asked for beyond order parameters "
            f"(its methods: {', '.join(allowed)})"
        )
    return methods


def first_of(methods: Sequence[Method], system: Parameters) -> Method:
    """The first method that applies to a system."""
    reason = ""
    for method in methods:
        reason = method.scope.refuses(system)
        if not reason:
            if not method.takes_n:
                check_held(method, system, None)
            return method
    raise HdicaError(reason)


def applicable(system: Parameters, kind: str, able: Methods) -> Method:
    """The first method of some that applies to a system; ``kind`` is as of :func:`candidates`."""
    return first_of(candidates(system, "auto", kind, able, able), system)


def with_role(*roles: Role) -> Methods:
    """Methods of some roles."""
    return lambda record: record.with_role(*roles)


def dataset(
    record: System,
    method: Method,
    times: Array,
    save: Save,
    own: Mapping[str, Sequence[float]],
    results: list[PointResult],
    lead: str,
) -> xr.Dataset:
    """Labelled results of one point, or of several along ``lead``."""
    known = about(record)
    coords = {
        dim: (dim, values, known.get(dim, {}))
        for dim, values in method.coords_of(times, save, own).items()
    }
    lead_dims = (lead,) if lead else ()
    values = [r.values for r in results]
    data = {
        o.name: (
            (*lead_dims, *o.dims),
            np.stack([v[o.name] for v in values]) if lead else values[0][o.name],
            {"long_name": o.long_name, "units": o.units},
        )
        for o in method.outputs_of(save)
    }
    attrs = {
        "method": method.name,
        "accuracy": method.about.accuracy,
        "equations": method.about.equations,
        "kernel_version": method.about.kernel,
    }
    return xr.Dataset(data, coords, attrs)


def computed(
    system: Parameters, method: Method, times: Array | None = None, n: int | None = None
) -> xr.Dataset:
    """What a method that draws nothing gives for one system, with all that it gives if asked for.

    ``times`` are for methods over time; ``n`` becomes a coordinate.
    """
    grid = np.empty(0) if times is None else times
    save = Save(extra=tuple(output.name for output in method.outputs.extras))
    result = method.run(system, grid, n, None, save)
    data = dataset(record_of(system), method, grid, save, system.dims(), [result], "")
    return described(data if n is None else data.assign_coords(n=n), system)


LONG_NAMES = {
    "value": "value of the parameter",
    "error": "error of the value",
    "n": "dimension",
    "fixed_point": "number of the steady state",
    "transition": "number of the transition",
    "trial": "number of the trial",
    "goal": "overlap to reach",
    "overlap": "overlap to reach",
    "probability": "share of runs that reach it",
    "level": "confidence level",
}
"""Of numbers whose maker has not named them."""


def described(data: xr.Dataset, system: Parameters) -> xr.Dataset:
    """The same with the system, its parameters and what it chose of itself in the attributes.

    Every number has a long name and a unit, "1" where nothing else is known.
    """
    record = record_of(system)
    chosen = record.notes.chosen(system)
    attrs = {"system": type(system).__name__, "parameters": system.model_dump_json()}
    data = data.assign_attrs(attrs | ({"chosen": chosen} if chosen else {}))
    names = LONG_NAMES | {one.name: one.meaning for one in record.order_parameters}
    for name, one in data.variables.items():
        if one.dtype.kind in "biuf":
            one.attrs = {"long_name": names.get(str(name), str(name)), "units": "1"} | one.attrs
    return portable_texts(data)


def named_method(name: str) -> Methods:
    """The methods of one name, of a system that has it."""
    return lambda record: [method for method in record.methods if method.name == name]


def by_method(system: Parameters, name: str) -> xr.Dataset:
    """What a method that draws nothing gives for one system that has it, by its name."""
    return computed(system, applicable(system, name, named_method(name)))


class _Texts(BackendArray):
    """Texts of a variable as Python's strings, of which only what is used is read."""

    def __init__(self, texts: xr.Variable) -> None:
        self.texts, self.shape, self.dtype = texts, texts.shape, np.dtype(object)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        def read(places: tuple[Any, ...]) -> Any:
            return np.asarray(self.texts[places].values, dtype=object)

        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, read)


def portable_texts(data: xr.Dataset, lazy: bool = False) -> xr.Dataset:
    """The same with its texts as Python's strings, which every writer of xarray takes.

    If ``lazy``, variables that are no coordinates are read when they are used.
    """
    texts = {}
    for name, one in data.variables.items():
        if one.dtype.kind in "UT":
            lazily = lazy and name not in data.coords
            values: object = _Texts(one) if lazily else np.asarray(one.values, dtype=object)
            values = indexing.LazilyIndexedArray(values) if lazily else values
            texts[name] = xr.Variable(one.dims, values, one.attrs, one.encoding)
    return data.assign(texts)


def portable_attrs(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes of every format: numbers, their lists, texts, words with spaces, else JSON."""
    return {str(name): _portable(value) for name, value in attrs.items()}


def _portable(value: object) -> Any:
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, str | int | float | np.number | np.ndarray):
        return value
    if isinstance(value, list | tuple) and value:
        if all(isinstance(one, str) and not re.search(r"\s", one) for one in value):
            return " ".join(value)
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in value):
            return list(value)
    return json.dumps(value)


def noted(data: xr.Dataset, note: str) -> xr.Dataset:
    """The same with a note among its attributes, if there is anything to say."""
    return data.assign_attrs(note=note) if note else data
