"""What an analysis takes from a published store, and how it describes what it returns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import ValidationError

from hdica.analysis.registry import settings_classes
from hdica.analysis.settings import Gives, Needs, names, needs_of
from hdica.errors import HdicaError, one_sentence, suggestion
from hdica.show.choose import dims_of
from hdica.show.terms import padded
from hdica.status import DONE
from hdica.systems.method import Method, Role, varied
from hdica.systems.space import Space, space_of_study
from hdica.systems.system import System, lookup
from hdica.systems.values import SAMPLE
from hdica.verdict.ladder import moments
from hdica.verdict.resample import shares_noise

if TYPE_CHECKING:
    from hdica.analysis.convergence import Convergence
    from hdica.analysis.laws import Distances, Support

OWN = frozenset({"n", "seed", "time"})
"""Dimensions of trajectories that are not swept parameters."""


def space(tree: xr.DataTree, record: System) -> Space:
    """The grid of the study of a store, of whose points systems can be built."""
    return space_of_study(record.parameters, study(tree))


def parts_of_cases(tree: xr.DataTree) -> dict[str, xr.DataArray]:
    """Parameters that go together along a dimension, each as a coordinate over it alone."""
    out: dict[str, xr.DataArray] = {}
    for name in computed(tree):
        data = tree[name].to_dataset()
        for dim in grid_of(data):
            own = {str(k): one for k, one in data.coords.items() if one.dims == (dim,) and k != dim}
            out |= {k: one.reset_coords(drop=True) for k, one in own.items()}
    return out


def study(tree: xr.DataTree) -> dict[str, Any]:
    """The study of a store, as plain data."""
    if not tree.attrs.get("study_yaml"):
        raise HdicaError("the store has no attribute study_yaml, so it is not a published store")
    return written(tree)


def written(tree: xr.DataTree) -> dict[str, Any]:
    """The same, empty where the results have none."""
    return dict(json.loads(tree.attrs.get("study_yaml") or "{}"))


def computed(tree: xr.DataTree) -> list[str]:
    """The methods of a store; what is no method's group is left out."""
    return [str(name) for name, node in tree.children.items() if "status" in node]


def requested(tree: xr.DataTree, analysis: str) -> Any:
    """Settings of one analysis, or None if the study of the store did not ask for it.

    A study that asks for none is shown what suits its system.
    """
    wanted = {k: v for k, v in (study(tree).get("analysis") or {}).items() if v is not None}
    given, settings = wanted.get(analysis), settings_classes().get(analysis)
    if not wanted:
        given = _of_system(tree, analysis)
        if given is None and settings is not None:
            suiting = settings.suits(tree) or {}
            given = {key: value for key, value in suiting.items() if value} or None
    return None if given is None else settings_of(tree, analysis, given)


def _of_system(tree: xr.DataTree, analysis: str) -> dict[str, str] | None:
    """Settings of an analysis by the record of the system; None if its methods do not suit."""
    record = system_of(tree)
    if record is None or analysis not in record.analyses:
        return None
    needs, methods = dict(needs_of(settings_classes()[analysis])), {}
    for key, role in record.analyses[analysis].items():
        need = needs.get(key, Needs(None))
        methods[key] = offered(tree, role, *(names(need.over) or ("time",)), n=need.n)
    return methods if all(methods.values()) else None


def settings_of(tree: xr.DataTree, analysis: str, given: Mapping[str, object]) -> Any:
    """Settings of an analysis from plain data; what they leave open is settled by the store."""
    try:
        read = settings_classes()[analysis].model_validate(given)
    except ValidationError as exc:
        mark = "." if exc.errors()[0]["loc"] else ": "
        text = one_sentence(exc, "").removeprefix(": ")
        raise HdicaError(f"analysis.{analysis}{mark}{text}") from exc
    settings = read.settled(system_of(tree), gives(tree))
    for key, value in settings:
        if value == "":
            name = tree.attrs.get("system")
            raise HdicaError(
                f"analysis.{analysis}.{key} is missing (no method of the store settles it, or its "
                f"system {name!r} is not known here)"
            )
    return settings


def gives(tree: xr.DataTree) -> dict[str, Gives]:
    """What the methods of a store have, in the order in which their system lists them."""
    record = system_of(tree)
    listed = [] if record is None else [m.name for m in record.methods]
    out = {}
    for name in sorted(
        computed(tree), key=lambda k: listed.index(k) if k in listed else len(listed)
    ):
        data = tree[name].to_dataset()
        beside = set(data["status"].dims)
        outputs = {str(k): tuple(map(str, v.dims)) for k, v in data.data_vars.items()}
        own = {k: tuple(d for d in dims if d not in beside) for k, dims in outputs.items()}
        out[name] = Gives("seed" in data.dims, own, "n" in beside)
    return out


