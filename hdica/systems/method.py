"""What a method of computing a point is: its outputs, its cost and its one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Output:
    """One variable that a method returns.

    Parameters
    ----------
    name
        Name in datasets.
    dims
        Dimensions beyond the grid, ``n`` and ``seed``: ``("time",)`` for a trajectory.
    long_name, units
        CF attributes of the variable.
    """

    name: str
    dims: tuple[str, ...]
    long_name: str
    units: str = "1"


@dataclass(frozen=True)
class PointResult:
    """What one point gave.

    Parameters
    ----------
    values
        By output name, float64, shaped like the output's dims; NaN where not reached.
    diverged
        Empty, or one sentence that says why, at which step and time the point diverged.
    """

    values: dict[str, Array]
    diverged: str = ""


@dataclass(frozen=True)
class Method:
    """A way to compute a point of a system, and what it promises.

    Parameters
    ----------
    name
        Name in studies and datasets.
    stochastic
        Whether a point needs a dimension ``n`` and a ``seed``.
    accuracy
        ``"exact"``, ``"exact in law"``, ``"converged"`` (to a stated tolerance) or
        ``"approximate"``.
    outputs
        The variables it returns.
    run
        ``run(system, times, n, seed) -> PointResult`` for one point.
    coords
        ``coords(times) -> {dim: values}`` for every dimension named by the outputs.
    refuses
        Empty if the method applies to this system, else the sentence that says why not.
    seconds
        ``seconds(system, n, last_time)``: the cost model of one point on one core.
    ignores
        Fields of the system on which the result does not depend.
    equations
        What is computed, with paper and equation numbers.
    kernel
        Version of the numerical code behind the method; part of every point's key.
    """

    name: str
    stochastic: bool
    accuracy: str
    outputs: tuple[Output, ...]
    run: Callable[[Any, Array, int | None, int | None], PointResult]
    coords: Callable[[Array], dict[str, NDArray[Any]]]
    refuses: Callable[[Any], str]
    seconds: Callable[[Any, int | None, float], float]
    ignores: frozenset[str] = field(default_factory=frozenset)
    equations: str = ""
    kernel: str = "1"
