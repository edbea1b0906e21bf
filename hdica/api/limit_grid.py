"""The limit over a grid of parameters, as labelled data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.api.keeping import Asked, saved
from hdica.api.limit import MANY_TIMES, able, auto, learning_note, numbers_note
from hdica.errors import HdicaError, OutOfTime
from hdica.ingredients.save import Save
from hdica.process.timeout import check_timeout, named, within
from hdica.systems.arguments import LARGEST, MAX_VALUES, check_length, entries
from hdica.systems.fields import with_parameter
from hdica.systems.labelled import candidates, dataset, described
from hdica.systems.method import Guard, Method, PointResult
from hdica.systems.notes import joined
from hdica.systems.points import MAX_SEEDS, taken_names
from hdica.systems.registry import record_of

Array = NDArray[np.float64]
Axes = dict[str, tuple[float, ...]]
Own = dict[str, tuple[float, ...]]
_NUMBERS = "at least one number, all finite and different"
_TAKEN = frozenset({"time", "snapshot", "feature", "x", "edge", "threshold", "point", "note"})


def _axes(over: Mapping[str, Iterable[float]]) -> Axes:
    """Values of every parameter, checked."""
    if not isinstance(over, Mapping) or not over:
        raise HdicaError(f"over = {over!r} is not allowed (at least one parameter with its values)")
    found: Axes = {}
    for name, values in over.items():
        if not isinstance(name, str) or name in _TAKEN:
            raise HdicaError(f"over: {name!r} is not allowed (it names a dimension of the limit)")
        one = not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0
        given = entries([values] if one else values, f"over: {name}", _NUMBERS, MAX_VALUES)
        if not given or not all(map(_is_number, given)) or len(set(given)) < len(given):
            raise HdicaError(f"over: {name} = {given} is not allowed ({_NUMBERS})")
        found[name] = tuple(map(float, given))
    check_length(math.prod(map(len, found.values())), "over", MAX_SEEDS)
    return found


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < LARGEST


def _systems(system: Any, axes: Axes) -> list[Any]:
    """The system at every combination, the last parameter varying fastest."""
    found = [system]
    for name, values in axes.items():
        found = [with_parameter(one, name, value) for one in found for value in values]
    return found


def _chosen(
    systems: Sequence[Any], method: str, plain: bool, timeout: float | None
) -> tuple[Method, list[str], list[str]]:
    """The first method that applies everywhere, else the last, with the refusals of all points.

    Also why a point is left out that takes too long to ask: which method is used must not depend
    on a clock.

    Raises
    ------
    HdicaError
        If it applies nowhere.
    """
    for candidate in candidates(systems[0], method, "limit", able, auto(plain)):
        refusals, late = _refusals(candidate, systems, timeout)
        if not any(refusals):
            break
    if all(refusals):
        raise HdicaError(refusals[0])
    return candidate, refusals, late


def _refusals(
    method: Method, systems: Sequence[Any], timeout: float | None
) -> tuple[list[str], list[str]]:
    """Why a method does not apply to some systems, and that this takes too long to find out."""

    def asked(some: Sequence[Any]) -> list[str]:
        what = named("limit", some[0])
        return within(timeout, what, lambda: [method.refuses(one) for one in some])

    with suppress(OutOfTime):  # mostly they take no time at all
        return asked(systems), [""] * len(systems)
    refusals, late = [""] * len(systems), [""] * len(systems)
    for k, one in enumerate(systems):
        try:
            (refusals[k],) = asked([one])
        except OutOfTime as exc:
            late[k] = str(exc)
    return refusals, late


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


def _own(systems: Sequence[Any], axes: Axes) -> Own:
    """Dimensions of the systems' own: their values where they are the same, else numbers."""
    found: Own = {}
    for dim in systems[0].dims():
        values = {one.dims()[dim] for one in systems}
        if len({len(one) for one in values}) > 1:
            raise HdicaError(
                f"over: {', '.join(axes)} is not allowed with densities (the prior has another "
                "number of groups of entries at some of the values)"
            )
        first = next(iter(values))
        found[dim] = first if len(values) == 1 else tuple(range(len(first)))
    return found


