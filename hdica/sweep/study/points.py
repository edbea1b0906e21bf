"""Where and when points are computed: dimensions, seeds and output times."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hdica.errors import HdicaError
from hdica.systems.arguments import check_length
from hdica.systems.axes import check_keys, expanded, number, parse_axis, size
from hdica.systems.points import MAX_TIMES, check_n, check_seeds, check_time_axis, seed_count


def _parse_n(given: Any) -> tuple[int, ...]:
    one = not isinstance(given, list | tuple | range | np.ndarray)
    values = [check_n(n) for n in ([given] if one else given)]
    return _distinct(values, "n")


def _parse_seeds(given: Any) -> int | tuple[int, ...]:
    count = seed_count(given)
    if count is not None:
        return count
    values = _distinct(check_seeds(given), "seeds")
    return len(values) if values == tuple(range(len(values))) else values


def _distinct(values: list[int], field: str) -> tuple[int, ...]:
    if not values:
        raise HdicaError(f"{field} is an empty list (at least one whole number is needed)")
    found = sorted(values)
    for before, after in itertools.pairwise(found):
        if before == after:
            raise HdicaError(f"{field}: value {after} appears twice (each value only once)")
    return tuple(found)


class MethodSettings(BaseModel):
    """Where a method is computed; each key is for the methods that need it alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: Annotated[tuple[int, ...], BeforeValidator(_parse_n)] | None = Field(
        default=None,
        description="dimensions of the data, each a whole number >= 3",
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


def parse_numbers(given: Any, field: str, most: int) -> tuple[float, ...]:
    """Canonical numbers along an axis of every result: a list, or ``{start, stop, num, spacing}``.

    A longer range than ``most`` is refused without expanding it.
    """
    if isinstance(given, list | tuple):
        check_length(len(given), field, most)
    axis = parse_axis(given, field)
    check_length(size(axis), field, most)
    return tuple(number(v, field) for v in expanded(axis))


def parse_times(given: Any) -> tuple[float, ...]:
    """Output times: canonical, not negative, increasing."""
    found = parse_numbers(given, "times", MAX_TIMES)
    check_time_axis(found)
    return found


Times = Annotated[tuple[float, ...], BeforeValidator(parse_times)]
