"""What a call requests: parameters that vary, times, densities, functionals and the like."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.errors import HdicaError, OutOfTime, refused
from hdica.ingredients.functions import word_for
from hdica.ingredients.plain import is_number
from hdica.ingredients.save import ALL, Save
from hdica.process.progress import named, within
from hdica.systems import arguments, space
from hdica.systems.labelled import Methods
from hdica.systems.method import Array, Method, Output, Role
from hdica.systems.parameters import Parameters, constants_of
from hdica.systems.system import record_of
from hdica.systems.values import (
    LABEL,
    SAMPLE,
    ZIP,
    Labelled,
    Value,
    columns,
    expanded,
    parse_axis,
    parse_sample,
)

Over = Mapping[str, Any]
T = TypeVar("T")
Own = dict[str, tuple[float, ...]]
_VALUES = (
    "at least one number or word, all finite and different, mappings with a label, or start, stop "
    "and num"
)
_TAKEN = arguments.RESERVED | {
    *("snapshot", "feature", "x", "edge", "threshold", "entry"),
    *("fixed_point", "transition"),
}


@dataclass(frozen=True)
class Grid:
    """A system at every combination of some parameters, the last of them varying fastest."""

    axes: tuple[space.Axis, ...]
    systems: tuple[Parameters, ...]

    def coords(self) -> dict[str, Any]:
        """Coordinates of the dimensions."""
        return {
            one.dim: (
                axis.dim,
                np.array(one.values, dtype=object if isinstance(one.values[0], str) else float),
                {"long_name": one.key},
            )
            for axis in self.axes
            for one in (*axis.parts, axis)
        }

    def unfolded(self, flat: xr.Dataset, more: Mapping[str, int] | None = None) -> xr.Dataset:
        """The same dataset with these dimensions, and more, in place of its first, ``point``."""
        sizes = {axis.dim: axis.size for axis in self.axes} | dict(more or {})
        data = {}
        for name, variable in flat.data_vars.items():
            values = variable.values.reshape((*sizes.values(), *variable.shape[1:]))
            data[name] = ((*sizes, *variable.dims[1:]), values, variable.attrs)
        return xr.Dataset(data, {**flat.coords, **self.coords()}, flat.attrs)

    def check_names(self, taken: Collection[str]) -> None:
        """Refuse a parameter that would be mistaken for something else in a result."""
        for one in (part for axis in self.axes for part in (axis, *axis.parts)):
            if one.dim in taken:
                raise HdicaError(f"over: {one.key!r} is not allowed (it names a variable)")

    def uneven(self, dim: str) -> HdicaError:
        """That combinations cannot share a dimension."""
        return HdicaError(
            f"over: {', '.join(axis.key for axis in self.axes)} is not allowed (dimension {dim!r} "
            "has another number of entries at some of the values)"
        )

    def own_of(self, outputs: Collection[Output]) -> Own:
        """Dimensions of the systems' own among those of variables, whose names must be free."""
        self.check_names(arguments.taken_names(outputs))
        return self.own({dim for output in outputs for dim in output.dims})

    def own(self, used: Collection[str]) -> Own:
        """Dimensions of the systems' own: their values where they are the same, else numbers."""
        dims: Own = {}
        for dim in self.systems[0].dims():
            if dim not in used:
                continue
            values = {tuple(one.dims()[dim]) for one in self.systems}
            if len({len(one) for one in values}) > 1:
                raise self.uneven(dim)
            first = next(iter(values))
            dims[dim] = first if len(values) == 1 else tuple(range(len(first)))
        return dims


def grid_of(system: Parameters, over: Over | None) -> Grid:
    """The system at every combination of the parameters of ``over``; alone if that is None."""
    record_of(system)
    if over is None:
        return Grid((), (system,))
    if not isinstance(over, Mapping) or not over:
        raise HdicaError(f"over = {over!r} is not allowed (at least one parameter with its values)")
    cls, content, axes = type(system), system.model_dump(mode="python"), list[space.Axis]()
    for key, given in over.items():
        if key in (ZIP, "cases"):
            table = columns(given, f"over.{key}", rounded=False)
            table = _respelled(table, cls, content, f"over.{key}")
            axes.append(space.case_axis(table, cls, {**table, **content}, f"over.{key}"))
            continue
        if key == SAMPLE:
            sample = parse_sample({} if given is None else given)
            assert sample is not None
            arguments.check_length(sample.points, "over.sample.points", arguments.MAX_SEEDS)
            ranges = _respelled(sample.over, cls, content, "over.sample.over")
            sample = sample.model_copy(update={"over": ranges})
            axes.append(space.sample_axis(sample, cls, content))
            continue
        if not isinstance(key, str) or key.replace(".", "_") in _TAKEN:
            raise HdicaError(f"over: {key!r} is not allowed (it names a dimension of results)")
        name = space.in_one_spelling(key, cls, content)
        path = space.address(name, cls, content, "over")
        axes.append(space.axis_of(name, path, _values(name, given), cls))
    arguments.check_length(math.prod(axis.size for axis in axes), "over", arguments.MAX_SEEDS)
    space.check_conflicts({}, axes, "over")
    dims = [axis.dim for axis in axes]
    if again := next((dim for dim in dims if dims.count(dim) > 1), ""):
        raise HdicaError(f"over is not allowed (two of its dimensions are called {again!r})")
    combinations = itertools.product(*(axis.values for axis in axes))
    return Grid(
        tuple(axes), tuple(cls(**with_values(content, axes, some)) for some in combinations)
    )


