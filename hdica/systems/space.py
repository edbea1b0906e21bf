"""The parameter space of a study: values along an axis, the fields that keys address, systems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_serializer,
)

from hdica.errors import HdicaError, from_validation, one_sentence, suggestion, unknown_key
from hdica.ingredients.plain import as_number, plain
from hdica.systems.parameters import Parameters, is_text

Value = float | str
LABEL, VALUE = "label", "value"
MOST_LETTERS = 100  # longest key of a grid, and label of a value


def canonical(value: float) -> float:
    """Float nearest to ``value`` in 12 significant digits, so that ``sel(tau=0.3)`` works."""
    return float(f"{float(value):.12g}") + 0.0  # + 0.0 turns -0.0 into 0.0


def number(value: object, field: str) -> float:
    """``value`` as a canonical number."""
    value = as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise HdicaError(f"{field} = {value!r} is not allowed (a number is needed)")
    try:
        rounded = canonical(float(value))
    except OverflowError:
        rounded = math.inf
    if not math.isfinite(rounded):
        raise HdicaError(f"{field} = {value!r} is not allowed (a finite number is needed)")
    return rounded


def check_keys(given: object, allowed: list[str], where: str = "") -> Any:
    """Return ``given`` if it is a mapping with allowed keys only."""
    if not isinstance(given, dict):
        raise HdicaError(f"{where or 'it'} must be a mapping with the keys {', '.join(allowed)}")
    for key in given:
        if key not in allowed:
            prefix = f"{where}." if where else ""
            raise HdicaError(prefix + unknown_key(str(key), allowed))
    return given


class Range(BaseModel):
    """Evenly spaced values from ``start`` to ``stop``, both included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: float = Field(default=0.0, allow_inf_nan=False, description="first value")
    stop: float = Field(allow_inf_nan=False, description="last value")
    num: int = Field(ge=2, description="how many values")
    spacing: Literal["linear", "log"] = Field(
        default="linear", description="linear, or log for a constant ratio"
    )

    def values(self) -> tuple[float, ...]:
        """All values, canonical."""
        space = np.geomspace if self.spacing == "log" else np.linspace
        with np.errstate(over="ignore", invalid="ignore"):
            expanded = space(self.start, self.stop, self.num)
        if not np.all(np.isfinite(expanded)):
            raise HdicaError(
                f"the range from {self.start:g} to {self.stop:g} is too wide (finite numbers)"
            )
        return tuple(canonical(v) for v in expanded.tolist())


def _range(given: dict[str, Any], field: str) -> Range:
    check_keys(given, list(Range.model_fields), field)
    try:
        axis = Range.model_validate({key: as_number(value) for key, value in given.items()})
    except ValidationError as exc:
        raise HdicaError(one_sentence(exc, field)) from exc
    if axis.spacing == "log" and not (axis.start > 0 and axis.stop > 0):
        raise HdicaError(
            f"{field}.start = {axis.start:g} is not allowed (log spacing needs start and stop > 0)"
        )
    return axis


class Labelled(BaseModel):
    """A value of an axis by the name that results have for it: ``{label: t9, student: 9}``.

    Its content is what stands beside the label, or the ``value`` if that stands alone.
    """

    model_config = ConfigDict(frozen=True)

    label: str
    content: Any

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        own = self.content
        return {LABEL: self.label, **(own if isinstance(own, dict) else {VALUE: own})}


def _labelled(given: Mapping[object, object], field: str) -> Labelled:
    """A value with a label, as a user writes it."""
    label, content = given[LABEL], {k: plain(v) for k, v in given.items() if k != LABEL}
    if not isinstance(label, str) or not 0 < len(label.strip()) <= MOST_LETTERS:
        text = f"a text of 1 to {MOST_LETTERS} letters"
        raise HdicaError(f"{field}: label {label!r} is not allowed ({text})")
    if not label.isprintable():
        raise HdicaError(f"{field}: label {label!r} is not allowed (printable letters)")
    if not content:
        raise HdicaError(
            f"{field}: label {label!r} stands alone (what it is the label of is needed, as in "
            "{label: t9, student: 9}, or as its value)"
        )
    return Labelled(label=label, content=content.get(VALUE) if [*content] == [VALUE] else content)