def system_of(tree: xr.DataTree) -> System | None:
    """The record of the system of a store; None if no plug-in that is loaded has it."""
    return lookup(tree.attrs.get("system"))


def method_of(tree: xr.DataTree, name: str | None) -> Method | None:
    """A method of the system of a store, None if it is not known."""
    record = system_of(tree)
    known = () if record is None else record.methods
    return next((method for method in known if method.name == name), None)


def overlaps(tree: xr.DataTree) -> tuple[str, ...]:
    """Order parameters of the system of a store, the one that is meant first."""
    record = system_of(tree)
    return () if record is None else tuple(p.name for p in record.order_parameters)


def overlap_in(tree: xr.DataTree, data: xr.Dataset) -> str:
    """The first order parameter that a method has."""
    overlap = next((name for name in overlaps(tree) if name in data), "")
    if not overlap:
        raise HdicaError(
            f"method {data.attrs.get('method', '?')!r} has no order parameter of the system "
            f"{tree.attrs.get('system')!r} (its plug-in has to be loaded)"
        )
    return overlap


def steady_states(tree: xr.DataTree) -> str | None:
    """The first method of a store that has steady states with their stability."""
    methods = (m for m, node in tree.children.items() if "fixed_point" in node.dims)
    return next((m for m in methods if "stable" in tree[m]), None)


def transitions_in(tree: xr.DataTree, parameter: str) -> str | None:
    """The first method of a store that has the critical values of a parameter."""
    methods = [m for m, node in tree.children.items() if "transition" in node.dims]
    known = ((m, method_of(tree, m)) for m in methods if parameter not in tree[m].dims)
    return next((m for m, method in known if method is None or varied(method) == parameter), None)


def group(tree: xr.DataTree, method: str) -> xr.Dataset:
    """Everything a method left in the store, but for coordinates that are not of a dimension.

    Texts are objects, as NaN is no stored text.
    """
    if method not in tree.children:
        near = suggestion(method, sorted(map(str, tree.children)), what="its methods")
        raise HdicaError(f"the store has no method {method!r} ({near})")
    data = tree[method].to_dataset().reset_coords(drop=True).load()
    return data.assign({k: v.astype(object) for k, v in data.items() if v.dtype.kind == "T"})


def groups(tree: xr.DataTree, methods: Iterable[str]) -> dict[str, xr.Dataset]:
    """What each of some methods left in the store, by its name."""
    return {name: group(tree, name) for name in methods}


def finished(data: xr.Dataset, variable: str) -> xr.DataArray:
    """One variable with NaN wherever the point is not done.

    A point that is marked done and still holds a NaN is no result either: it becomes NaN as a
    whole, so that a mean never mixes different sets of seeds at different times. Along padded
    dimensions and over the entries of a matrix each entry is judged alone.
    """
    values = done(data, variable)
    own = [d for d in values.dims if d not in {*data["status"].dims, *padded()}]
    return values.where(values.notnull().all(own)) if own else values


def done(data: xr.Dataset, variable: str) -> xr.DataArray:
    """One variable with NaN wherever the point is not done, each number judged alone."""
    if variable not in data:
        raise HdicaError(f"method {data.attrs.get('method', '?')!r} has no variable {variable!r}")
    return data[variable].where(data["status"] == DONE)


def at_end(data: xr.Dataset, variable: str) -> xr.DataArray:
    """One variable of finished points, at the last time where it has times."""
    values = finished(data, variable).reset_coords(drop=True)
    return values.isel(time=-1, drop=True, missing_dims="ignore")


def swept(data: xr.DataArray) -> list[str]:
    """Swept parameters of trajectories, and dimensions of the entries of matrices, in order."""
    return dims_of(data, *OWN)


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of a method's group, in order."""
    return dims_of(data["status"], "n", "seed")


def check_numbers(data: xr.Dataset, parameter: str, where: str) -> None:
    """Refuse a parameter that is not swept, or whose values are no numbers."""
    check_swept(data, parameter, where)
    if data[parameter].dtype.kind not in "fiu":
        raise HdicaError(f"{where} = {parameter!r} is not allowed (its values must be numbers)")


def check_positive(data: xr.Dataset, parameter: str, where: str) -> None:
    """Refuse a parameter that is not swept, or whose values have no logarithm."""
    check_numbers(data, parameter, where)
    least = data[parameter].values.min()
    if not least > 0:
        raise HdicaError(
            f"{where} = {parameter!r} is not allowed (values must be positive, {least:g} is not)"
        )


