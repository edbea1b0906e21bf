"""Vectors and samples of one's own: a list, an array, a ``.npy`` file or a Zarr array.

The normal form of a vector, a feature or an estimate, is the list if it is short, else ``{"vector":
{"file", "n", "sha256"}}``; that of samples, one a row, is ``{"array": rows}`` if there are few
numbers, else ``{"array": {"file", "n", "samples", "sha256"}}``. The digest is that of the numbers
as float64, row by row, and not of the file: data is the same wherever it lies, and
:func:`hdica.ingredients.plain.without_place` leaves that out of keys. A long array in memory has no
file, and exists in this process alone. ``order`` and ``passes`` are keys of samples where they are
not the usual ones. Rows of a file are read as they are needed: it need not fit in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from hdica.errors import DataGone, HdicaError, suggestion
from hdica.ingredients.plain import (
    ARRAY,
    VECTOR,
    Array,
    Indices,
    is_vector,
    recalled,
    remember_vector,
    vector_of,
)
from hdica.inputs.arrays import open_array, reading
from hdica.inputs.place import digest, place, relative

LONGEST = 256
"""Entries of a vector that is written out where it is used; longer ones are named by digests."""
_ALLOWED_VECTOR = "a list of numbers, or the path of a .npy file or a Zarr array below data/"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def vector_input(value: object, name: str) -> object:
    """Normal form of what names a vector; anything else stays as it is.

    A vector is ``{"vector": v}`` with v a list or an array of shape (n,), the path of a ``.npy``
    file or of a Zarr array, relative to the folder of data, or a normal form; ``name`` is the
    field, for the sentence.

    Refused if there is no such array, or one that is no vector: 3 or more finite real numbers, of
    which one is not zero; if it has not the digest that is given.
    """
    if not isinstance(value, Mapping) or not is_vector(value):
        return value
    form = _located(value[VECTOR], f"{name}: vector", {"file", "n", "sha256"}, _ALLOWED_VECTOR)
    if form is None:
        values = _vector(value[VECTOR], name)
        if values.size <= LONGEST:
            return {VECTOR: values.tolist()}
        return {VECTOR: {"n": values.size, "sha256": remember_vector(values)}}
    if "file" not in form:
        return {VECTOR: {"n": vector_of(value).size, "sha256": form["sha256"]}}
    file, where = relative(form["file"]), place(relative(form["file"]))
    values = _vector_at(str(where), digest(where), name)
    sha256 = remember_vector(values)
    _check_same(sha256, form.get("sha256"), f"{name}: vector = {file!r}", "another vector", name)
    return {VECTOR: {"file": file, "n": values.size, "sha256": sha256}}


def _located(
    form: object, what: str, keys: set[str], allowed: str, fields: tuple[str, ...] = ()
) -> dict[str, Any] | None:
    """The form of numbers that are named by a file or a digest; None for the numbers themselves."""
    if isinstance(form, str | PurePath):
        form = {"file": form.as_posix() if isinstance(form, PurePath) else form}
    if not isinstance(form, Mapping) or hasattr(form, "__array__"):
        return None
    plain = form.keys() <= keys and isinstance(form.get("file", ""), str)
    hexadecimal = _SHA256.fullmatch(str(form.get("sha256") or "0" * 64))
    if not plain or not hexadecimal or not form.keys() & {"file", "sha256"}:
        raise HdicaError(f"{what} = {dict(form)!r} is not allowed ({allowed})", fields)
    return dict(form)


def _check_same(sha256: str, expected: str | None, what: str, other: str, field: str) -> None:
    """Refuse numbers in a file that are not those of a digest."""
    if expected not in (None, sha256):
        verb = "these are" if other.endswith("s") else "it is"
        raise DataGone(
            f"{what} is not allowed here (the sha256 of its numbers is {sha256}, not {expected}: "
            f"{verb} {other})",
            [field],
        )


def check_unmasked(values: object, name: str) -> None:
    """Refuse an array with masked entries, which would be read as the numbers under the mask."""
    masked = np.argwhere(np.ma.getmaskarray(values)) if np.ma.isMaskedArray(values) else None
    if masked is not None and len(masked):
        first = ", ".join(map(str, masked[0].tolist()))
        raise HdicaError(
            f"{name}: {len(masked)} masked entries are not allowed, the first at ({first}) (finite "
            "numbers: leave out their rows or columns, or fill them in)",
            [name],
        )


def _vector(entries: Any, name: str) -> Array:
    """An array of float64 of shape (n,) that nobody changes."""
    check_unmasked(entries, name)
    try:
        values = np.asarray(entries)
    except (ValueError, TypeError):  # lists of different lengths; an xarray.Dataset
        values = np.empty((0, 0))
    if values.ndim != 1 or values.size < 3 or values.dtype.kind not in "iuf":
        raise HdicaError(
            f"{name}: vector of shape {values.shape} and type {values.dtype} is not allowed (3 or "
            f"more real numbers along one axis: {_ALLOWED_VECTOR})"
        )
    values = np.array(values, dtype=float)
    with np.errstate(over="ignore"):
        length = float(np.sum(values * values))
    if not 0 < length < np.inf:
        raise HdicaError(
            f"{name}: vector of length {length**0.5:g} is not allowed (finite numbers, of which "
            "one is not zero)"
        )
    values.flags.writeable = False
    return values


@lru_cache(maxsize=16)
def _vector_at(path: str, content: str, name: str) -> Array:
    with reading(path, f"{name}: vector", _ALLOWED_VECTOR):
        stored = open_array(Path(path))
        # What is no vector is refused by its shape, of whatever size it is.
        blank = np.broadcast_to(np.empty((), stored.dtype), stored.shape)
        vector = np.asarray(stored[...]) if len(stored.shape) == 1 else blank
    return _vector(vector, name)


SAMPLES = (
    "samples of your own, one a row (n columns, entries of variance 1): `{array: y.npy}`, a `.npy` "
    "file or a Zarr array below `data/`, or a list; `order: shuffled` draws their order by the "
    "seed, `passes: 3` sees them three times"
)
"""What such a field may hold, for the manual."""
MOST_PASSES = 1_000_000
AS_STORED, SHUFFLED = "given", "shuffled"
_NUMBERS, _MOST_NUMBERS = 2**20, 2**27
"""Numbers that are read at a time, and at most, where a chunk of a store has more rows."""
_ALLOWED = "rows of numbers, or the path of a .npy file or a Zarr array below data/"


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples whose rows are read when they are asked for."""

    rows: Any  # an array of shape (samples, n), in memory or on disk
    sha256: str  # digest of its numbers

    @property
    def shape(self) -> tuple[int, int]:
        """How many samples there are, and their entries n."""
        return int(self.rows.shape[0]), int(self.rows.shape[1])

    @property
    def block(self) -> int:
        """Rows that are read at a time: whole chunks of a store, unless these are too large."""
        chunk, n = getattr(self.rows, "chunks", None) or (1,), self.shape[1]
        return max(1, min(max(_NUMBERS // n, int(chunk[0])), _MOST_NUMBERS // n))

    def read(self, first: int, last: int) -> Array:
        """Rows ``first`` to ``last - 1`` as float64, shape (last - first, n)."""
        return np.ascontiguousarray(self.rows[first:last], dtype=float)

    def taken(self, places: Indices) -> Array:
        """Rows in any order, shape (places, n)."""
        if isinstance(self.rows, np.ndarray):
            return np.ascontiguousarray(self.rows[places], dtype=float)
        return np.ascontiguousarray(self.rows.oindex[places, :], dtype=float)


_IN_MEMORY: dict[str, Samples] = {}


def samples_input(value: object) -> dict[str, Any]:
    """Normal form of what names samples.

    That is an array or rows of numbers of shape (samples, n), or ``{"array": a}`` with a such rows,
    the path of a ``.npy`` file or of a Zarr array relative to the folder of data, or a normal form;
    and ``order``, ``"given"`` or ``"shuffled"``, and ``passes``, a whole number.

    Refused if there is no such array, or one that holds no samples: 1 or more rows of 3 or more
    finite real numbers; if it has not the digest that is given.
    """
    form = dict(value) if isinstance(value, Mapping) else {ARRAY: value}
    if ARRAY not in form or form.keys() - {ARRAY, "order", "passes"}:
        raise HdicaError(
            f"data = {value!r} is not allowed ({{array, order, passes}}: array is {_ALLOWED})",
            ["data"],
        )
    return {ARRAY: _form(form[ARRAY])} | _sequence(form)


def with_array_held(fields: object) -> object:
    """Fields of a system where an array of data has its normal form: too long to become a list."""
    if not isinstance(fields, Mapping):
        return fields
    data = fields.get("data")
    arrays = hasattr(data, "__array__")  # NumPy's, or those of xarray, pandas and Zarr
    rows = data.get(ARRAY) if isinstance(data, Mapping) and not arrays else data
    if not hasattr(rows, "__array__"):
        return fields
    return {**fields, "data": samples_input({ARRAY: data} if arrays else data)}


def _sequence(form: Mapping[str, Any]) -> dict[str, Any]:
    """Order and passes where they are not the usual ones."""
    order, passes = form.get("order", AS_STORED), form.get("passes", 1)
    if order not in (AS_STORED, SHUFFLED):
        near = suggestion(order, (AS_STORED, SHUFFLED))
        raise HdicaError(f"data: order = {order!r} is not allowed ({near})", ["data"])
    if type(passes) is not int or not 1 <= passes <= MOST_PASSES:
        raise HdicaError(
            f"data: passes = {passes!r} is not allowed (a whole number from 1 to {MOST_PASSES})",
            ["data"],
        )
    values = {"order": (order, AS_STORED), "passes": (passes, 1)}
    return {key: value for key, (value, usual) in values.items() if value != usual}


def _form(rows: Any) -> object:
    """Normal form of an array."""
    keys = {"file", "n", "samples", "sha256"}
    form = _located(rows, "data: array", keys, _ALLOWED, ("data",))
    if form is None:
        samples = _of_memory(rows)
        if samples.rows.size <= LONGEST:
            return samples.rows.tolist()
        return _named(_IN_MEMORY.setdefault(samples.sha256, samples))
    if "file" not in form:
        return _named(recalled(_IN_MEMORY, str(form.get("sha256")), "data"))
    file = relative(form["file"])
    return {"file": file, **_named(_of_file(file, form.get("sha256")))}


def _named(samples: Samples) -> dict[str, Any]:
    count, n = samples.shape
    return {"n": n, "samples": count, "sha256": samples.sha256}


def samples_of(data: Mapping[str, Any]) -> Samples:
    """The samples that a normal form stands for.

    Refused if they are named by a digest and nobody gave them to this process, or a file has
    changed.
    """
    form = data[ARRAY]
    if not isinstance(form, Mapping):
        return _of_memory(form)
    if "file" in form:
        return _of_file(form["file"], form["sha256"])
    return recalled(_IN_MEMORY, form["sha256"], "data")


def shape_of(data: Mapping[str, Any]) -> tuple[int, int]:
    """How many samples a normal form stands for, and their entries n."""
    form = data[ARRAY]
    if isinstance(form, Mapping):
        return int(form["samples"]), int(form["n"])
    return len(form), len(form[0])


def _of_memory(values: object) -> Samples:
    samples = samples_of_array(values)
    rows = np.array(samples.rows, dtype=float)  # a copy, which nobody changes
    rows.flags.writeable = False
    return Samples(rows, samples.sha256)


def samples_of_array(values: Any) -> Samples:
    """The rows of an array as samples, without a copy; a memory map stays on disk.

    Refused if they are no samples: see :func:`samples_input`.
    """
    check_unmasked(values, "data")
    try:
        rows = np.asarray(values)
    except (ValueError, TypeError):  # rows of different lengths; an xarray.Dataset
        rows = np.empty(0)
    return _checked(rows)


def _of_file(file: str, expected: str | None) -> Samples:
    """The samples in a file, which is looked at once more, since it may have been changed."""
    where = place(file)
    samples = _opened(str(where), digest(where))
    _check_same(samples.sha256, expected, f"data: array = {file!r}", "other samples", "data")
    return samples


@lru_cache(maxsize=16)
def _opened(path: str, content: str) -> Samples:
    with reading(path, "data: array", _ALLOWED, ["data"]):
        return _checked(open_array(Path(path)))


def _checked(rows: Any) -> Samples:
    """An array as samples, every number looked at once."""
    good = len(rows.shape) == 2 and rows.shape[0] >= 1 and rows.shape[1] >= 3
    if not good or rows.dtype.kind not in "iuf":
        raise HdicaError(
            f"data: array of shape {tuple(rows.shape)} and type {rows.dtype} is not allowed (real "
            f"numbers, a row a sample and 3 or more columns: {_ALLOWED})",
            ["data"],
        )
    samples = Samples(rows, "")
    sha256, count = hashlib.sha256(), samples.shape[0]
    for first in range(0, count, samples.block):
        block = samples.read(first, min(first + samples.block, count))
        bad = np.argwhere(~np.isfinite(block))
        if bad.size:
            row, column = bad[0]
            raise HdicaError(
                f"data: the entry in row {first + row}, column {column} is {block[row, column]}, "
                "which is not allowed (finite numbers; rows and columns are counted from 0)",
                ["data"],
            )
        sha256.update(block.astype("<f8", copy=False).data)
    return Samples(rows, sha256.hexdigest())
