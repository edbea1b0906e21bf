"""The parameter space of a study: its axes, the fields that keys address, systems."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from hdica.errors import HdicaError, from_validation, suggestion
from hdica.ingredients.plain import as_number
from hdica.systems.parameters import Parameters, is_text
from hdica.systems.values import (
    CASE,
    LABEL,
    MOST_LETTERS,
    SAMPLE,
    VALUE,
    Labelled,
    Sample,
    Value,
    Values,
    columns,
    distinct,
    expanded,
    number,
    parse_axis,
    parse_refine,
    parse_sample,
    shown,
)

Path = tuple[str, ...]


@lru_cache(maxsize=16)
def _places(values: tuple[Value, ...]) -> dict[Value, int]:
    return {value: place for place, value in enumerate(values)}


@dataclass(frozen=True)
class Axis:
    """One swept parameter, or several that go together: then ``parts`` are all of them.

    Parts have the values in the order of the axis, distinct or not. The path of several is that of
    no field, but a name of the axis.
    """

    key: str  # as the study writes it: ``tau``, ``Q0``, ``prior.sparse``
    path: Path  # where its values go in the system: ("prior", "sparse")
    values: tuple[Value, ...]  # canonical, distinct; numbers are sorted
    contents: tuple[Any, ...] = field(default=(), hash=False)  # of each label, if there are labels
    parts: tuple[Axis, ...] = ()

    def sets(self, value: Value) -> list[tuple[Path, Any]]:
        """What a value of the axis sets in the system."""
        at = _places(self.values)[value] if self.parts or self.contents else -1
        return [
            (one.path, (one.contents or one.values)[at] if at >= 0 else value) for one in self.each
        ]

    @property
    def where(self) -> str:
        """Where a study sets it."""
        if not self.parts:
            return f"grid.{self.key}"
        return SAMPLE if self.key == SAMPLE else "cases"

    @property
    def each(self) -> tuple[Axis, ...]:
        """All parts, or the axis itself if it has a single one."""
        return self.parts or (self,)

    @property
    def fields(self) -> frozenset[str]:
        """The fields of the system that depend on it."""
        return frozenset(one.path[0] for one in self.each)

    @property
    def written(self) -> Any:
        """The values, or each label with what it stands for, as plain data."""
        if self.parts:
            return {LABEL: self.values, **{one.key: one.written for one in self.parts}}
        if not self.contents:
            return self.values
        pairs = zip(self.values, self.contents, strict=True)
        return tuple({LABEL: name, VALUE: one} for name, one in pairs)

    @property
    def dim(self) -> str:
        """Name of the dimension in datasets."""
        return self.key.replace(".", "_")

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)


def axis_of(
    key: str,
    path: Path,
    given: Sequence[Value | Labelled],
    system: type[Parameters],
    field: str = "",
) -> Axis:
    """An axis; texts that write numbers are numbers where no text is wanted.

    Beside a label each value is a word. ``field``, if given, is for the sentence that refuses a
    value that occurs twice.
    """
    if Labelled in set(map(type, given)):
        names = tuple(map(shown, given))
        contents = tuple(one.content if isinstance(one, Labelled) else one for one in given)
        return Axis(key, path, distinct(names, field or key), contents)
    values: tuple[Value, ...] = tuple(given)  # type: ignore[arg-type]
    if isinstance(values[0], str) and not is_text(system, path[0]):
        read = tuple(map(as_number, values))
        if not any(isinstance(value, str) for value in read):
            values = tuple(number(value, field) if field else float(value) for value in read)
    return Axis(key, path, distinct(values, field) if field else values)


def in_one_spelling(key: str, system: type[Parameters], parameters: dict[str, Any]) -> str:
    """``beta`` for ``constants.beta`` and ``constants_beta``, unless a field is called so."""
    if "constants" not in system.model_fields or _is_constant(key, system, parameters):
        return key
    name = key.removeprefix("constants.").removeprefix("constants_")
    fields = {*system.model_fields, *system.aliases}
    return name if name not in fields and _is_constant(name, system, parameters) else key


def _is_constant(key: str, system: type[Parameters], parameters: dict[str, Any]) -> bool:
    """Whether ``key`` is a named number that is given, or that the study's formulas use."""
    given = parameters.get("constants")
    return (isinstance(given, dict) and key in given) or in_formulas(key, system, parameters)


def in_formulas(constant: str, system: type[Parameters], parameters: dict[str, Any]) -> bool:
    """Whether the formulas among the parameters use a constant."""
    from hdica.ingredients.grammar import constants_used  # and with it sympy

    fields = [(parameters.get(name), variable) for name, variable in system.formulas.items()]
    return any(
        isinstance(text, str) and constant in constants_used(text, variable)
        for texts, variable in fields
        for one in (texts if isinstance(texts, list | tuple) else (texts,))
        for text in [one.content if isinstance(one, Labelled) else one]
    )


