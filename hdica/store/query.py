"""Answer a question about published results: select by coordinate, average, tabulate, write.

NumPy computes means and scalar selections here: in xarray both load dask.array, and with it SciPy,
longer than all else that a query waits for.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Hashable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hdica.errors import HdicaError, printable, suggestion
from hdica.ingredients.plain import as_number
from hdica.status import DONE, LEFT_OUT, STATUS_NAMES
from hdica.store.paths import check_file, write_file
from hdica.store.results import open_results, stable
from hdica.systems.values import canonical, shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LISTED = 16  # values of a coordinate that a message lists


class Answer(NamedTuple):
    """Answer to a question about results on disk."""

    data: xr.Dataset  # the selected variables, or their means, loaded
    order: list[str]  # dimensions in the order of the study
    title: str  # method, and what it is averaged over
    notes: list[str]  # sentences for the reader


def answer(
    results: str | Path,
    selection: dict[str, str],
    method: str | None = None,
    variables: Sequence[str] = (),
    mean: Sequence[str] = (),
    nearest: bool = False,
    as_table: bool = False,
) -> Answer:
    """Ask results on disk as :func:`query` does; of a study published meanwhile, old or new.

    If ``as_table``, means over seeds are taken unless ``mean`` or the selection names seeds.
    """

    def ask() -> Answer:
        tree = open_results(results)
        chosen, over = choose_method(tree, list(selection), method), list(mean)
        if as_table and not over and "seed" not in selection:
            every = tree[chosen].to_dataset()
            means = all(_has_mean(every[name]) for name in variables if name in every)
            over = ["seed"] if "seed" in every.dims and means else []
        place = _nearest_there(tree[chosen].to_dataset(), selection) if nearest else selection
        data = query(tree, place, chosen, variables, over, nearest)
        title = f"{chosen}, mean over {', '.join(over)}" if over else chosen
        notes, missing = [], _unfinished(tree, place, chosen, nearest)
        if missing:
            notes.append(f"of these points {missing} (they have no value, or none at the end)")
        notes += _codes(data)
        others = [name for name in methods(tree) if name != chosen]
        if as_table and method is None and others:
            notes.append(f"other methods: {', '.join(others)} (choose with --method)")
        return Answer(data, dim_order(tree, chosen), title, notes)

    return stable(results, ask, whole=True)


def _codes(data: xr.Dataset) -> list[str]:
    """What the numbers of variables stand for that are codes, a sentence each."""
    notes = []
    for name, variable in data.data_vars.items():
        words = str(variable.attrs.get("flag_meanings", "")).split()
        text = ", ".join(f"{code} {word}" for code, word in enumerate(words))
        about = text or str(variable.attrs.get("long_name", ""))
        notes += [f"{name}: {about}"] if about.startswith("0 ") else []
    return notes


def query(
    tree: xr.DataTree,
    selection: dict[str, str],
    method: str | None = None,
    variables: Sequence[str] = (),
    mean: Sequence[str] = (),
    nearest: bool = False,
) -> xr.Dataset:
    """Answer a question about a published store: the selected variables, loaded.

    The ``selection`` has for each dimension ``value``, ``value1,value2`` or ``low:high``, of which
    ``nearest`` takes the closest. Method and variables are by default the first of the study that
    have all its dimensions; ``mean`` are those to average over.
    """
    chosen = choose_method(tree, list(selection), method)
    data = tree[chosen].to_dataset()
    names = outputs(data, variables, [*(dim_of(data, name) for name in selection), *mean])
    data = select(data, selection, nearest)[names].load()
    data.attrs = {**tree.attrs, **tree[chosen].attrs}
    return average(data, mean, names) if mean else data


def parse_selection(texts: Sequence[str]) -> dict[str, str]:
    """Read ``dim=value`` pairs as a user types them."""
    selection: dict[str, str] = {}
    for text in texts:
        dim, _, value = (part.strip() for part in text.partition("="))
        if not dim or not value:
            raise HdicaError(f"--sel {text!r} is not allowed (dim=value, for example tau=0.05)")
        if dim in selection:
            raise HdicaError(f"--sel {dim} is given twice (dim=value1,value2 takes both)")
        selection[dim] = value
    return selection


def methods(tree: xr.DataTree) -> list[str]:
    """Methods of a store, in the order of its study."""
    order = json.loads(tree.attrs.get("study_yaml") or "{}").get("methods", {})
    return [name for name in dict.fromkeys([*order, *tree.children]) if name in tree.children]


def choose_method(tree: xr.DataTree, dims: Sequence[str], method: str | None = None) -> str:
    """The method of that name, or the first of the study that has all the dimensions."""
    names = methods(tree)
    if method is not None:
        if method not in names:
            raise HdicaError(
                f"--method {method!r} is not in these results ({suggestion(method, names)})"
            )
        return method
    able = {name: selectable(tree[name].to_dataset()) for name in names}
    for name in names:
        if all(dim in able[name] for dim in dims):
            return name
    _check_dims("--sel", dims, dict.fromkeys(d for name in names for d in able[name]))
    raise HdicaError(f"no method has all the dimensions {', '.join(dims)} (choose with --method)")


def selectable(data: xr.Dataset) -> list[Hashable]:
    """Dimensions, and parameters that lie along one of them with others."""
    beside = [k for k, one in data.coords.items() if one.ndim == 1 and k not in data.dims]
    return [*data.dims, *(name for name in beside if name != "step")]


def dim_of(data: xr.Dataset, name: str) -> str:
    """The dimension along which a parameter lies: mostly its own."""
    beside = name in data.coords and name not in data.dims and data[name].ndim == 1
    return str(data[name].dims[0]) if beside else name


def _check_dims(option: str, dims: Sequence[str], every: Iterable[Hashable]) -> None:
    names = [str(name) for name in every]
    for dim in dims:
        if dim not in names:
            hint = suggestion(dim, names)
            raise HdicaError(f"{option} {dim} is not a dimension ({hint})")


def outputs(data: xr.Dataset, names: Sequence[str] = (), dims: Sequence[str] = ()) -> list[str]:
    """Variables to show: ``names``, or the first outputs that have all the selected dimensions."""
    every = [str(name) for name in data.data_vars]
    for name in names:
        if name not in every:
            raise HdicaError(f"--var {name!r} is not there ({suggestion(name, every)})")
    if names:
        return list(names)
    wanted = {dim for dim in dims if dim in data.dims}
    own = [name for name in str(data.attrs.get("outputs", "")).split() if name in every] or every
    fit = [name for name in own if wanted <= set(data[name].dims)]
    if not fit:
        raise HdicaError(f"no output has all the dimensions {', '.join(dims)} (choose with --var)")
    return [name for name in fit if data[name].dims == data[fit[0]].dims]


def dim_order(tree: xr.DataTree, method: str) -> list[str]:
    """Dimensions of a method: swept parameters, ``n``, ``seed``, then the outputs' own."""
    group = tree[method].to_dataset()
    return list(dict.fromkeys(map(str, (*group["status"].dims, *group.dims))))


