"""Answer a question about results: select by coordinate, average over seeds, tabulate."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import as_number
from hdica.systems.axes import canonical, shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SHOWN = 16
"""Values of a coordinate that a message lists."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse_selection(given: Sequence[str]) -> dict[str, str]:
    """Read ``dim=value`` pairs as a user types them."""
    found: dict[str, str] = {}
    for text in given:
        dim, sign, value = text.partition("=")
        if not sign or not dim.strip() or not value.strip():
            raise HdicaError(f"--sel {text!r} is not allowed (dim=value, for example tau=0.05)")
        if dim.strip() in found:
            raise HdicaError(f"--sel {dim.strip()} is given twice (dim=value1,value2 takes both)")
        found[dim.strip()] = value.strip()
    return found


def choose_method(tree: xr.DataTree, dims: Sequence[str], method: str | None = None) -> str:
    """The method asked for, or the first of the study that has all the dimensions."""
    names = methods(tree)
    if method is not None:
        if method not in names:
            raise HdicaError(
                f"--method {method!r} is not in these results ({suggestion(method, names)})"
            )
        return method
    for name in names:
        if all(dim in tree[name].dims for dim in dims):
            return name
    known = list(dict.fromkeys(str(d) for name in names for d in tree[name].dims))
    for dim in dims:
        if dim not in known:
            raise HdicaError(f"--sel {dim} is not a dimension ({suggestion(dim, known)})")
    raise HdicaError(f"no method has all the dimensions {', '.join(dims)} (choose with --method)")


def methods(tree: xr.DataTree) -> list[str]:
    """Methods of a store, in the order of its study."""
    import json

    order = list(json.loads(tree.attrs.get("study_yaml") or "{}").get("methods", {}))
    return sorted(tree.children, key=lambda name: order.index(name) if name in order else 99)


def _listed(values: np.ndarray) -> str:
    texts = [shown(v) for v in values.tolist()]
    if len(texts) <= SHOWN:
        return ", ".join(texts)
    return f"{', '.join(texts[: SHOWN - 2])}, ... {texts[-1]} ({len(texts)} values)"


def _number(text: str, dim: str) -> float:
    """A number as a grid writes it: float() would also read nan, 1_0 and other digits."""
    quotient = as_number(text) if "/" in text else text
    if isinstance(quotient, float) and math.isfinite(quotient):
        return quotient
    plain = NUMBER.fullmatch(text)
    if plain and math.isfinite(found := float(text)):
        return found
    finite = "finite " if plain or text.lower().lstrip("+-") in ("nan", "inf", "infinity") else ""
    raise HdicaError(f"--sel {dim}={text} is not allowed (a {finite}number is needed)")


def _equal(values: np.ndarray, wanted: float) -> np.ndarray:
    """Which values are a number: exactly if they are whole, else in the digits that are shown."""
    if values.dtype.kind in "iu":
        return np.asarray(values == wanted)
    found = np.abs(values - wanted) <= 1e-11 * abs(wanted)
    for place in np.flatnonzero(found):
        found[place] = canonical(values[place]) == canonical(wanted)
    return np.asarray(found)


def _between(values: np.ndarray, text: str, dim: str) -> list[int]:
    """Where the values of a range ``a:b`` lie, both ends included, open where one is left out."""
    low, high = (part.strip() for part in text.split(":", 1))
    inside = np.ones(values.shape, dtype=bool)
    if low:
        first = _number(low, dim)
        inside &= (values >= first) | _equal(values, first)
    if high:
        last = _number(high, dim)
        inside &= (values <= last) | _equal(values, last)
    if low and high and first > last:
        raise HdicaError(f"--sel {dim}={text} is not allowed (low:high, the smaller number first)")
    if not inside.any():
        raise HdicaError(f"no {dim} lies in {text} (values: {_listed(values)})")
    return [*np.flatnonzero(inside).tolist()]