def _respelled(
    given: Mapping[str, T], cls: type[Parameters], content: dict[str, Any], where: str
) -> dict[str, T]:
    """Values by parameters with constants in one spelling, refused if one is there twice."""
    own = {key: space.in_one_spelling(key, cls, content) for key in given}
    for key, name in own.items():
        if [*own.values()].count(name) > 1:
            raise HdicaError(f"{where}.{key} is not allowed ({name} is set twice)")
    return {own[key]: values for key, values in given.items()}


def _values(key: str, given: object) -> Sequence[Value | Labelled]:
    """Values of a parameter as they are given: a point has the bits that it has alone."""
    if isinstance(given, Mapping):
        return arguments.spaced(given, f"over.{key}", arguments.MAX_VALUES)
    one = isinstance(given, str) or not isinstance(given, Iterable)
    one = one or getattr(given, "ndim", 1) == 0
    if isinstance(given, list | tuple):  # functions by their words, as systems hold them
        given = [word_for(value) if callable(value) else value for value in given]
    values = arguments.entries(
        [given] if one else given, f"over: {key}", _VALUES, arguments.MAX_VALUES
    )
    if any(isinstance(value, Mapping) and LABEL in value for value in values):
        return expanded(parse_axis(values, f"over.{key}", rounded=False))
    numbers = (is_number(value) and abs(value) < arguments.LARGEST for value in values)
    alike = all(numbers) or all(isinstance(value, str) for value in values)
    if not values or not alike or len(set(values)) < len(values):
        raise HdicaError(f"over: {key} = {values} is not allowed ({_VALUES})")
    return tuple(value if isinstance(value, str) else float(value) for value in values)


def with_values(
    content: dict[str, Any], axes: Sequence[space.Axis], values: Sequence[Value]
) -> dict[str, Any]:
    """Fields of a system with some of them, or parts of them, changed."""
    changed, ours = dict(content), {"constants"}
    chosen = (axis.sets(value) for axis, value in zip(axes, values, strict=True))
    for path, value in itertools.chain(*chosen):
        top, *rest = path
        now = changed.get(top)
        if rest and top not in ours and not (isinstance(now, dict) and rest[0] in now):
            # Another law than the one that was there: of that no part stays.
            now = {}
        changed[top] = space.nested([((top,), now), (path, value)])[top]
        ours.add(top)
    return changed


def first_everywhere(
    methods: Sequence[Method],
    systems: Sequence[Parameters],
    timeout: float | None,
    function: str,
    times: NDArray[np.float64] | None = None,
) -> tuple[Method, list[HdicaError | None]]:
    """The first method that applies everywhere, else the last, with why it does not at a point.

    A point that cannot be followed until the last of the times is left out of every method, and so
    is one that takes too long to check: which method is used must not depend on a clock.
    ``function`` is what is called, for the sentence: ``"limit"``.
    """
    for method in methods:
        against = _against(method, systems, timeout, function)
        if not any(_is_refusal(why) for why in against):
            break
    for k, one in enumerate(systems):
        if why := arguments.refused_until(one, times):
            against[k] = HdicaError(why, ["times"])
    if all(_is_refusal(why) for why in against):
        raise next(why for why in against if why is not None)
    return method, against


def _is_refusal(why: HdicaError | None) -> bool:
    return why is not None and not isinstance(why, OutOfTime)


def _against(
    method: Method, systems: Sequence[Parameters], timeout: float | None, function: str
) -> list[HdicaError | None]:
    """Why a method does not apply to some systems, or that this takes too long to check."""

    def refusals(some: Sequence[Parameters]) -> list[HdicaError | None]:
        what = named(function, some[0])
        reasons = within(timeout, what, lambda: [method.scope.refuses(one) for one in some])
        return [HdicaError(why) if why else None for why in reasons]

    with suppress(OutOfTime):  # mostly they take no time at all
        return refusals(systems)
    each: list[HdicaError | None] = []
    for one in systems:
        try:
            each += refusals([one])
        except OutOfTime as exc:
            each.append(exc)
    return each


Numbers = Iterable[float] | Mapping[str, Any]
"""A list of numbers, or ``{start, stop, num, spacing}`` as a study writes them."""


