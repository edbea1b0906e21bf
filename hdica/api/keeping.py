"""What is asked for beyond the order parameters: densities, support recovery, functionals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems.arguments import formulas, increasing
from hdica.systems.method import Method
from hdica.systems.points import check_functionals, check_points, check_size
from hdica.systems.registry import record_of

Array = NDArray[np.float64]


Numbers = Iterable[float] | Mapping[str, Any]
"""A list of numbers, or ``{start, stop, num, spacing}`` as a study writes them."""


@dataclass(frozen=True)
class Asked:
    """What is asked for beyond Q and R, as in :func:`hdica.limit`."""

    snapshots: Numbers | None
    x: Numbers | None
    thresholds: Numbers | None
    functionals: Mapping[str, str] | None

    @property
    def plain(self) -> bool:
        """Whether that is nothing."""
        return all(value is None for value in vars(self).values())


def saved(method: Method, system: Any, times: Array, asked: Asked) -> Save:
    """What to keep, checked against the times and the method."""
    from hdica.ingredients.functionals import parse_functional

    snapshots = asked.snapshots
    points = increasing(asked.x, "x", "point", positive=False)
    theta = increasing(asked.thresholds, "thresholds", "threshold")
    anything = snapshots is not None or points or theta or asked.functionals
    if anything and not method.keeps:
        name = type(system).__name__
        able = [repr(m.name) for m in record_of(system).methods if m.keeps]
        use = f"use method {' or '.join(able)}" if able else f"no method of {name} does"
        raise HdicaError(f"method {method.name!r} keeps no densities ({use})")
    check_points(points)
    kept = increasing(snapshots, "snapshots", "time")
    if snapshots is None and (points or theta):
        kept = tuple(times.tolist())
    for one in kept:
        if not np.any(np.isclose(times, one, rtol=1e-12, atol=1e-12)):
            raise HdicaError(f"snapshots: {one:g} is not one of the times {times.tolist()}")
    means, save = formulas(asked.functionals), Save(kept, points, theta)
    check_functionals(means, method.outputs_of(save), "functionals")
    for text in means.values():
        parse_functional(text, system.constants)
    save = replace(save, functionals=means)
    if save.anything:
        check_size(method.bytes_of(times, save, system.dims()), method.name)
    return save