def _positions(values: np.ndarray, text: str, dim: str, nearest: bool) -> list[int]:
    """Where one part of a selection lies: a value, or a range."""
    if values.dtype.kind not in "fiu":
        found = np.flatnonzero([str(value) == text for value in values.tolist()])
        if not found.size:
            raise HdicaError(f"{dim}={text} is not there (values: {_listed(values)})")
        return [int(found[0])]
    if ":" in text:
        return _between(values, text, dim)
    wanted = _number(text, dim)
    place = int(np.argmin(np.abs(values - wanted)))
    # A whole number above 2**53 is no float: its neighbour would be taken for it.
    whole = values.dtype.kind in "iu" and Decimal(text) != int(values[place])
    if not nearest and (whole or not _equal(values, wanted)[place]):
        raise HdicaError(
            f"{dim}={text} is not there (values: {_listed(values)}; --nearest takes the closest)"
        )
    return [place]


def select(data: xr.Dataset, selection: dict[str, str], nearest: bool = False) -> xr.Dataset:
    """Select by coordinate: ``value``, ``value1,value2`` or ``low:high``.

    A single value drops the dimension and stays as a scalar coordinate. If ``nearest``, the closest
    value is taken where the exact one is not there.
    """
    for dim, text in selection.items():
        if dim not in data.dims:
            known = [str(d) for d in data.dims]
            raise HdicaError(f"--sel {dim} is not a dimension ({suggestion(dim, known)})")
        values = data[dim].to_numpy()
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):
            raise HdicaError(f"--sel {dim}={text} is not allowed (a value before and after each ,)")
        places = [place for part in parts for place in _positions(values, part, dim, nearest)]
        single = "," not in text and ":" not in text
        data = _at(data, dim, places[0]) if single else data.isel({dim: _indexer(places)})
    return data


def _at(data: xr.Dataset, dim: str, place: int) -> xr.Dataset:
    """The data at one place of a dimension, whose coordinate is then a scalar.

    The same as ``data.isel({dim: place})``, which takes the scalar out of the index: for that
    xarray loads dask.array, and with it SciPy, longer than all else that a query waits for.
    """
    from xarray import Variable

    at = data[dim].variable
    value = Variable((), np.asarray(at.values[place]), at.attrs, at.encoding, fastpath=True)
    return data.drop_vars(dim).isel({dim: place}).assign_coords({dim: value})


def _indexer(places: list[int]) -> slice | list[int]:
    """Distinct places; neighbours as a slice, which is read faster than one by one."""
    distinct = list(dict.fromkeys(places))
    run = range(distinct[0], distinct[0] + len(distinct))
    return slice(run.start, run.stop) if distinct == [*run] else distinct


def outputs(data: xr.Dataset, names: Sequence[str] = (), dims: Sequence[str] = ()) -> list[str]:
    """Variables to show.

    Those asked for; or the first output that has all the selected dimensions, and the outputs
    of the same dimensions.
    """
    known = [str(name) for name in data.data_vars]
    for name in names:
        if name not in known:
            raise HdicaError(f"--var {name!r} is not there ({suggestion(name, known)})")
    if names:
        return list(names)
    wanted = {dim for dim in dims if dim in data.dims}
    own = [name for name in str(data.attrs.get("outputs", "")).split() if name in known] or known
    fit = [name for name in own if wanted <= set(data[name].dims)]
    if not fit:
        raise HdicaError(f"no output has all the dimensions {', '.join(dims)} (choose with --var)")
    return [name for name in fit if data[name].dims == data[fit[0]].dims]


def has_mean(values: xr.DataArray) -> bool:
    """Whether values are amounts: a mean of texts or of codes, such as status, says nothing."""
    return values.dtype.kind in "fiu" and "flag_values" not in values.attrs


def averaged_in_a_table(data: xr.Dataset, variables: Sequence[str]) -> list[str]:
    """What a table averages over unless it is told: seeds, where what it shows has a mean."""
    shown = [data[name] for name in variables if name in data]
    return ["seed"] if "seed" in data.dims and all(map(has_mean, shown)) else []


def average(data: xr.Dataset, dims: Sequence[str], names: Sequence[str]) -> xr.Dataset:
    """Mean over some dimensions, with the standard error and the count behind each variable.

    Points without a value are left out and not counted.
    """
    check_means(data, dims, names)
    reduced: dict[str, Any] = {}
    for name in names:
        over = [dim for dim in dims if dim in data[name].dims]
        if not over:
            reduced[name] = data[name]
            continue
        values = data[name].astype(float)
        count = values.count(over)
        reduced[name] = values.mean(over).assign_attrs(data[name].attrs)
        reduced[f"{name}_se"] = _standard_error(values, over, has_shared_noise(data)).assign_attrs(
            {"long_name": f"standard error of {name}", "units": "1"}
        )
        reduced[f"{name}_count"] = count
    left = data.drop_dims(list(dims)).coords
    return type(data)(reduced, coords=left, attrs=data.attrs)


