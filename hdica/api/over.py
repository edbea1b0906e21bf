"""Several parameters of a system at once: ``over`` of every function that takes it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.errors import HdicaError, OutOfTime
from hdica.ingredients.functions import word_for
from hdica.process.timeout import named, within
from hdica.systems.address import Axis, address, axis_of, check_conflicts, in_one_spelling, nested
from hdica.systems.arguments import LARGEST, MAX_VALUES, check_length, entries, spaced
from hdica.systems.axes import Value
from hdica.systems.method import Method
from hdica.systems.points import MAX_SEEDS, RESERVED, refused_until
from hdica.systems.registry import record_of

Over = Mapping[str, Any]
Own = dict[str, tuple[float, ...]]
_VALUES = "at least one number or word, all finite and different, or start, stop and num"
_TAKEN = RESERVED | {
    *("snapshot", "feature", "x", "edge", "threshold", "entry"),
    *("fixed_point", "transition"),
}


@dataclass(frozen=True)
class Grid:
    """A system at every combination of some parameters, the last of them varying fastest."""

    axes: tuple[Axis, ...]
    systems: tuple[Any, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions of results, one for each parameter."""
        return tuple(axis.dim for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(axis.size for axis in self.axes)

    def coords(self) -> dict[str, Any]:
        """Coordinates of the dimensions."""
        return {
            axis.dim: (axis.dim, _array(axis.values), {"long_name": axis.key}) for axis in self.axes
        }

    def unfolded(self, flat: xr.Dataset, more: Mapping[str, int] | None = None) -> xr.Dataset:
        """The same dataset with these dimensions, and more, in place of its first, ``point``."""
        dims = (*self.dims, *(more or {}))
        shape = (*self.shape, *(more or {}).values())
        data = {}
        for name, variable in flat.data_vars.items():
            values = variable.values.reshape(shape + variable.shape[1:])
            data[name] = (dims + variable.dims[1:], values, variable.attrs)
        return xr.Dataset(data, {**flat.coords, **self.coords()}, flat.attrs)

    def check_names(self, taken: Collection[str]) -> None:
        """Refuse a parameter that would be mistaken for something else in a result."""
        for axis in self.axes:
            if axis.dim in taken:
                raise HdicaError(f"over: {axis.key!r} is not allowed (it names a variable)")

    def uneven(self, dim: str) -> HdicaError:
        """That combinations cannot share a dimension."""
        return HdicaError(
            f"over: {', '.join(axis.key for axis in self.axes)} is not allowed (dimension {dim!r} "
            "has another number of entries at some of the values)"
        )

    def own(self, used: Collection[str]) -> Own:
        """Dimensions of the systems' own: their values where they are the same, else numbers."""
        found: Own = {}
        for dim in self.systems[0].dims():
            if dim not in used:
                continue
            values = {tuple(one.dims()[dim]) for one in self.systems}
            if len({len(one) for one in values}) > 1:
                raise self.uneven(dim)
            first = next(iter(values))
            found[dim] = first if len(values) == 1 else tuple(range(len(first)))
        return found


def _array(values: tuple[Value, ...]) -> Any:
    return np.array(values, dtype=object if isinstance(values[0], str) else float)


def grid_of(system: Any, over: Over | None) -> Grid:
    """The system at every combination of the parameters of ``over``, as a study's grid has them.

    Fields, short names, dotted paths or constants of the formulas, each with a list of numbers or
    words or ``{start, stop, num, spacing}``; None for the system alone.
    """
    record_of(system)
    if over is None:
        return Grid((), (system,))
    if not isinstance(over, Mapping) or not over:
        raise HdicaError(f"over = {over!r} is not allowed (at least one parameter with its values)")
    content = system.model_dump(mode="python")
    axes = tuple(_axis(key, given, type(system), content) for key, given in over.items())
    check_length(math.prod(axis.size for axis in axes), "over", MAX_SEEDS)
    check_conflicts({}, axes, "over")
    combinations = itertools.product(*(axis.values for axis in axes))
    return Grid(
        axes, tuple(type(system)(**with_values(content, axes, some)) for some in combinations)
    )


def _axis(key: Any, given: Any, system: Any, content: dict[str, Any]) -> Axis:
    if not isinstance(key, str) or key.replace(".", "_") in _TAKEN:
        raise HdicaError(f"over: {key!r} is not allowed (it names a dimension of results)")
    key = in_one_spelling(key, system, content)
    return axis_of(key, address(key, system, content, "over"), _values(key, given), system)


def _values(key: str, given: Any) -> tuple[Value, ...]:
    """Values of a parameter as they are given: a point has the bits that it has alone."""
    if isinstance(given, Mapping):
        return spaced(given, f"over.{key}", MAX_VALUES)
    one = isinstance(given, str) or not isinstance(given, Iterable)
    one = one or getattr(given, "ndim", 1) == 0
    if isinstance(given, list | tuple):  # functions by their words, as systems hold them
        given = [word_for(value) if callable(value) else value for value in given]
    found = entries([given] if one else given, f"over: {key}", _VALUES, MAX_VALUES)
    alike = all(map(_is_number, found)) or all(isinstance(value, str) for value in found)
    if not found or not alike or len(set(found)) < len(found):
        raise HdicaError(f"over: {key} = {found} is not allowed ({_VALUES})")
    return tuple(value if isinstance(value, str) else float(value) for value in found)


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < LARGEST


def with_values(
    content: dict[str, Any], axes: Sequence[Axis], values: Sequence[Value]
) -> dict[str, Any]:
    """Fields of a system with some of them, or parts of them, changed."""
    changed, ours = dict(content), {"constants"}
    for axis, value in zip(axes, values, strict=True):
        top, *rest = axis.path
        now = changed.get(top)
        if rest and top not in ours and not (isinstance(now, dict) and rest[0] in now):
            # Another law than the one that was there: of that no part stays.
            now = {}
        changed[top] = nested([((top,), now), (axis.path, value)])[top]
        ours.add(top)
    return changed


def first_everywhere(
    methods: Sequence[Method],
    systems: Sequence[Any],
    timeout: float | None,
    function: str,
    times: NDArray[np.float64] | None = None,
) -> tuple[Method, list[HdicaError | None]]:
    """The first method that applies everywhere, else the last, with why it does not at a point.

    A point that cannot be followed until the last of the times is left out of every method.

    A point is left out that takes too long to ask: which method is used must not depend on a clock.
    ``function`` is what is called, for the sentence: ``"limit"``.
    """
    for method in methods:
        against = _against(method, systems, timeout, function)
        if not any(_refused(why) for why in against):
            break
    for k, one in enumerate(systems):
        if why := refused_until(one, times):
            against[k] = HdicaError(why, ["times"])
    if all(_refused(why) for why in against):
        raise next(why for why in against if why is not None)
    return method, against


def _refused(why: HdicaError | None) -> bool:
    return why is not None and not isinstance(why, OutOfTime)


def _against(
    method: Method, systems: Sequence[Any], timeout: float | None, function: str
) -> list[HdicaError | None]:
    """Why a method does not apply to some systems, or that this takes too long to find out."""

    def asked(some: Sequence[Any]) -> list[HdicaError | None]:
        what = named(function, some[0])
        refusals = within(timeout, what, lambda: [method.scope.refuses(one) for one in some])
        return [HdicaError(why) if why else None for why in refusals]

    with suppress(OutOfTime):  # mostly they take no time at all
        return asked(systems)
    found: list[HdicaError | None] = []
    for one in systems:
        try:
            found += asked([one])
        except OutOfTime as exc:
            found.append(exc)
    return found
