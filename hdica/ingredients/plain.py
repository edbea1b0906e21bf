"""What callers pass in, as plain Python content; their long vectors are kept by digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdica.errors import DataGone

T = TypeVar("T")
Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Function = Callable[[Array], Array]
Scalar = Callable[[float], float]
VECTOR = "vector"
"""Key of a feature or an estimate that is given entry by entry."""
ARRAY = "array"
"""Key of samples that are given row by row."""
_PLACE = re.compile(r'"(vector|array)":\{"file":"(?:[^"\\]|\\.)*",')
_VECTORS: dict[str, Array] = {}


def is_vector(spec: object) -> bool:
    """Whether a specification names a vector."""
    return isinstance(spec, Mapping) and set(spec) == {VECTOR}


def digest_of(values: Array) -> str:
    """SHA-256 of numbers as float64, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").data).hexdigest()


def remember_vector(values: Array) -> str:
    """Keep an array for as long as the process lives, by the digest that is returned."""
    sha256 = digest_of(values)
    _VECTORS.setdefault(sha256, values)
    return sha256


def vector_of(spec: Mapping[str, object]) -> Array:
    """The numbers that a normal form stands for, shape (n,), not to be written to.

    Refused if they are named by a digest, and nobody gave them to this process.
    """
    content = spec[VECTOR]
    if not isinstance(content, Mapping):
        return np.asarray(content, dtype=float)
    return recalled(_VECTORS, content["sha256"], VECTOR)


def recalled(memory: Mapping[str, T], sha256: str, what: str) -> T:
    """The numbers of a digest in a memory; refused where this process never had them."""
    if sha256 not in memory:
        raise DataGone(
            f"{what} with sha256 {sha256} is not known to this process (a long array is known "
            "where it was given alone: save it below data/ by numpy.save, and name the file)",
            [what],
        )
    return memory[sha256]


def without_place(text: str) -> str:
    """Canonical JSON without where vectors and samples lie: it says what they are."""
    return _PLACE.sub(r'"\1":{', text) if '":{"file"' in text else text


DEEPEST = 64
"""Nesting beyond which nothing is looked at: no field of ours is nested so deep."""
_NUMBERS = ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.str_, str))

_DIGITS = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(rf"\s*({_DIGITS})\s*(?:/\s*({_DIGITS})\s*)?", re.ASCII)
_TEXTS = {ARRAY, VECTOR, "file", "path", "sha256"}
LONGEST = 64
"""Letters of a number, so that none takes long to read."""


def as_number(value: object) -> Any:
    """The number that a text writes, as ``"0.05"`` and ``"1/20"`` do; all else as it is."""
    read = _NUMBER.fullmatch(value) if isinstance(value, str) and len(value) <= LONGEST else None
    if read is None:
        return value
    above, below = read.groups()
    if below is None:
        return int(above) if re.fullmatch(r"[+-]?[0-9]+", above) else float(above)
    return float(above) / float(below) if float(below) else value


def with_numbers(value: object) -> Any:
    """The same plain content with texts of numbers as numbers, except paths, digests."""
    if isinstance(value, dict):
        texts = {key for key in _TEXTS & value.keys() if isinstance(value[key], str)}
        return {k: v if k in texts else with_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [with_numbers(item) for item in value]
    return as_number(value)


def plain(value: object, deepest: int = DEEPEST) -> Any:
    """The same content without NumPy's types, which JSON and comparisons do not know.

    Mappings, lists, tuples and arrays are followed ``deepest`` levels down and what is deeper
    stays; arrays and tuples become lists, NumPy's numbers Python's; all else stays as it is.
    """
    if isinstance(value, np.ma.MaskedArray):  # what is masked is no number: None
        return plain(value.tolist(), deepest)
    if isinstance(value, np.generic):
        return next((make(value) for kind, make in _NUMBERS if isinstance(value, kind)), value)
    if deepest == 0:
        return value
    if hasattr(value, "__array__"):  # of NumPy, and what others have made of it
        try:
            return plain(np.asarray(value).tolist(), deepest - 1)
        except TypeError:  # an xarray.Dataset, which has the method and is no array
            return value
    if isinstance(value, Mapping):
        return {plain(key, 0): plain(item, deepest - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, deepest - 1) for item in value]
    return value


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a plain number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
