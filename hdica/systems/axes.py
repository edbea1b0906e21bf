"""Values along one axis of a study: canonical numbers, lists and ranges."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hdica.errors import HdicaError, one_sentence, unknown_key
from hdica.ingredients.plain import as_number

Value = float | str


def is_number(value: Any) -> bool:
    """Whether a value is a plain number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def canonical(value: float) -> float:
    """Float nearest to ``value`` in 12 significant digits, so that ``sel(tau=0.3)`` works."""
    return float(f"{float(value):.12g}") + 0.0  # + 0.0 turns -0.0 into 0.0


def number(value: Any, field: str) -> float:
    """``value`` as a canonical number."""
    value = as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise HdicaError(f"{field} = {value!r} is not allowed (a number is needed)")
    try:
        found = canonical(float(value))
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise HdicaError(f"{field} = {value!r} is not allowed (a finite number is needed)")
    return found


def check_keys(given: Any, allowed: list[str], where: str = "") -> Any:
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
        found = Range.model_validate({key: as_number(value) for key, value in given.items()})
    except ValidationError as exc:
        raise HdicaError(one_sentence(exc, field)) from exc
    if found.spacing == "log" and not (found.start > 0 and found.stop > 0):
        raise HdicaError(
            f"{field}.start = {found.start:g} is not allowed (log spacing needs start and stop > 0)"
        )
    return found


def _entry(value: Any, field: str) -> Value:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return number(value, field)
    raise HdicaError(f"{field}: value {value!r} is not allowed (a number or a word is needed)")


def parse_axis(given: Any, field: str) -> tuple[Value, ...] | Range:
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


def shown(value: Value) -> str:
    """A value as a user would write it."""
    return value if isinstance(value, str) else f"{value:.12g}"


def size(axis: tuple[Value, ...] | Range) -> int:
    """Number of values of an axis, without expanding it."""
    return axis.num if isinstance(axis, Range) else len(axis)


def expanded(axis: tuple[Value, ...] | Range) -> tuple[Value, ...]:
    """All values of an axis as they are given."""
    return axis.values() if isinstance(axis, Range) else axis


def expand(axis: tuple[Value, ...] | Range, field: str) -> tuple[Value, ...]:
    """All values of an axis: canonical, distinct and, if they are numbers, sorted."""
    return distinct(expanded(axis), field)


def _parse_grid(given: Any) -> Any:
    if not isinstance(given, dict):
        raise HdicaError("grid must be a mapping from parameters to values")
    for key in given:
        if not isinstance(key, str):
            raise HdicaError(f"grid: key {key!r} is not allowed (the name of a parameter)")
    return {key: parse_axis(value, f"grid.{key}") for key, value in given.items()}


Grid = Annotated[dict[str, tuple[Value, ...] | Range], BeforeValidator(_parse_grid)]
