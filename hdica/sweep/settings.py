"""What a study says about its methods and about what its report shows."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hdica.errors import HdicaError
from hdica.sweep.axes import Range, check_keys, number, parse_axis

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


def parse_times(given: Any) -> tuple[float, ...]:
    """Output times: canonical, not negative, increasing.

    Raises
    ------
    HdicaError
        If a time is negative or not after the one before.
    """
    axis = parse_axis(given, "times")
    count = axis.size if isinstance(axis, Range) else len(axis)
    if count > MAX_TIMES:
        raise HdicaError(f"times has {count} values (at most {MAX_TIMES} are allowed)")
    values = axis.values() if isinstance(axis, Range) else axis
    times = tuple(number(v, "times") for v in values)
    if times[0] < 0:
        raise HdicaError(f"times = {times[0]:g} is not allowed (a time is >= 0)")
    for before, after in itertools.pairwise(times):
        if after <= before:
            raise HdicaError(f"times: {after:g} comes after {before:g} (times must increase)")
    return times


Times = Annotated[tuple[float, ...], BeforeValidator(parse_times)]


def _names(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))


class Convergence(_Settings):
    """Simulation against limit as n grows."""

    simulation: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        min_length=1, description="stochastic methods to compare"
    )
    limit: str = Field(description="method that gives the limit")
    variable: str = Field(default="Q", description="output that both methods have")
    level: float = Field(default=0.01, gt=0, lt=1, description="level of the verdict")


class Phase(_Settings):
    """Where learning stops, over two swept parameters."""

    simulation: str = Field(description="stochastic method")
    x: str = Field(description="swept parameter on the horizontal axis")
    y: str = Field(description="swept parameter on the vertical axis")
    variable: str = Field(default="Q", description="output that measures success")
    limit: str | None = Field(default=None, description="method that gives the limit")
    success: float = Field(default=0.5, gt=0, description="threshold on |variable| at the end")


class Flow(_Settings):
    """Drift of the limit and its fixed points."""

    method: str = Field(default="drift", description="method that gives the drift")
    fixed_points: str | None = Field(default=None, description="method that gives fixed points")


class Analysis(_Settings):
    """What the report of a study shows."""

    convergence: Convergence | None = None
    phase: Phase | None = None
    flow: Flow | None = None

    def methods(self) -> list[tuple[str, str]]:
        """Every method named here, as pairs of where and which."""
        named: list[tuple[str, str | None]] = []
        if self.convergence:
            named += [("analysis.convergence.simulation", s) for s in self.convergence.simulation]
            named.append(("analysis.convergence.limit", self.convergence.limit))
        if self.phase:
            named.append(("analysis.phase.simulation", self.phase.simulation))
            named.append(("analysis.phase.limit", self.phase.limit))
        if self.flow:
            named.append(("analysis.flow.method", self.flow.method))
            named.append(("analysis.flow.fixed_points", self.flow.fixed_points))
        return [(where, name) for where, name in named if name is not None]

    def variables(self) -> list[tuple[str, str, list[str]]]:
        """Every variable named here: where, which, and the methods that must have it."""
        found = []
        if self.convergence:
            names = [*self.convergence.simulation, self.convergence.limit]
            found.append(("analysis.convergence.variable", self.convergence.variable, names))
        if self.phase:
            names = [name for name in (self.phase.simulation, self.phase.limit) if name]
            found.append(("analysis.phase.variable", self.phase.variable, names))
        return found