def with_companions(data: xr.Dataset, variable: str, *kinds: str) -> xr.Dataset:
    """A limit with companions such as ``error``, which is ``<variable>_error``; NaN without one."""
    limit = finished(data, variable)
    out = {"limit": limit}
    for kind in kinds:
        name = f"{variable}_{kind}"
        nothing = xr.full_like(limit, np.nan, dtype=float)
        out[kind] = finished(data, name) if name in data else nothing
    return xr.Dataset(out).reset_coords(drop=True)


def at_top(values: xr.DataArray) -> tuple[xr.DataArray, int | None]:
    """Values at :func:`largest_n`, and that n; of a method without n as they are, and None."""
    if "n" not in values.dims:
        return values, None
    n = largest_n(values)
    return values.sel(n=n, drop=True), n


def largest_n(values: xr.DataArray) -> int:
    """The largest dimension with a finished seed; the largest of all if there is none."""
    some = values.notnull().any([d for d in values.dims if d != "n"])
    at = values["n"].values[some.values]
    return int(at[-1] if len(at) else values["n"].values[-1])


def check_swept(data: xr.Dataset, parameter: str, where: str) -> None:
    """Refuse a parameter that is not swept."""
    known = grid_of(data)
    if parameter not in known:
        hint = suggestion(parameter, known, what="swept") if known else "nothing is swept"
        raise HdicaError(f"{where}: {parameter!r} is not a swept parameter of the study ({hint})")


def noise_of(groups: Iterable[xr.Dataset]) -> str:
    """``shared`` if cells of any of some methods share their noise, else ``own``."""
    return "shared" if any(map(shares_noise, groups)) else "own"


def over(parts: Mapping[str, xr.Dataset], dim: str, *counts: str) -> xr.Dataset:
    """Results of several methods along a new dimension; NaN where one lacks what others have.

    Counts are 0 there: a method without some n of another has no seeds at it.
    """
    index = xr.DataArray(list(parts), dims=dim, name=dim)
    every = list(parts.values())
    out = xr.concat(every, dim=index, join="outer", data_vars="all", coords="minimal")
    return out.assign({name: out[name].fillna(0).astype(int) for name in counts})


OF_BASELINES = {
    "baseline_mean": "mean of {v} over seeds of a baseline at its largest n",
    "baseline_se": "standard error of this mean",
    "baseline_n": "largest n of a baseline, NaN without",
}


def baselines(tree: xr.DataTree, methods: Iterable[str], variable: str) -> xr.Dataset:
    """What is drawn and not judged, over ``baseline``; NaN before there are enough samples."""
    parts = {}
    for name, data in groups(tree, methods).items():
        values, n = at_top(done(data, variable))
        runs = values if "seed" in values.dims else values.expand_dims("seed")
        each = moments(runs, along="").assign(n=np.nan if n is None else n)
        parts[name] = xr.Dataset({key: each[key.split("_")[1]] for key in OF_BASELINES})
    return over(parts, "baseline") if parts else xr.Dataset()


def compared(
    tree: xr.DataTree,
    settings: Convergence | Distances | Support,
    variable: str,
    along: str,
    compare: Callable[[xr.Dataset, float], xr.Dataset],
    *counts: str,
) -> xr.Dataset:
    """What ``compare(data, level)`` gives for each simulation, over ``simulation``.

    The level is that of the study over the number of cells in which a variable is tested along a
    dimension.
    """
    each, own = groups(tree, names(settings.simulation)), {"n", "seed", along}
    sizes = [finished(data, variable).sizes.items() for data in each.values()]
    tests = max(sum(math.prod(size for d, size in one if d not in own) for one in sizes), 1)
    level = settings.level / tests
    parts = {name: compare(data, level) for name, data in each.items()}
    out = over(parts, "simulation", *counts) if parts else xr.Dataset()
    out.attrs = {"limit_method": settings.limit, "level": settings.level, "tests": tests}
    out.attrs |= {"level_each": level, "control": settings.control}
    return out.assign_attrs(noise=noise_of(each.values())) if parts else out


def offered(tree: xr.DataTree, role: Role, *axes: str, n: bool | None = None) -> str:
    """The first method of a role that has the first order parameter over given dimensions.

    ``n`` says whether it must have a dimension n; empty if there is none.
    """
    record, known = system_of(tree), gives(tree)
    if record is None:
        return ""
    overlap = record.order_parameters[0]
    allowed = [(*axis.split(), *overlap.dims) for axis in axes]
    for method in record.with_role(role):
        has = known.get(method.name)
        if has and has.outputs.get(overlap.name) in allowed and n in (None, has.n):
            return method.name
    return ""