def _entry(value: object, field: str) -> Value | Labelled:
    if isinstance(value, str | Labelled):
        return value
    if isinstance(value, Mapping) and LABEL in value:
        return _labelled(value, field)
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return number(value, field)
    raise HdicaError(
        f"{field}: value {value!r} is not allowed (a number, a word, or a mapping with a label is "
        "needed)"
    )


Values = tuple[Value | Labelled, ...] | Range
"""An axis as a study holds it."""


def parse_axis(given: object, field: str) -> Values:
    """Read one axis as a user writes it: a list of values, or ``{start, stop, num, spacing}``."""
    if isinstance(given, Range):
        return given
    if isinstance(given, dict):
        return _range(given, field)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        raise HdicaError(
            f"{field} = {given!r} is not allowed (a list of values, or start, stop and num)"
        )
    if not given:
        raise HdicaError(f"{field} is an empty list (at least one value is needed)")
    values = tuple(_entry(v, field) for v in given)
    if any(isinstance(v, Labelled) for v in values):
        return values
    if len({isinstance(v, str) for v in values}) > 1:
        values = tuple(_entry(as_number(v), field) for v in values)
    if len({isinstance(v, str) for v in values}) > 1:
        raise HdicaError(f"{field} mixes numbers and words (all numbers or all words are needed)")
    return values


def distinct(values: tuple[Value, ...], field: str) -> tuple[Value, ...]:
    """Return the values, numbers sorted and words in the given order."""
    seen: set[Value] = set()
    for value in values:
        if value in seen:
            raise HdicaError(f"{field}: value {shown(value)} appears twice (each value only once)")
        seen.add(value)
    return values if isinstance(values[0], str) else tuple(sorted(values))


def shown(value: Value | Labelled) -> str:
    """A value as a user would write it, or its label."""
    if isinstance(value, Labelled):
        return value.label
    return value if isinstance(value, str) else f"{value:.12g}"


def size(axis: Values) -> int:
    """Number of values of an axis, without expanding it."""
    return axis.num if isinstance(axis, Range) else len(axis)


def expanded(axis: Values) -> tuple[Value | Labelled, ...]:
    """All values of an axis as they are given."""
    return axis.values() if isinstance(axis, Range) else axis


def _parse_grid(given: object) -> Any:
    if not isinstance(given, dict):
        raise HdicaError("grid must be a mapping from parameters to values")
    for key in given:
        if not isinstance(key, str):
            raise HdicaError(f"grid: key {key!r} is not allowed (the name of a parameter)")
    return {key: parse_axis(value, f"grid.{key}") for key, value in given.items()}


Grid = Annotated[dict[str, Values], BeforeValidator(_parse_grid)]


Path = tuple[str, ...]


CASE, ZIP = "case", "zip"


def columns(given: object, field: str) -> dict[str, Values]:
    """Parameters that go together, as columns: ``{tau: [...], Q0: [...]}``, or a list of rows.

    Rows have a label each, their own or what they set.
    """
    if isinstance(given, list | tuple):
        given = _of_rows(given, field)
    if not isinstance(given, Mapping) or not given or not all(isinstance(k, str) for k in given):
        raise HdicaError(
            f"{field} = {given!r} is not allowed (lists by the names of parameters, or a list of "
            "mappings such as {tau: 0.1, Q0: 0.5, label: small})"
        )
    parsed = {key: parse_axis(values, f"{field}.{key}") for key, values in given.items()}
    if not parsed.keys() - {LABEL}:
        raise HdicaError(f"{field} sets no parameter (lists by the names of parameters)")
    (first, length), *others = ((key, size(values)) for key, values in parsed.items())
    for key, other in others:
        if other != length:
            raise HdicaError(
                f"{field} is not allowed ({first} has {length} values and {key} {other}, and they "
                "go together)"
            )
    return parsed


