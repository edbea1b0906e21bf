"""Values of swept parameters as a user writes them: lists, ranges, labels, cases, refinements."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
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

from hdica.errors import HdicaError, one_sentence, unknown_key
from hdica.ingredients.plain import Array, as_number, plain

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


def _entry(value: object, field: str, rounded: bool = True) -> Value | Labelled:
    if isinstance(value, str | Labelled):
        return value
    if isinstance(value, Mapping) and LABEL in value:
        return _labelled(value, field)
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return number(value, field) if rounded else float(value)
    example = (
        {LABEL: "name", **value} if isinstance(value, Mapping) else {LABEL: "t9", "student": 9}
    )
    raise HdicaError(
        f"{field}: value {value!r} is not allowed (a number, a word, or a mapping with a label is "
        f"needed, such as {example!r})"
    )


Values = tuple[Value | Labelled, ...] | Range
"""An axis as a study holds it."""


def parse_axis(given: object, field: str, rounded: bool = True) -> Values:
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
    values = tuple(_entry(v, field, rounded) for v in given)
    if any(isinstance(v, Labelled) for v in values):
        return values
    if len({isinstance(v, str) for v in values}) > 1:
        values = tuple(_entry(as_number(v), field, rounded) for v in values)
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


CASE, ZIP, SAMPLE = "case", "zip", "sample"
MOST_SAMPLED = 1000  # parameters of a sample


def columns(given: object, field: str, rounded: bool = True) -> dict[str, Values]:
    """Parameters that go together, as columns: ``{tau: [...], Q0: [...]}``, or a list of rows.

    Rows have a label each, their own or what they set. Numbers are ``rounded`` to the digits that
    are shown.
    """
    if isinstance(given, list | tuple) and given:
        given = _of_rows(given, field)
    if not isinstance(given, Mapping) or not given or not all(isinstance(k, str) for k in given):
        raise HdicaError(
            f"{field} = {given!r} is not allowed (lists by the names of parameters, or a list of "
            "mappings such as {tau: 0.1, Q0: 0.5, label: small})"
        )
    parsed = {key: parse_axis(values, f"{field}.{key}", rounded) for key, values in given.items()}
    if not parsed.keys() - {LABEL}:
        raise HdicaError(f"{field} sets no parameter (lists by the names of parameters)")
    for name in expanded(parsed[LABEL]) if LABEL in parsed else ():
        text = shown(name)
        if not (0 < len(text.strip()) <= MOST_LETTERS and text.isprintable()):
            raise HdicaError(
                f"{field}: label {text[:MOST_LETTERS]!r} is not allowed (1 to {MOST_LETTERS} "
                "printable letters)"
            )
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
        text = "; ".join(f"{key} = {_named(row[key])}" for key in before)
        for key, value in {LABEL: row.get(LABEL, text), **row}.items():
            table.setdefault(str(key), []).append(value)
    return table


def _named(value: object) -> str:
    """A value of a row as a part of its label."""
    if isinstance(value, Mapping):
        return str(value.get(LABEL, dict(value)))
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


Cases = Annotated[
    dict[str, Values], BeforeValidator(lambda given: columns(given, "cases") if given != {} else {})
]
"""Parameters that go together, and their labels."""


class Between(BaseModel):
    """A range from which values are drawn: ``[low, high]``, or ``{from, to, log}``."""

    model_config = ConfigDict(frozen=True)

    low: float
    high: float
    log: bool = False

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        return {"from": self.low, "to": self.high, "log": self.log}

    def at(self, share: Array) -> tuple[float, ...]:
        """Canonical values at shares of the way, from 0 to 1, evenly in the logarithm with it."""
        if self.log:
            values = self.low * (self.high / self.low) ** share
        else:
            values = self.low + (self.high - self.low) * share
        return tuple(canonical(v) for v in values.tolist())


class Sample(BaseModel):
    """Points spread over ranges of parameters by Sobol's sequence, scrambled by a seed.

    The first points of more of them are the same.
    """

    model_config = ConfigDict(frozen=True)

    points: int
    seed: int = 0
    over: dict[str, Between]

    def columns(self) -> dict[str, Values]:
        """Values of every parameter."""
        from scipy.stats.qmc import Sobol

        with warnings.catch_warnings():
            # Any number of points will do, though powers of 2 are spread best.
            warnings.filterwarnings("ignore", message="The balance properties")
            shares = Sobol(len(self.over), rng=self.seed).random(self.points)
        return {key: one.at(shares[:, k]) for k, (key, one) in enumerate(self.over.items())}


def parse_sample(given: object) -> Sample | None:
    """Read a sample as a user writes it; None is none."""
    if given is None or isinstance(given, Sample):
        return given
    check_keys(given, ["points", "seed", "over"], "sample")
    content = dict(given)  # type: ignore[call-overload]
    over = content.get("over")
    if not isinstance(over, Mapping) or not over or not all(isinstance(k, str) for k in over):
        raise HdicaError(
            f"sample.over = {over!r} is not allowed (ranges by the names of parameters, as in "
            "{tau: {from: 0.01, to: 1, log: true}, omega: [0.5, 4]})"
        )
    if len(over) > MOST_SAMPLED:
        raise HdicaError(f"sample.over has {len(over)} parameters (at most {MOST_SAMPLED})")
    ranges = {key: _between(one, f"sample.over.{key}") for key, one in over.items()}
    points = _whole(content.get("points"), "sample.points", 1)
    return Sample(points=points, seed=_whole(content.get("seed", 0), "sample.seed", 0), over=ranges)


def _whole(value: object, field: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise HdicaError(f"{field} = {value!r} is not allowed (a whole number >= {least})")
    return int(value)


def _between(given: object, field: str) -> Between:
    if isinstance(given, Between):
        return given
    if isinstance(given, list | tuple) and len(given) == 2:
        given = dict(zip(("from", "to"), given, strict=True))
    if not isinstance(given, Mapping) or not {"from", "to"} <= given.keys():
        raise HdicaError(
            f"{field} = {given!r} is not allowed ([low, high], or {{from: 0.1, to: 1}})"
        )
    check_keys(dict(given), ["from", "to", "log"], field)
    low, high = (number(given[key], f"{field}.{key}") for key in ("from", "to"))
    log = given.get("log", False)
    if not isinstance(log, bool):
        raise HdicaError(f"{field}.log = {log!r} is not allowed (true or false)")
    if not low < high:
        raise HdicaError(f"{field} = {low:g} to {high:g} is not allowed (from has to be below to)")
    if log and low <= 0:
        raise HdicaError(f"{field}.from = {low:g} is not allowed (log needs from > 0)")
    return Between(low=low, high=high, log=log)


MOST_LEVELS = 8


class Refine(BaseModel):
    """Halving the steps of some axes, so many times, where an analysis sees neighbours differ."""

    model_config = ConfigDict(frozen=True)

    analysis: str
    levels: int
    over: tuple[str, ...] = ()
    """Names of the dimensions; empty for those that the analysis is over."""

    @property
    def parts(self) -> int:
        """Into how many parts a step of the grid is divided at the finest level."""
        return 2**self.levels

    def finest(self, grid: Mapping[str, Values]) -> dict[str, Values]:
        """The grid with all values that may be added."""
        return {
            key: _divided(values, self.parts, f"grid.{key}")
            if key.replace(".", "_") in self.over
            else values
            for key, values in grid.items()
        }


def _divided(values: Values, parts: int, field: str) -> Values:
    """An axis of numbers with each step divided, a range in its own spacing."""
    if isinstance(values, Range):
        return values.model_copy(update={"num": parts * (values.num - 1) + 1})
    numbers = [as_number(value) for value in values]
    if len(numbers) < 2 or not all(isinstance(one, int | float) for one in numbers):
        raise HdicaError(
            f"{field} is not allowed with refine (two numbers or more, neither words nor formulas)"
        )
    coarse = np.sort(np.array(numbers, dtype=float))
    at = np.arange(parts * (coarse.size - 1) + 1) / parts
    return tuple(canonical(v) for v in np.interp(at, np.arange(coarse.size), coarse).tolist())


def parse_refine(given: object) -> Refine | None:
    """Read a refinement as a user writes it; None is none."""
    if given is None or isinstance(given, Refine):
        return given
    check_keys(given, ["analysis", "levels", "over"], "refine")
    content = dict(given)  # type: ignore[call-overload]
    analysis, over = content.get("analysis"), content.get("over", ())
    if not isinstance(analysis, str):
        raise HdicaError(
            f"refine.analysis = {analysis!r} is not allowed (an analysis of the study: phase or "
            "success)"
        )
    if not isinstance(over, list | tuple) or not all(isinstance(one, str) for one in over):
        raise HdicaError(f"refine.over = {over!r} is not allowed (names of swept parameters)")
    levels = _whole(content.get("levels"), "refine.levels", 1)
    if levels > MOST_LEVELS:
        raise HdicaError(f"refine.levels = {levels} is not allowed (at most {MOST_LEVELS})")
    return Refine(analysis=analysis, levels=levels, over=tuple(over))