def _run(
    method: Method, systems: Sequence[Any], times: Array, save: Save, threads: int, guard: Guard
) -> list[PointResult | HdicaError]:
    """Every point, the error in the place of one that cannot be computed."""
    if method.many is not None:
        return method.many(systems, times, save, threads, guard)
    found: list[PointResult | HdicaError] = []
    for one in systems:
        try:
            found.append(guard(one, partial(method.run, one, times, None, None, save)))
        except HdicaError as exc:
            found.append(exc)
    return found


def _blank(method: Method, times: Array, save: Save, own: Own, why: str) -> PointResult:
    """A point to which the method does not apply."""
    sizes = {dim: v.size for dim, v in method.coords_of(times, save, own).items()}
    outputs = method.outputs_of(save)
    return PointResult({o.name: np.full([sizes[d] for d in o.dims], np.nan) for o in outputs}, why)


@dataclass
class _Points:
    """Points of which each has its own time, and the note that a reader of it needs.

    Parameters
    ----------
    method, times
        What is solved.
    timeout
        Seconds for each.
    """

    method: Method
    times: Array
    timeout: float | None
    notes: dict[int, str] = field(default_factory=dict)

    def guard(self, system: Any, compute: Callable[[], PointResult]) -> PointResult:
        """The result of a point, and its note for later.

        Raises
        ------
        HdicaError
            If it has no result, or none in time.
        """
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
    over: Mapping[str, Iterable[float]],
    times: Array,
    method: str,
    asked: Asked,
    threads: int,
    timeout: float | None = None,
) -> xr.Dataset:
    """The limit at every combination of parameters: :func:`hdica.limit` with ``over``.

    Parameters
    ----------
    system
        The problem; its own values of the parameters do not matter.
    over
        Parameters and their values.
    times
        Times t, increasing, shape (T,).
    method, asked, threads, timeout
        As in :func:`hdica.limit`.
    """
    axes = _axes(over)
    systems = _systems(system, axes)
    timeout = check_timeout(timeout)
    chosen, refusals, late = _chosen(systems, method, asked.plain, timeout)
    save = _kept(chosen, system, times, asked)
    taken = taken_names(chosen.outputs_of(save))
    for name in axes:
        if name in taken:
            raise HdicaError(f"over: {name!r} is not allowed (it names a variable of the limit)")
    own = _own(systems, axes) if save.x else system.dims()
    able = [one for one, *why in zip(systems, refusals, late, strict=True) if not any(why)]
    points = _Points(chosen, times, timeout)
    solved = _run(chosen, able, times, save, threads, points.guard) if able else []
    left = iter(solved)
    each = [
        HdicaError(why) if why else OutOfTime(slow) if slow else next(left)
        for why, slow in zip(refusals, late, strict=True)
    ]
    if not any(isinstance(one, PointResult) for one in each):
        raise next(one for one in (*solved, *each) if isinstance(one, HdicaError))
    results = [
        one if isinstance(one, PointResult) else _blank(chosen, times, save, own, str(one))
        for one in each
    ]
    flat = dataset(record_of(system), chosen, times, save, own, results, "point")
    about = {"long_name": "why values are missing, the estimate condenses or nothing is learned"}
    notes = np.array(
        [points.note(*pair) for pair in zip(systems, results, strict=True)], dtype=object
    )
    return described(_unfolded(flat.assign(note=("point", notes, about)), axes), system)


def _unfolded(flat: xr.Dataset, axes: Axes) -> xr.Dataset:
    """The same with the parameters as dimensions in place of the points."""
    shape, dims = tuple(len(v) for v in axes.values()), tuple(axes)
    data = {}
    for name, variable in flat.data_vars.items():
        values = variable.values.reshape(shape + variable.shape[1:])
        data[name] = (dims + variable.dims[1:], values, variable.attrs)
    coords = {name: (name, np.array(values), {"long_name": name}) for name, values in axes.items()}
    return xr.Dataset(data, {**flat.coords, **coords}, flat.attrs)