def check_means(data: xr.Dataset, dims: Sequence[str], names: Sequence[str]) -> None:
    """Refuse to average over what is no dimension, or what has no mean."""
    for place, dim in enumerate(dims):
        if dim in dims[:place]:
            raise HdicaError(f"--mean {dim} is given twice (each dimension only once)")
        if dim not in data.dims:
            known = [str(d) for d in data.dims]
            one = f"--mean {dim} is not allowed (--sel takes a single {dim})"
            none = f"--mean {dim} is not a dimension ({suggestion(dim, known)})"
            raise HdicaError(one if dim in data.coords else none)
    for name in names:
        if not has_mean(data[name]) and set(dims) & set(data[name].dims):
            raise HdicaError(f"--mean {dims[0]} is not allowed with --var {name} (it has no mean)")


def has_shared_noise(data: xr.Dataset) -> bool:
    """Whether points share the noise of their seed, so that seeds alone are independent."""
    return data.attrs.get("noise") == "shared"


def _standard_error(values: xr.DataArray, over: list[str], shared: bool) -> xr.DataArray:
    """Standard error of a mean; where points share their noise, seeds alone are independent."""
    if shared and "seed" in over:
        values, over = values.mean([dim for dim in over if dim != "seed"]), ["seed"]
    count = values.count(over)
    if int(count.max()) <= 1:
        return values.mean(over) * np.nan
    return values.std(over, ddof=1) / np.sqrt(count)


def dim_order(tree: xr.DataTree, method: str) -> list[str]:
    """Dimensions of a method: swept parameters, ``n``, ``seed``, then the outputs' own."""
    group = tree[method].to_dataset()
    order = [str(d) for d in group["status"].dims]
    return order + [str(d) for d in group.dims if d not in order]


def table(data: xr.Dataset, order: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of a selection, without those that have no value at all.

    Coordinates that ``order`` does not name come first.
    """
    return without_empty(rows(data, order), [str(name) for name in data.data_vars])


def rows(data: xr.Dataset, order: Sequence[str] = ()) -> pd.DataFrame:
    """All rows of a selection, in the columns of :func:`table`."""
    import pandas as pd

    if not data.dims:
        row = {str(k): [v.item()] for k, v in {**data.coords, **data.data_vars}.items()}
        frame = pd.DataFrame(row)
    else:
        frame = data.to_dataframe().reset_index()
    ranked = [str(c) for c in data.coords if c != "step"]
    ranked.sort(key=lambda c: order.index(c) if c in order else -1)
    return frame[[*ranked, *map(str, data.data_vars)]]


def without_empty(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Rows that have a value in some column of floats among ``names``, if there is any such."""
    values = [name for name in names if frame[name].dtype.kind == "f"]
    return frame[frame[values].notna().any(axis=1)].reset_index(drop=True) if values else frame


def query(
    tree: xr.DataTree,
    selection: dict[str, str],
    method: str | None = None,
    variables: Sequence[str] = (),
    mean: Sequence[str] = (),
    nearest: bool = False,
) -> xr.Dataset:
    """Answer a question about a published store: the selected variables, loaded.

    A selection is by dimension: ``value``, ``value1,value2`` or ``low:high``. Without a method it
    is the first of the study that has all the dimensions, without variables that method's first
    outputs with them; ``mean`` are dimensions to average over, and ``nearest`` takes the closest
    coordinate.
    """
    data = selected(tree, selection, method, variables, mean, nearest)
    return average(data, mean, [str(name) for name in data.data_vars]) if mean else data


def selected(
    tree: xr.DataTree,
    selection: dict[str, str],
    method: str | None = None,
    variables: Sequence[str] = (),
    mean: Sequence[str] = (),
    nearest: bool = False,
) -> xr.Dataset:
    """The variables that :func:`query` averages, loaded, before it does."""
    chosen = choose_method(tree, list(selection), method)
    data = tree[chosen].to_dataset()
    names = outputs(data, variables, [*selection, *mean])
    data = select(data, selection, nearest)[names].load()
    data.attrs = {**tree.attrs, **tree[chosen].attrs}
    return data
