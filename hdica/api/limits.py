"""Which methods give a limit, and what is to be said of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.api.keeping import Asked
from hdica.systems.method import Method, Role
from hdica.systems.notes import joined
from hdica.systems.outputs import PointResult
from hdica.systems.registry import record_of
from hdica.systems.system import System

Array = NDArray[np.float64]
MANY_TIMES = 50
"""More output times than this, and only the last density is kept unless snapshots are asked for."""


def able(record: System) -> list[Method]:
    """Methods that can be named: limits, and baselines without seeds."""
    ranked = record.with_role(Role.LIMIT)
    return ranked + [m for m in record.with_role(Role.BASELINE) if not m.stochastic]


def auto(asked: Asked) -> Callable[[System], list[Method]]:
    """Methods to try; where densities are asked for, those that have any."""
    return lambda record: asked.first(
        [
            m
            for m in record.with_role(Role.LIMIT)
            if m.rank and (asked.plain or getattr(m, "densities", None))
        ]
    )


def note_of(system: Any, method: Method, times: Array, result: PointResult) -> str:
    """What a reader of the numbers must know, of themselves and of what is learned."""
    return joined(numbers_note(result), learning_note(system, method, times, result))


def learning_note(system: Any, method: Method, times: Array, result: PointResult) -> str:
    """Why nothing is learned, where a limit that is not itself an approximation says so."""
    if method.role is not Role.LIMIT or method.about.accuracy == "approximate" or times[-1] == 0.0:
        return ""
    record = record_of(system)
    path = result.values.get(record.order_parameters[0].name)
    if path is None or not np.all(np.isfinite(path)):
        return ""
    return record.notes.limit(system, result.values, times)


def numbers_note(result: PointResult) -> str:
    """That the solver stopped, or the state condenses."""
    if result.diverged:
        return result.diverged
    curvature = result.values.get("curvature")
    if curvature is not None and curvature[-1] < 0:
        return (
            "at the last time h < 0: |x|^2 moves to ever larger entries, so the estimate is "
            "not converging (it condenses if this lasts)"
        )
    return ""
