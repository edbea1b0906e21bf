"""A vector of one's own, a feature or an estimate: a list, an array, or a file of one.

Its normal form is the list if it is short. Else it is ``{"vector": {"file", "n", "sha256"}}``; the
digest is that of the numbers and not of the file: a vector is known by its content wherever it
lies, and :func:`hdica.ingredients.plain.without_place` leaves that out of keys. A long array in
memory has no file, and is known to this process alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import DataGone, HdicaError
from hdica.ingredients.plain import VECTOR, digest_of, is_vector, remember_vector, vector_of
from hdica.inputs.arrays import open_array, reading
from hdica.inputs.digest import digest
from hdica.inputs.place import place, relative

Array = NDArray[np.float64]
LONGEST = 256
"""Entries of a vector that is written out where it is used; longer ones are named by digests."""
_ALLOWED = "a list of numbers, or the path of a .npy file or a Zarr array below data/"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def vector_input(value: Any, name: str) -> Any:
    """Normal form of what names a vector; anything else stays as it is.

    Parameters
    ----------
    value
        ``{"vector": v}`` with v a list or an array of shape (n,), the path of a ``.npy`` file or
        of a Zarr array, relative to the folder of data, or a normal form.
    name
        The field, for the sentence.

    Raises
    ------
    HdicaError
        If there is no such array, or one that is no vector: 3 or more finite real numbers, of
        which one is not zero; if it has not the digest that is given.
    """
    if not is_vector(value):
        return value
    given = value[VECTOR]
    if isinstance(given, str | PurePath):
        given = {"file": given.as_posix() if isinstance(given, PurePath) else given}
    if not isinstance(given, Mapping):
        values = _checked(given, name)
        if values.size <= LONGEST:
            return {VECTOR: values.tolist()}
        return {VECTOR: {"n": values.size, "sha256": remember_vector(values)}}
    known = given.keys() <= {"file", "n", "sha256"} and isinstance(given.get("file", ""), str)
    hexadecimal = _SHA256.fullmatch(str(given.get("sha256", "0" * 64)))
    if not known or not hexadecimal or not given.keys() & {"file", "sha256"}:
        raise HdicaError(f"{name}: vector = {dict(given)!r} is not allowed ({_ALLOWED})")
    if "file" not in given:
        return {VECTOR: {"n": vector_of(value).size, "sha256": given["sha256"]}}
    file = relative(given["file"])
    found = _read(file, name, given.get("sha256"))
    return {VECTOR: {"file": file, "n": found.size, "sha256": remember_vector(found)}}


def check_unmasked(values: Any, name: str) -> None:
    """Refuse an array with masked entries, which would be read as the numbers under the mask."""
    masked = np.argwhere(np.ma.getmaskarray(values)) if np.ma.isMaskedArray(values) else None
    if masked is not None and len(masked):
        first = ", ".join(map(str, masked[0].tolist()))
        raise HdicaError(
            f"{name}: {len(masked)} masked entries are not allowed, the first at ({first}) (finite "
            "numbers: leave out their rows or columns, or fill them in)",
            [name],
        )


def _checked(given: Any, name: str) -> Array:
    """An array of float64 of shape (n,) that nobody changes."""
    check_unmasked(given, name)
    try:
        found = np.asarray(given)
    except (ValueError, TypeError):  # lists of different lengths; an xarray.Dataset
        found = np.empty((0, 0))
    if found.ndim != 1 or found.size < 3 or found.dtype.kind not in "iuf":
        raise HdicaError(
            f"{name}: vector of shape {found.shape} and type {found.dtype} is not allowed (3 or "
            f"more real numbers along one axis: {_ALLOWED})"
        )
    found = np.array(found, dtype=float)
    with np.errstate(over="ignore"):
        length = float(np.sum(found * found))
    if not 0 < length < np.inf:
        raise HdicaError(
            f"{name}: vector of length {length**0.5:g} is not allowed (finite numbers, of which "
            "one is not zero)"
        )
    found.flags.writeable = False
    return found


def _read(file: str, name: str, expected: str | None) -> Array:
    """The vector in a file, which is looked at once more, since it may have been changed."""
    here = place(file)
    found = _loaded(str(here), digest(here), name)
    if expected not in (None, digest_of(found)):
        raise DataGone(
            f"{name}: vector = {file!r} is not allowed here (the sha256 of its numbers is "
            f"{digest_of(found)}, not {expected}: it is another vector)",
            [name],
        )
    return found


@lru_cache(maxsize=16)
def _loaded(path: str, content: str, name: str) -> Array:
    """The array at a path whose files have a digest."""
    with reading(path, f"{name}: vector", _ALLOWED):
        there = open_array(Path(path))
        # What is no vector is refused by its shape, of whatever size it is.
        blank = np.broadcast_to(np.empty((), there.dtype), there.shape)
        found = np.asarray(there[...]) if len(there.shape) == 1 else blank
    return _checked(found, name)
