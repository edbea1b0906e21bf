"""Where and when points are computed: dimensions, seeds and output times."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hdica.errors import HdicaError
from hdica.sweep.spec.axes import check_keys, number, parse_axis, size

MAX_TIMES = 100_000
"""Most output times of a study: the whole time axis of a block is one chunk."""


def _whole(value: Any, field: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise HdicaError(f"{field} = {value!r} is not allowed (a whole number >= {least})")
    if value > 2**53:
        raise HdicaError(f"{field} = {value!r} is not allowed (a whole number <= 2**53)")
    return int(value)


def _whole_list(given: Any, field: str, least: int) -> tuple[int, ...]:
    if not isinstance(given, list | tuple | range):
        given = [given]
    if not given:
        raise HdicaError(f"{field} is an empty list (at least one whole number is needed)")
    values: set[int] = set()
    for entry in given:
        value = _whole(entry, field, least)
        if value in values:
            raise HdicaError(f"{field}: value {value} appears twice (each value only once)")
        values.add(value)
    return tuple(sorted(values))


def _parse_n(given: Any) -> tuple[int, ...]:
    return _whole_list(given, "n", 3)


def _parse_seeds(given: Any) -> int | tuple[int, ...]:
    if isinstance(given, list | tuple | range):
        values = _whole_list(given, "seeds", 0)
        return len(values) if values == tuple(range(len(values))) else values
    return _whole(given, "seeds", 1)


class MethodSettings(BaseModel):
    """Where a method is computed; a method without randomness takes neither key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: Annotated[tuple[int, ...], BeforeValidator(_parse_n)] | None = Field(
        default=None, description="dimensions of the data, each a whole number >= 3"
    )
    seeds: Annotated[int | tuple[int, ...], BeforeValidator(_parse_seeds)] | None = Field(
        default=None, description="16 means 0 to 15; or a list of whole numbers >= 0"
    )

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        if given is None:
            return {}
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    @property
    def n_values(self) -> tuple[int | None, ...]:
        """Dimensions, or ``(None,)`` for a method without."""
        return (None,) if self.n is None else self.n

    @property
    def seed_count(self) -> int:
        """Number of seeds; 1 for a method without."""
        if self.seeds is None:
            return 1
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    def seed_values(self) -> tuple[int, ...]:
        """All seeds; empty for a method without."""
        if self.seeds is None:
            return ()
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def parse_increasing(
    given: Any, field: str, what: str, most: int, positive: bool = True
) -> tuple[float, ...]:
    """Canonical numbers along an axis of every result: increasing.

    Parameters
    ----------
    given
        A list, or ``{start, stop, num, spacing}``.
    field
        Name of the field.
    what
        What one of the numbers is, for the sentence: ``"time"``.
    most
        Most numbers that are allowed; a longer range is refused without expanding it.
    positive
        Whether numbers below 0 are refused.

    Raises
    ------
    HdicaError
        If a number is negative or not after the one before, or there are too many.
    """
    axis = parse_axis(given, field)
    if size(axis) > most:
        raise HdicaError(f"{field} has {size(axis)} values (at most {most} are allowed)")
    values = axis if isinstance(axis, tuple) else axis.values()
    found = tuple(number(v, field) for v in values)
    if positive and found[0] < 0:
        raise HdicaError(f"{field} = {found[0]:g} is not allowed (a {what} is >= 0)")
    for before, after in itertools.pairwise(found):
        if after <= before:
            raise HdicaError(f"{field}: {after:g} comes after {before:g} ({what}s must increase)")
    return found


def parse_times(given: Any) -> tuple[float, ...]:
    """Output times: canonical, not negative, increasing.

    Raises
    ------
    HdicaError
        If a time is negative or not after the one before.
    """
    return parse_increasing(given, "times", "time", MAX_TIMES)


Times = Annotated[tuple[float, ...], BeforeValidator(parse_times)]
