"""What a result says of itself in words: why nothing is learned, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def joined(*notes: str) -> str:
    """Notes as one text, empty ones left out."""
    return "; ".join(note for note in notes if note)


def _silent(*given: Any) -> str:
    return ""


@dataclass(frozen=True)
class Notes:
    """Why results of a system show no learning, and what to change; each is empty for no reason.

    Parameters
    ----------
    limit
        ``limit(system, values, times) -> str`` of a trajectory, by name of variable.
    states
        ``states(system, overlap, stable, informative) -> str`` of steady states.
    transitions
        ``transitions(system, parameter, overlap, ends) -> str`` of critical values that were
        looked for between two ends, or are all that there can be (None).
    chosen
        ``chosen(system) -> str``: what the system chose of itself where it was left to it.
    data
        ``data(system) -> tuple of str``: what samples of one's own are not that the rule assumes,
        a sentence each.
    complete
        ``complete(system) -> bool``: whether the transitions in the step size are all there are.
    """

    limit: Callable[[Any, Mapping[str, Array], Array], str] = _silent
    states: Callable[[Any, Array, Mask, Mask], str] = _silent
    transitions: Callable[[Any, str, Array, tuple[float, float] | None], str] = _silent
    chosen: Callable[[Any], str] = _silent
    data: Callable[[Any], tuple[str, ...]] = lambda system: ()
    complete: Callable[[Any], bool] = lambda system: False