def select(data: xr.Dataset, selection: dict[str, str], nearest: bool = False) -> xr.Dataset:
    """Select by coordinate, as :func:`query` does; a single value stays as a scalar coordinate."""
    # Parameters beside a dimension first: they go with a value of it.
    ordered = sorted(selection.items(), key=lambda one: dim_of(data, one[0]) == one[0])
    whole = data
    for name, text in ordered:
        _check_dims("--sel", [name], selectable(data))
        values, dim = data[name].to_numpy(), dim_of(data, name)
        parts = [part.strip() for part in text.split(",")]
        if values.dtype.kind not in "fiu" and text in values.astype(str):
            parts = [text]  # a label may have commas
        if not all(parts):
            raise HdicaError(
                f"--sel {name}={text} is not allowed (a value before and after each ,)"
            )
        try:
            places = [place for part in parts for place in _places(values, part, name, nearest)]
        except HdicaError:
            if values.size < whole[name].size:
                # It is not there, or not where others are.
                for part in parts:
                    _places(whole[name].to_numpy(), part, name, nearest)
                chosen = " and ".join(f"{one} = {value}" for one, value in selection.items())
                raise HdicaError(f"no point has {chosen} (each of them is there)") from None
            raise
        single = parts == [text] and ":" not in text and name == dim
        data = _at(data, dim, places[0]) if single else data.isel({dim: _indexer(places)})
    return data