def keeping(tree: xr.DataTree, output: str, *dims: str) -> tuple[list[str], list[str]]:
    """Simulations with n, and methods without seeds, that have an output over these dimensions."""
    known = {m: has for m, has in gives(tree).items() if has.outputs.get(output) == dims}
    runs = [m for m, has in known.items() if has.stochastic and has.n]
    return runs, [m for m, has in known.items() if not has.stochastic]


def numeric(tree: xr.DataTree, method: str) -> list[str]:
    """Swept parameters of a method with two values or more, which are numbers, in order."""
    data = tree[method].to_dataset()
    swept = [d for d in grid_of(data) if d != SAMPLE]
    return [d for d in swept if data[d].dtype.kind in "fiu" and data.sizes[d] > 1]


def control(tree: xr.DataTree, swept: list[str]) -> str:
    """The first of some swept parameters that has critical values; empty if none has."""
    record = system_of(tree)
    controls = [] if record is None else [one.name for one in record.controls]
    return next((name for name in controls if name in swept), "")


TIMES = ("sup_time", "end")
"""Variables that are times."""
UNITS = dict.fromkeys(TIMES, "samples per dimension (k/n)")
TEXT = {"verdict", "corrected_verdict", "why", "what", "where", "origin", "erratum"}


Values = NDArray[np.generic] | Sequence[object]
Cell = Mapping[str, "tuple[tuple[str, ...], Values] | float | str"]
"""Variables of one cell: a number or a text, or own dimensions with values."""


def assembled(
    cells: Sequence[Cell], grid: Sequence[str], coords: Mapping[str, Values]
) -> xr.Dataset:
    """All cells, of the same variables, as one dataset over the grid and their own dimensions.

    The last dimension of the grid is the fastest. ``coords`` has the values of its dimensions and
    of the variables'; an own dimension may lack them.
    """
    shape = tuple(len(coords[d]) for d in grid)
    variables = {}
    for name, first in cells[0].items():
        own = first[0] if isinstance(first, tuple) else ()
        every = (cell[name] for cell in cells)
        values = np.array([one[1] if isinstance(one, tuple) else one for one in every])
        variables[name] = ((*grid, *own), values.reshape((*shape, *values.shape[1:])))
    return xr.Dataset(variables, coords=dict(coords))


def cellwise(
    function: Callable[..., Cell],
    *columns: tuple[xr.DataArray, Sequence[str]],
    coords: Mapping[str, Values] | None = None,
) -> xr.Dataset:
    """What a function of arrays gives in every cell, assembled.

    Columns are values with their own dimensions, in whose order the function takes them. The grid
    is what the first column has beyond its own; the others are over any part of it. ``coords`` are
    those of the results' own dimensions.
    """
    first, own = columns[0]
    grid = dims_of(first, *own)
    cell = first.isel(dict.fromkeys(own, 0), drop=True)
    arrays = [one.broadcast_like(cell).transpose(*grid, *dims).values for one, dims in columns]
    shape = [first.sizes[d] for d in grid]
    cells = [function(*(one[i] for one in arrays)) for i in np.ndindex(*shape)]
    return assembled(cells, grid, {d: first[d].values for d in grid} | dict(coords or {}))


def interval_names(name: str, what: str) -> dict[str, str]:
    """Long names of both ends of the 95 % interval of a variable, by their names."""
    both = {"low": "lower", "high": "upper"}
    return {f"{name}_{k}": f"{end} end of the 95 % interval of {what}" for k, end in both.items()}


def exponent_names(name: str, what: str, of: str = "") -> dict[str, str]:
    """Long names of a fitted exponent of n, by its fields; ``of`` says of what it is."""
    return {
        **interval_names(name, f"{what}{of}"),
        f"{name}_n_from": f"smallest n in the fit of {what}{of}",
        f"{name}_resolved": f"1 where {what}{of} is determined by the data",
        f"{name}_error": f"standard error of {what}{of}",
    }


def units_by(time: xr.DataArray) -> dict[str, str]:
    """Units of variables by the clock of the dimension ``time``."""
    return dict.fromkeys(TIMES, str(time.attrs.get("units", UNITS[TIMES[0]])))


def described(
    data: xr.Dataset,
    table: Mapping[str, str],
    variable: str = "",
    units: Mapping[str, str] = UNITS,
    **names: str,
) -> xr.Dataset:
    """The dataset with ``long_name`` and ``units`` on every variable.

    The table has ``{v}`` for the output that was looked at, ``variable``, and other names in
    braces; what is not among the units has none.
    """
    for name, values in data.data_vars.items():
        values.attrs["long_name"] = table[str(name)].format(v=variable, **names)
        if name not in TEXT:
            values.attrs["units"] = units.get(str(name), "1")
    return data
