"""What NumPy makes of numbers and lists, as Python has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

DEEPEST = 64
"""Nesting beyond which nothing is looked at: no field of ours is nested so deep."""
_NUMBERS = ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.str_, str))


def plain(value: Any, deepest: int = DEEPEST) -> Any:
    """The same content without NumPy's types, which JSON and comparisons do not know.

    Mappings, lists, tuples and arrays are followed ``deepest`` levels down and what is deeper
    stays; arrays and tuples become lists, NumPy's numbers Python's; all else stays as it is.
    """
    if isinstance(value, np.ma.MaskedArray):  # what is masked is no number: None
        return plain(value.tolist(), deepest)
    if isinstance(value, np.generic):
        made = next((make for kind, make in _NUMBERS if isinstance(value, kind)), None)
        return value if made is None else made(value)
    if deepest == 0:
        return value
    if hasattr(value, "__array__"):  # of NumPy, and what others have made of it
        return plain(np.asarray(value).tolist(), deepest - 1)
    if isinstance(value, Mapping):
        return {plain(key, 0): plain(one, deepest - 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, deepest - 1) for one in value]
    return value