def _nearest_there(data: xr.Dataset, selection: dict[str, str]) -> dict[str, str]:
    """A selection of single numbers, moved to the nearest cell that is not left out.

    The distance is in units of each axis, from its least to its greatest value.
    """
    numbers = {
        name: float(number)
        for name, text in selection.items()
        if name in data["status"].dims
        and data[name].dtype.kind in "fiu"
        and isinstance(number := as_number(text), int | float)
        and math.isfinite(number)
    }
    if not numbers:
        return selection
    absent = data["status"].to_numpy() == LEFT_OUT
    if not absent.any():
        return selection
    dims = data["status"].dims
    others = tuple(place for place, dim in enumerate(dims) if dim not in numbers)
    distance = np.where(absent.all(axis=others), np.inf, 0.0)
    axes = [dim for dim in dims if dim in numbers]
    for place, dim in enumerate(axes):
        values = data[dim].to_numpy().astype(float)
        away = ((values - numbers[dim]) / (np.ptp(values) or 1.0)) ** 2
        distance += away.reshape([-1 if k == place else 1 for k in range(len(axes))])
    places = np.unravel_index(np.argmin(distance), distance.shape)
    cell = {dim: data[dim].to_numpy()[at].item() for dim, at in zip(axes, places, strict=True)}
    return selection | {dim: repr(value) for dim, value in cell.items()}


def _at(data: xr.Dataset, dim: str, place: int) -> xr.Dataset:
    """The data at one place of a dimension, whose coordinate is then a scalar, as by ``isel``."""
    from xarray import Variable

    at = data[dim].variable
    value = Variable((), np.asarray(at.values[place]), at.attrs, at.encoding, fastpath=True)
    return data.drop_vars(dim).isel({dim: place}).assign_coords({dim: value})


def _indexer(places: list[int]) -> slice | list[int]:
    """Distinct places; neighbours as a slice, which is read faster than one by one."""
    distinct = list(dict.fromkeys(places))
    run = range(distinct[0], distinct[0] + len(distinct))
    return slice(run.start, run.stop) if distinct == [*run] else distinct


def _places(values: np.ndarray, text: str, dim: str, nearest: bool) -> list[int]:
    """Where one part of a selection lies: a word, a number, or a range of numbers."""
    kind, hint = values.dtype.kind, ""
    if kind not in "fiu":
        equal = values.astype(str) == text
    elif ":" in text:
        low, high = (part.strip() for part in text.split(":", 1))
        first = _number(low, dim, kind) if low else -math.inf
        last = _number(high, dim, kind) if high else math.inf
        if first > last:
            allowed = "low:high, the smaller number first"
            raise HdicaError(f"--sel {dim}={text} is not allowed ({allowed})")
        values = _as_shown(values, first, last)
        if not (places := [*np.flatnonzero((values >= first) & (values <= last)).tolist()]):
            raise HdicaError(f"no {dim} lies in {text} (values: {_listed(values)})")
        return places
    else:
        wanted = _number(text, dim, kind)
        if nearest:
            wanted = values[np.argmin(np.abs(values - float(wanted)))]
        wanted = canonical(wanted) if kind == "f" else wanted
        equal = _as_shown(values, wanted) == wanted
        hint = "; --nearest takes the closest"
    if not equal.any():
        raise HdicaError(f"{dim}={text} is not there (values: {_listed(values)}{hint})")
    return [*np.flatnonzero(equal).tolist()]


def _as_shown(values: np.ndarray, *numbers: float) -> np.ndarray:
    """Floats with the digits that are shown, where that may decide how they compare with one."""
    if values.dtype.kind == "f":
        near = [np.abs(values - one) <= 1e-11 * abs(one) for one in numbers if math.isfinite(one)]
        close = np.any(near, axis=0)
        if close.any():
            values = values.copy()
            values[close] = np.char.mod("%.12g", values[close]).astype(float)
    return values


