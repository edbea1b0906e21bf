"""How the keys of a grid address the fields of a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hdica.errors import HdicaError, from_validation, suggestion
from hdica.ingredients.plain import as_number
from hdica.systems.axes import Value, distinct, number

Path = tuple[str, ...]
MOST_LETTERS = 100
"""Longest key of a grid."""


@dataclass(frozen=True)
class Axis:
    """One swept parameter."""

    key: str  # as the study writes it: ``tau``, ``Q0``, ``prior.sparse``
    path: Path  # where its values go in the system: ("prior", "sparse")
    values: tuple[Value, ...]  # canonical, distinct; numbers are sorted

    @property
    def dim(self) -> str:
        """Name of the dimension in datasets."""
        return self.key.replace(".", "_")

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)


def is_text(system: Any, name: str) -> bool:
    """Whether a field is a text, which stays one though it may write a number."""
    field = system.model_fields.get(name)
    return field is None or field.annotation is str


def axis_of(key: str, path: Path, values: tuple[Value, ...], system: Any, field: str = "") -> Axis:
    """An axis of distinct values; texts that write numbers are numbers where no text is wanted.

    ``field`` is for the sentence that refuses a value that occurs twice; without it none is.
    """
    if isinstance(values[0], str) and not is_text(system, path[0]):
        read = tuple(map(as_number, values))
        if not any(isinstance(value, str) for value in read):
            values = tuple(number(value, field) if field else float(value) for value in read)
    return Axis(key, path, distinct(values, field) if field else values)


def in_one_spelling(key: str, system: Any, parameters: dict[str, Any]) -> str:
    """``beta`` for ``constants.beta`` and ``constants_beta``; a key of any other kind as it is.

    A constant that has the name of a field keeps its path.
    """
    if "constants" not in system.model_fields or _is_constant(key, system, parameters):
        return key
    name = key.removeprefix("constants.").removeprefix("constants_")
    fields = {*system.model_fields, *getattr(system, "aliases", {})}
    return name if name not in fields and _is_constant(name, system, parameters) else key


def _is_constant(key: str, system: Any, parameters: dict[str, Any]) -> bool:
    """Whether ``key`` is a named number that the study's formulas use."""
    from hdica.ingredients.grammar import constants_used  # and with it sympy

    given = parameters.get("constants")
    if isinstance(given, dict) and key in given:
        return True
    variables: dict[str, str] = getattr(system, "formulas", {})
    texts = {name: parameters.get(name) for name in variables}
    return any(
        isinstance(text, str) and key in constants_used(text, variables[name])
        for name, one in texts.items()
        for text in (one if isinstance(one, list | tuple) else (one,))
    )


def address(key: str, system: Any, parameters: dict[str, Any], where: str) -> Path:
    """Path of the field that a key of ``grid`` or ``parameters`` sets."""
    aliases: dict[str, Path] = getattr(system, "aliases", {})
    fields = list(system.model_fields)
    if key in fields:
        return (key,)
    if key in aliases:
        return tuple(aliases[key])
    head, *rest = key.split(".")
    # Its name becomes a dimension, and so a folder of the store.
    named = all(map(str.isidentifier, rest or [key])) and len(key) <= MOST_LETTERS
    if rest and head in fields and named:
        return (head, *rest)
    if "constants" in fields and named and _is_constant(key, system, parameters):
        return ("constants", key)
    known = fields + list(aliases)
    raise HdicaError(f"{where}.{key} is not a known parameter ({suggestion(key, known)})")


def leaves(path: Path, value: Any) -> Iterable[Path]:
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
        for name, path in taken:
            if _overlap(path, axis.path):
                raise HdicaError(
                    f"{where}.{axis.key} is already set by {name} (fix a parameter or sweep it "
                    "once)"
                )
        taken.append((f"{where}.{axis.key}", axis.path))


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


def build(system: Any, content: dict[str, Any], axes: Iterable[Axis] = (), blame: str = "") -> Any:
    """Build a system, naming the key of the study that is wrong if it is refused.

    The swept ``axes`` make it ``grid.KEY`` rather than ``parameters``; ``blame`` is the one key
    that can be wrong, if that is known.
    """
    try:
        return system.model_validate(content)
    except ValidationError as exc:
        found = from_validation(exc, system.__name__, system.model_fields)
    except HdicaError as exc:
        found = exc
    message = str(found)
    while message.startswith(f"{system.__name__}: "):
        message = message.removeprefix(f"{system.__name__}: ")
    where = blame or _swept(found.fields, axes) or "parameters"
    raise HdicaError(f"{where}: {message}", found.fields) from None


def _swept(fields: Iterable[str], axes: Iterable[Axis]) -> str:
    """The keys of the grid that set some of these fields, empty if none does."""
    paths = [tuple(field.split(".")) for field in fields]
    return " and ".join(f"grid.{a.key}" for a in axes if any(_overlap(a.path, p) for p in paths))