@dataclass(frozen=True)
class Request:
    """What results are to have beyond Q and R, as in :func:`hdica.limit`."""

    snapshots: Numbers | None = None
    x: Numbers | None = None
    thresholds: Numbers | None = None
    functionals: Mapping[str, str] | None = None
    extra: Iterable[str] | None = None
    estimate: bool | int = False
    bands: bool = False
    bias: bool = False

    def __post_init__(self) -> None:
        for name, value in {"bands": self.bands, "bias": self.bias}.items():
            if not isinstance(value, bool | np.bool_):
                raise refused(name, value, "True or False")

    @property
    def plain(self) -> bool:
        """Whether none of it is of the entries of the estimate."""
        beyond = (self.snapshots, self.x, self.thresholds, self.functionals)
        none = all(value is None for value in beyond)
        return none and not arguments.how_many_entries(self.estimate)

    def auto(self, role: Role, has_entries: Callable[[Method], object]) -> Methods:
        """Methods of a role to try; where densities are asked for, those that have the entries."""
        return lambda record: self._first(
            [m for m in record.with_role(role) if m.rank and (self.plain or has_entries(m))]
        )

    def _first(self, methods: Sequence[Method]) -> list[Method]:
        """Methods that give the bands and the extra variables; all of them if none does."""
        wanted = set(arguments.extra_names(self.extra))
        if arguments.how_many_entries(self.estimate):
            methods = [m for m in methods if "estimate" in m.outputs.keeps] or methods
        methods = [m for m in methods if not self.unable(m)] or methods
        return [m for m in methods if wanted <= {o.name for o in m.outputs.extras}] or list(methods)

    def unable(self, method: Method) -> str:
        """Empty if a method has the bands and the bias that are wanted, else the sentence."""
        outputs = method.outputs
        has_bands = outputs.bands or any(one.name.endswith("_sd") for one in outputs.always)
        if self.bands and not has_bands:
            name, what = "bands", "fluctuations"
        elif self.bias and not outputs.bias:
            name, what = "bias", "the mean"
        else:
            return ""
        return (
            f"{name} = True is not allowed with method {method.name!r} (no theory of {what} at "
            "finite n is known for it)"
        )

    def times_of(self, method: Method, times: Array | None) -> Array:
        """The output times of a method."""
        return arguments.times_for(method, times, arguments.extra_names(self.extra))


def _keeping(
    method: Method, system: Parameters, keeps: Callable[[Method], bool], what: str
) -> None:
    """Refuse a method that does not keep something, and name those that do."""
    if keeps(method):
        return
    name = type(system).__name__
    able = [repr(m.name) for m in record_of(system).methods if keeps(m)]
    use = f"use method {' or '.join(able)}" if able else f"no method of {name} does"
    raise HdicaError(f"method {method.name!r} keeps no {what} ({use})")


def saved(
    method: Method,
    system: Parameters,
    times: Array,
    request: Request,
    sizes: Sequence[int | None] = (),
) -> Save:
    """What to keep, checked against the times, the method and its dimensions."""
    from hdica.ingredients.formula import parse_functional

    count = arguments.how_many_entries(request.estimate)
    most = max((n for n in sizes if n), default=0)
    if count:
        _keeping(method, system, lambda one: "estimate" in one.outputs.keeps, "estimate")
    if count > most:
        raise HdicaError(f"estimate = {count} is not allowed (at most n = {most} entries)")
    points = arguments.increasing(request.x, "x", "point", positive=False)
    theta = arguments.increasing(request.thresholds, "thresholds", "threshold")
    means = arguments.formulas(request.functionals)
    if request.snapshots is not None or points or theta or means:
        _keeping(method, system, lambda one: bool(one.outputs.keeps), "densities")
    arguments.check_points(points)
    snapshots = arguments.increasing(request.snapshots, "snapshots", "time")
    if request.snapshots is None and (points or theta or count):
        snapshots = tuple(times.tolist())
    for one in snapshots:
        if not np.any(np.isclose(times, one, rtol=1e-12, atol=1e-12)):
            raise HdicaError(f"snapshots: {one:g} is not one of the times {times.tolist()}")
    if refusal := request.unable(method):
        raise HdicaError(refusal)
    extra = arguments.extra_names(request.extra)
    allowed = (output.name for output in method.outputs.extras)
    arguments.check_extra(extra, allowed, "extra", f"method {method.name!r}")
    save = Save(
        snapshots,
        points,
        theta,
        extra=extra,
        estimate=most if count == ALL else count,
        bands=bool(request.bands),
        bias=bool(request.bias),
    )
    arguments.check_functionals(means, method.outputs_of(save), "functionals")
    for text in means.values():
        parse_functional(text, constants_of(system))
    save = replace(save, functionals=means)
    if save.anything:
        arguments.check_size(method.bytes_of(times, save, system.dims()), method.name)
    return save