def address(key: str, system: type[Parameters], parameters: dict[str, Any], where: str) -> Path:
    """Path of the field that a key of ``grid`` or ``parameters`` sets."""
    fields = list(system.model_fields)
    if key in fields:
        return (key,)
    if key in system.aliases:
        return system.aliases[key]
    head, *rest = key.split(".")
    # Its name becomes a dimension, and so a folder of the store.
    named = all(map(str.isidentifier, rest or [key])) and len(key) <= MOST_LETTERS
    if rest and head in fields and named:
        return (head, *rest)
    if "constants" in fields and named and _is_constant(key, system, parameters):
        return ("constants", key)
    names = [*fields, *system.aliases]
    raise HdicaError(f"{where}.{key} is not a known parameter ({suggestion(key, names)})")


def leaves(path: Path, value: object) -> Iterable[Path]:
    """Paths of everything that a fixed parameter sets."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves((*path, str(key)), inner)
    else:
        yield path


def _overlap(one: Path, other: Path) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def check_conflicts(
    fixed: Mapping[str, tuple[Path, Any]], axes: Iterable[Axis], where: str = "grid"
) -> None:
    """Refuse a field that is set twice; ``where`` is what the axes belong to, for the sentence."""
    taken: list[tuple[str, Path]] = []
    for key, (path, value) in fixed.items():
        taken += [(f"parameters.{key}", leaf) for leaf in leaves(path, value)]
    for axis in axes:
        inside = where
        if axis.parts:
            inside = axis.where if where == "grid" else f"{where}.{axis.where}"
        for one in axis.each:
            for name, path in taken:
                if _overlap(path, one.path):
                    raise HdicaError(
                        f"{inside}.{one.key} is already set by {name} (fix a parameter or sweep it "
                        "once)"
                    )
            taken.append((f"{inside}.{one.key}", one.path))


def nested(assignments: Iterable[tuple[Path, Any]]) -> dict[str, Any]:
    """Content of a system from pairs of path and value; dictionaries are merged."""
    content: dict[str, Any] = {}
    for path, value in assignments:
        level = content
        for key in path[:-1]:
            inner = level.get(key)
            level[key] = dict(inner) if isinstance(inner, dict) else {}
            level = level[key]
        old = level.get(path[-1])
        merge = isinstance(old, dict) and isinstance(value, dict)
        level[path[-1]] = {**old, **value} if merge else value  # type: ignore[dict-item]
    return content


def build(
    system: type[Parameters], content: dict[str, Any], axes: Iterable[Axis] = (), blame: str = ""
) -> Parameters:
    """Build a system; a refusal names the key of the study: ``grid.KEY`` of an axis, ``blame``."""
    try:
        return system.model_validate(content)
    except ValidationError as exc:
        error = from_validation(exc, system.__name__, system.model_fields)
    except HdicaError as exc:
        error = exc
    message = str(error)
    while message.startswith(f"{system.__name__}: "):
        message = message.removeprefix(f"{system.__name__}: ")
    paths = [tuple(field.split(".")) for field in error.fields]
    each = [(one, axis.where if axis.parts else "grid") for axis in axes for one in axis.each]
    swept = [f"{of}.{a.key}" for a, of in each if any(_overlap(a.path, p) for p in paths)]
    where = blame or " and ".join(swept) or "parameters"
    raise HdicaError(f"{where}: {message}", error.fields) from None


def case_axis(
    together: Mapping[str, Values], system: type[Parameters], texts: dict[str, Any], where: str
) -> Axis:
    """The axis of parameters that go together, by :func:`columns` of them.

    Where there are no labels it is called as the first parameter, if its values are distinct; they
    are sorted then if they are numbers.
    """
    table = {key: expanded(values) for key, values in together.items()}
    labels = table.pop(LABEL, None)
    parts = [
        _part(key, address(key, system, texts, where), v, system, where) for key, v in table.items()
    ]
    rows = [
        tuple(map(str, row)) for row in zip(*(p.contents or p.values for p in parts), strict=True)
    ]
    if len(set(rows)) < len(rows):
        again = next(row for place, row in enumerate(rows) if row in rows[:place])
        raise HdicaError(f"{where}: {', '.join(again)} appears twice (each case only once)")
    first = parts[0]
    if labels is None and len(set(first.values)) == len(rows):
        order = list(range(len(rows)))
        if not isinstance(first.values[0], str):
            order.sort(key=lambda k: first.values[k])
        parts = [
            replace(
                part,
                values=tuple(part.values[k] for k in order),
                contents=tuple(part.contents[k] for k in order) if part.contents else (),
            )
            for part in parts
        ]
        return Axis(first.key, first.path, parts[0].values, parts=tuple(parts))
    if labels is None:
        keys = [part.key for part in parts]
        names = zip(*(map(shown, part.values) for part in parts), strict=True)
        labels = tuple(
            "; ".join(f"{k} = {v}" for k, v in zip(keys, row, strict=True)) for row in names
        )
    called = distinct(tuple(map(shown, labels)), f"{where}.{LABEL}")
    return Axis(CASE, (CASE,), called, parts=tuple(parts))


def sample_axis(sample: Sample, system: type[Parameters], texts: dict[str, Any]) -> Axis:
    """The axis of points that are spread over ranges of parameters; they are numbered."""
    columns = {key: expanded(values) for key, values in sample.columns().items()}
    parts = (
        Axis(key, address(key, system, texts, "sample.over"), values)  # type: ignore[arg-type]
        for key, values in columns.items()
    )
    return Axis(SAMPLE, (SAMPLE,), tuple(map(float, range(sample.points))), parts=tuple(parts))


def _part(
    key: str, path: Path, given: Sequence[Value | Labelled], system: type[Parameters], where: str
) -> Axis:
    """One of the parameters of cases, of which values may occur twice."""
    firsts: dict[str, Value | Labelled] = {}
    for one in given:
        if firsts.setdefault(shown(one), one) != one:
            raise HdicaError(
                f"{where}.{key}: label {shown(one)!r} is not allowed twice for different values"
            )
    axis = axis_of(key, path, tuple(firsts.values()), system)
    number = {name: place for place, name in enumerate(firsts)}
    places = [number[shown(one)] for one in given]
    return replace(
        axis,
        values=tuple(axis.values[k] for k in places),
        contents=tuple(axis.contents[k] for k in places) if axis.contents else (),
    )


KEPT = 4096  # systems that stay built


@dataclass(frozen=True)
class Space:
    """The parameter space of a study: builds each of its systems."""

    system: type[Parameters]
    """Class of the parameters."""
    fixed: Mapping[str, tuple[Path, Any]]
    """Path and value of every fixed parameter, by the key that the study uses."""
    axes: tuple[Axis, ...]
    """Swept parameters in the order of the study."""
    _built: dict[tuple[tuple[Path, Value], ...], Parameters] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[Any, ...]:
        # A study that travels, or is copied, does not take along what was built of it.
        return Space, (self.system, self.fixed, self.axes)

    def at(self, chosen: Mapping[Path, Value] | None = None, blame: str = "") -> Parameters:
        """The system with the chosen values by path, and the first ones of all other axes.

        It is built once. ``blame`` is the key of the study to name if the system is refused, where
        only one can be wrong.
        """
        values = {axis.path: axis.values[0] for axis in self.axes} | dict(chosen or {})
        key = tuple(values.items())
        system = self._built.get(key)
        if system is None:
            own = {axis.path: axis.sets for axis in self.axes}
            swept = [own[p](value) if p in own else [(p, value)] for p, value in values.items()]
            content = nested([*self.fixed.values(), *itertools.chain(*swept)])
            system = build(self.system, content, self.axes, blame)
            if len(self._built) < KEPT:
                self._built[key] = system
        return system


def space_of(
    system: type[Parameters],
    parameters: dict[str, Any],
    grid: Mapping[str, Values],
    together: Mapping[str, Values] | None = None,
    sample: Sample | None = None,
) -> Space:
    """The space that ``parameters``, ``grid``, ``cases`` and ``sample`` of a study span."""
    texts = {**(sample.over if sample else {}), **(together or {}), **grid, **parameters}
    axes = tuple(
        axis_of(key, address(key, system, texts, "grid"), expanded(values), system, f"grid.{key}")
        for key, values in grid.items()
    )
    if together:
        axes = (case_axis(together, system, texts, "cases"), *axes)
    if sample:
        axes = (sample_axis(sample, system, texts), *axes)
    fixed = {
        key: (address(key, system, parameters, "parameters"), value)
        for key, value in parameters.items()
    }
    return Space(system, fixed, axes)


def space_of_study(system: type[Parameters], content: Mapping[str, Any]) -> Space:
    """The space of a study as it is written."""
    grid = {key: parse_axis(v, f"grid.{key}") for key, v in (content.get("grid") or {}).items()}
    cases = columns(content["cases"], "cases") if content.get("cases") else None
    sample, refine = parse_sample(content.get("sample")), parse_refine(content.get("refine"))
    grid = grid if refine is None else refine.finest(grid)
    return space_of(system, content.get("parameters") or {}, grid, cases, sample)