def _of_rows(rows: Sequence[object], field: str) -> dict[str, list[object]]:
    """Columns of rows that all set the same parameters."""
    table: dict[str, list[object]] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or not row.keys() - {LABEL}:
            raise HdicaError(f"{field}: {row!r} is not allowed (a mapping such as {{tau: 0.1}})")
        names = [key for key in row if key != LABEL]
        before = [key for key in table if key != LABEL] or names
        if {*names} != {*before}:
            odd = sorted({*map(str, names)} ^ {*map(str, before)})[0]
            raise HdicaError(
                f"{field}: row {number} is not allowed (all rows set the same parameters, and "
                f"{odd} is not in all of them)"
            )
        text = ", ".join(f"{key} = {_named(row[key])}" for key in before)
        for key, value in {LABEL: row.get(LABEL, text), **row}.items():
            table.setdefault(str(key), []).append(value)
    return table


def _named(value: object) -> str:
    """A value of a row as a part of its label."""
    if isinstance(value, Mapping):
        return str(value.get(LABEL, dict(value)))
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


Cases = Annotated[
    dict[str, Values], BeforeValidator(lambda given: columns(given, "cases") if given else {})
]
"""Parameters that go together, and their labels."""


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
        at = self.values.index(value) if self.parts or self.contents else -1
        return [
            (one.path, (one.contents or one.values)[at] if at >= 0 else value) for one in self.each
        ]

    @property
    def where(self) -> str:
        """Where a study sets it."""
        return "cases" if self.parts else f"grid.{self.key}"

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
    values = tuple(one for one in given if not isinstance(one, Labelled))
    if len(values) < len(given):
        names = tuple(map(shown, given))
        contents = tuple(one.content if isinstance(one, Labelled) else one for one in given)
        return Axis(key, path, distinct(names, field or key), contents)
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
        for one in axis.each:
            for name, path in taken:
                if _overlap(path, one.path):
                    raise HdicaError(
                        f"{where}.{one.key} is already set by {name} (fix a parameter or sweep it "
                        "once)"
                    )
            taken.append((f"{'cases' if axis.parts else where}.{one.key}", one.path))


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
    each = [(one, "cases" if axis.parts else "grid") for axis in axes for one in axis.each]
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
    parts = [_part(key, address(key, system, texts, where), v, system) for key, v in table.items()]
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
        labels = tuple(
            ", ".join(f"{k} = {v}" for k, v in zip(keys, row, strict=True)) for row in rows
        )
    names = distinct(tuple(map(shown, labels)), f"{where}.{LABEL}")
    return Axis(CASE, (CASE,), names, parts=tuple(parts))


def _part(
    key: str, path: Path, given: Sequence[Value | Labelled], system: type[Parameters]
) -> Axis:
    """One of the parameters of cases, of which values may occur twice."""
    distinct_ones = list(dict.fromkeys(map(shown, given)))
    firsts = [next(one for one in given if shown(one) == name) for name in distinct_ones]
    axis = axis_of(key, path, firsts, system)
    places = [distinct_ones.index(shown(one)) for one in given]
    return replace(
        axis,
        values=tuple(axis.values[k] for k in places),
        contents=tuple(axis.contents[k] for k in places) if axis.contents else (),
    )


KEPT = 4096  # systems that stay built


@dataclass(frozen=True)
class Space:
    """The parameter space of a study; whoever asks for a system of it asks here."""

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
) -> Space:
    """The space that ``parameters``, ``grid`` and ``cases`` of a study span."""
    texts = {**(together or {}), **grid, **parameters}
    axes = tuple(
        axis_of(key, address(key, system, texts, "grid"), expanded(values), system, f"grid.{key}")
        for key, values in grid.items()
    )
    if together:
        axes = (case_axis(together, system, texts, "cases"), *axes)
    fixed = {
        key: (address(key, system, parameters, "parameters"), value)
        for key, value in parameters.items()
    }
    return Space(system, fixed, axes)