def _number(text: str, dim: str, kind: str) -> float:
    """A number as a grid writes it: float() would also read nan, 1_0 and other digits."""
    number = as_number(text)
    if isinstance(number, int | float) and math.isfinite(number):
        # A whole number above 2**53 is no float: its neighbour would be taken for it.
        return number if kind != "f" else canonical(number)
    infinite = number != text or text.lower().lstrip("+-") in ("nan", "inf", "infinity")
    allowed = "a finite number" if infinite else "a number"
    raise HdicaError(f"--sel {dim}={text} is not allowed ({allowed} is needed)")


def _listed(values: np.ndarray) -> str:
    texts = [shown(v) for v in values.tolist()]
    if len(texts) <= LISTED:
        return ", ".join(texts)
    return f"{', '.join(texts[: LISTED - 2])}, ... {texts[-1]} ({len(texts)} values)"


def average(data: xr.Dataset, dims: Sequence[str], names: Sequence[str]) -> xr.Dataset:
    """Mean over some dimensions, and the count behind each variable; over seeds a standard error.

    Seeds alone are independent: of means over other dimensions, too, the error is that over seeds
    of each seed's mean. Points without a value are left out and not counted; variables without any
    of the dimensions stay as they are. ``HdicaError`` if one is no dimension or is named twice, or
    a variable has no mean.
    """
    for place, dim in enumerate(dims):
        if dim in dims[:place]:
            raise HdicaError(f"--mean {dim} is given twice (each dimension only once)")
        if dim in data.coords and dim not in data.dims:
            raise HdicaError(f"--mean {dim} is not allowed (--sel takes a single {dim})")
        _check_dims("--mean", [dim], data.dims)
    for name in names:
        if not _has_mean(data[name]) and set(dims) & set(data[name].dims):
            raise HdicaError(f"--mean {dims[0]} is not allowed with --var {name} (it has no mean)")
    means: dict[str, Any] = {}
    for name in names:
        over = [dim for dim in dims if dim in data[name].dims]
        means |= _means(data, name, over) if over else {name: data[name]}
    return type(data)(means, coords=data.drop_dims(list(dims)).coords, attrs=data.attrs)


def _has_mean(values: xr.DataArray) -> bool:
    """Whether values are amounts: a mean of texts or of codes, such as status, says nothing."""
    return values.dtype.kind in "fiu" and "flag_values" not in values.attrs


def _means(data: xr.Dataset, name: str, over: list[str]) -> dict[str, Any]:
    """Mean, standard error and count of one variable, the same bits as xarray computes."""
    from xarray import Variable

    variable = data[name].variable
    dims = [dim for dim in variable.dims if dim not in over]
    values = variable.to_numpy().astype(float)
    axes = tuple(variable.get_axis_num(over))
    count = np.sum(~np.isnan(values), axis=axes)
    with warnings.catch_warnings():
        # Where nothing has a value, the mean and the error are NaN, which NumPy warns of.
        warnings.simplefilter("ignore", RuntimeWarning)
        columns = {name: (np.nanmean(values, axis=axes), variable.attrs)}
        if "seed" in over:
            others = tuple(variable.get_axis_num([dim for dim in over if dim != "seed"]))
            values = np.nanmean(values, axis=others, keepdims=True)
            independent = np.sum(~np.isnan(values), axis=axes)
            error = np.nanstd(values, axis=axes, ddof=1) / np.sqrt(independent)
            about = {"long_name": f"standard error of {name}", "units": "1"}
            columns[f"{name}_se"] = (error, about)
    about = {"long_name": f"number of values of {name}", "units": "1"}
    columns[f"{name}_count"] = (count, about)
    return {
        column: Variable(dims, np.asarray(numbers), attrs, fastpath=True)
        for column, (numbers, attrs) in columns.items()
    }


def _unfinished(tree: xr.DataTree, selection: dict[str, str], method: str, nearest: bool) -> str:
    """How many of the selected points are not done, in words; empty if all are."""
    status = tree[method].to_dataset()[["status"]]
    chosen = {name: v for name, v in selection.items() if dim_of(status, name) in status.dims}
    values = select(status, chosen, nearest)["status"].to_numpy()
    counts = [
        (name, int((values == code).sum())) for code, name in enumerate((*STATUS_NAMES, "left out"))
    ]
    return ", ".join(f"{n} are {name}" for name, n in counts if n and name != STATUS_NAMES[DONE])


