"""Kinds of steady states and of transitions, as numbers that a store holds, and lists of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError

Array = NDArray[np.float64]
STATE_KINDS = ("informative", "uninformative", "condensed")
TRANSITION_KINDS = ("fold", "transcritical", "junction")
INFORMATIVE, FOLD = 0, 0
"""Codes of the first of each."""
ZERO = 1e-9
"""An overlap closer to 0 than this is 0 with rounding; such a steady state is uninformative."""


def codes(kinds: Any, names: tuple[str, ...]) -> Array:
    """Position of each kind among its names, as numbers that a store holds."""
    return np.array([names.index(str(kind)) for kind in kinds], dtype=float)


def words(values: Any, names: Sequence[str]) -> NDArray[Any]:
    """Kinds by their codes."""
    return np.array([names[int(code)] for code in values], dtype=object)


def padded(columns: Mapping[str, Array], size: int, what: str) -> dict[str, Array]:
    """Columns of what was found, with NaN up to ``size``."""
    found = max(column.size for column in columns.values())
    if found > size:
        raise HdicaError(f"{found} {what} were found, more than the {size} a store holds")
    rest = np.full(size - found, np.nan)
    return {name: np.concatenate([column, rest]) for name, column in columns.items()}
