"""The limit over a grid of parameters, as labelled data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.api.keeping import Asked, saved, timed
from hdica.api.limits import MANY_TIMES, able, auto, learning_note, numbers_note
from hdica.api.over import Over, first_everywhere, grid_of
from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.process.progress import counted
from hdica.process.timeout import check_timeout, named, within
from hdica.systems.labelled import candidates, dataset, described
from hdica.systems.method import Guard, Limit, Method
from hdica.systems.notes import joined
from hdica.systems.outputs import PointResult
from hdica.systems.points import check_held, taken_names
from hdica.systems.registry import record_of

Array = NDArray[np.float64]


def _kept(method: Method, system: Any, times: Array, asked: Asked) -> Save:
    """What to keep of every point: densities only at points that all share."""
    snapshots, shown = asked.snapshots, asked.x is not None or asked.thresholds is not None
    if snapshots is not None and not shown:
        raise HdicaError(
            "x = None is not allowed with over and snapshots (points of the densities, which all "
            "combinations share, or thresholds)"
        )
    if snapshots is None and shown:
        snapshots = times if times.size <= MANY_TIMES else times[-1:]
    return saved(method, system, times, replace(asked, snapshots=snapshots))


def _run(
    method: Method, systems: Sequence[Any], times: Array, save: Save, threads: int, guard: Guard
) -> list[PointResult | HdicaError]:
    """Every point, the error in the place of one that cannot be computed."""
    last = float(times[-1])
    costs = {id(one): method.cost.seconds(one, None, last) for one in systems}
    done = counted(len(systems), sum(costs.values()))

    def guarded(one: Any, compute: Callable[[], PointResult]) -> PointResult:
        try:
            return guard(one, compute)
        finally:
            done(1, costs[id(one)])

    many = method.densities and method.densities.many if isinstance(method, Limit) else None
    if many is not None:
        return many(systems, times, save, threads, guarded)
    found: list[PointResult | HdicaError] = []
    for one in systems:
        try:
            found.append(guarded(one, partial(method.run, one, times, None, None, save)))
        except HdicaError as exc:
            found.append(exc)
    return found


@dataclass
class _Points:
    """Points of which each has its own time in seconds, and the note that a reader of it needs."""

    method: Method
    times: Array
    timeout: float | None
    notes: dict[int, str] = field(default_factory=dict)

    def guard(self, system: Any, compute: Callable[[], PointResult]) -> PointResult:
        """The result of a point, and its note for later."""
        found: list[PointResult] = []

        def solve() -> str:
            found.append(compute())
            return learning_note(system, self.method, self.times, found[0])

        try:
            self.notes[id(system)] = within(self.timeout, named("limit", system), solve)
        except HdicaError as exc:
            if not found:
                raise
            self.notes[id(system)] = str(exc)
        return found[0]

    def note(self, system: Any, result: PointResult) -> str:
        """What a reader of a point's numbers must know."""
        return joined(numbers_note(result), self.notes.get(id(system), ""))


def limit_over(
    system: Any,
    over: Over,
    given: Array | None,
    method: str,
    asked: Asked,
    threads: int,
    timeout: float | None,
) -> xr.Dataset:
    """The limit at every combination of parameters: :func:`hdica.limit` with ``over``."""
    grid = grid_of(system, over)
    timeout, systems = check_timeout(timeout), grid.systems
    methods = candidates(systems[0], method, "limit", able, auto(asked))
    chosen, against = first_everywhere(methods, systems, timeout, "limit", given)
    check_held(chosen, max(systems, key=lambda one: chosen.cost.memory(one, None)), None)
    times = timed(chosen, given, asked)
    save = _kept(chosen, system, times, asked)
    outputs = chosen.outputs_of(save)
    grid.check_names(taken_names(outputs))
    own = grid.own({dim for output in outputs for dim in output.dims})
    points = _Points(chosen, times, timeout)
    applies = [one for one, why in zip(systems, against, strict=True) if why is None]
    solved = _run(chosen, applies, times, save, threads, points.guard) if applies else []
    left = iter(solved)
    each = [next(left) if why is None else why for why in against]
    if not any(isinstance(one, PointResult) for one in each):
        raise next(one for one in (*solved, *each) if isinstance(one, HdicaError))
    results = [
        one if isinstance(one, PointResult) else chosen.blank(times, save, own, str(one))
        for one in each
    ]
    flat = dataset(record_of(system), chosen, times, save, own, results, "point")
    about = {"long_name": "why values are missing, the estimate condenses or nothing is learned"}
    notes = np.array(
        [points.note(*pair) for pair in zip(systems, results, strict=True)], dtype=object
    )
    return described(grid.unfolded(flat.assign(note=("point", notes, about))), system)