def table(data: xr.Dataset, order: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of a selection that have a number; coordinates that ``order`` does not name go first."""
    import pandas as pd

    if data.dims:
        frame = data.to_dataframe().reset_index()
    else:
        frame = pd.DataFrame({name: [data[name].item()] for name in data.variables})
    coords = [str(name) for name in data.coords if name != "step"]
    coords.sort(key=lambda name: order.index(name) if name in order else -1)
    frame = frame[[*coords, *map(str, data.data_vars)]]
    numbers = [name for name in data.data_vars if frame[name].dtype.kind == "f"]
    if not numbers:
        return frame
    return frame[frame[numbers].notna().any(axis=1)].reset_index(drop=True)


BINARY = {"netcdf": ".nc", "parquet": ".parquet"}  # not for a terminal
FORMATS = ("csv", "json", *BINARY, "-")
COLUMNS = "columns"  # metadata of a Parquet file: {name: {long_name, units}} as JSON


def check_export(to: str, out: Path | None) -> None:
    """Refuse what cannot be written, before anything is read."""
    if to not in FORMATS:
        raise HdicaError(f"--to {to!r} is not allowed ({suggestion(to, FORMATS)})")
    if out is not None:
        check_file(out)
    elif to in BINARY and sys.stdout.isatty():
        raise HdicaError(
            f"--to {to} is not for a terminal (give --out FILE{BINARY[to]} or redirect)"
        )
    if to == "parquet" and find_spec("pyarrow") is None:
        raise HdicaError("--to parquet needs the library pyarrow (pip install 'hdica[tables]')")


def export(data: xr.Dataset, to: str, out: Path | None, order: Sequence[str] = ()) -> None:
    """Write a loaded selection to a file, or to stdout if ``out`` is None.

    ``to`` is one of :data:`FORMATS`, of which ``-`` is a table; ``order`` has the dimensions in the
    order of a table's columns.
    """
    content: str | bytes
    if to == "netcdf":
        # In memory: where the disk is full, HDF5 ends with what it was doing, not with why.
        content = bytes(data.to_netcdf(engine="h5netcdf"))
    elif to == "parquet":
        content = _parquet(table(data, order), data)
    elif to == "csv":
        content = table(data, order).to_csv(index=False, lineterminator="\n")
    elif to == "json":
        # Not DataFrame.to_json, which writes 15 digits of a number, and at most 17 are needed.
        rows = table(data, order).to_dict("records")
        for row in rows:
            row |= {
                k: None for k, v in row.items() if isinstance(v, float) and not math.isfinite(v)
            }
        content = json.dumps(rows, indent=1) + "\n"
    else:
        text, frame = "no point of this selection has a value", table(data, order)
        if not frame.empty:
            text = frame.to_string(index=False, float_format=lambda v: f"{v:.6g}", na_rep="-")
        content = f"{text}\n"
    if out is not None:
        write_file(out, content.encode() if isinstance(content, str) else content)
    elif isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(printable(content, " \n\t") if sys.stdout.isatty() else content)


def _parquet(frame: pd.DataFrame, data: xr.Dataset) -> bytes:
    """Content of a Parquet file, with attributes, long names and units as its metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def about(column: str) -> dict[str, str]:
        attrs = data[column].attrs if column in data.variables else {}
        return {key: str(attrs[key]) for key in ("long_name", "units") if key in attrs}

    rows = pa.Table.from_pandas(frame, preserve_index=False)
    columns = {name: about(name) for name in rows.schema.names}
    attrs = {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in data.attrs.items()}
    metadata = {**(rows.schema.metadata or {}), **attrs, COLUMNS: json.dumps(columns)}
    fields = [field.with_metadata(columns[field.name]) for field in rows.schema]
    sink = pa.BufferOutputStream()
    pq.write_table(rows.cast(pa.schema(fields, metadata=metadata)), sink)
    return bytes(sink.getvalue())
