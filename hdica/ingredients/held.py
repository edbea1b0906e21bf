"""Vectors of one's own that this process holds, by what they are: the digest of their numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import DataGone

Array = NDArray[np.float64]
VECTOR = "vector"
"""Key of a feature or an estimate that is given entry by entry."""
ARRAY = "array"
"""Key of samples that are given row by row."""
_PLACE = re.compile(r'"(vector|array)":\{"file":"(?:[^"\\]|\\.)*",')
_HELD: dict[str, Array] = {}


def is_vector(spec: Any) -> bool:
    """Whether a specification names a vector."""
    return isinstance(spec, Mapping) and set(spec) == {VECTOR}


def digest_of(values: Array) -> str:
    """SHA-256 of numbers as float64, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").data).hexdigest()


def hold(values: Array) -> str:
    """Keep an array for as long as the process lives, and say its digest."""
    sha256 = digest_of(values)
    _HELD.setdefault(sha256, values)
    return sha256


def held(spec: Mapping[str, Any]) -> Array:
    """The numbers that a normal form stands for, shape (n,), not to be written to.

    Raises
    ------
    HdicaError
        If they are named by a digest, and nobody gave them to this process.
    """
    given = spec[VECTOR]
    if not isinstance(given, Mapping):
        return np.asarray(given, dtype=float)
    if given["sha256"] not in _HELD:
        raise DataGone(
            f"vector with sha256 {given['sha256']} is not known to this process (a long array is "
            "known where it was given alone: save it below data/ by numpy.save, and name the file)",
            [VECTOR],
        )
    return _HELD[given["sha256"]]


def without_place(text: str) -> str:
    """Canonical JSON without where vectors and samples lie: it says what they are."""
    return _PLACE.sub(r'"\1":{', text) if '":{"file"' in text else text
