"""Trials: points of a stochastic method, on the random streams that belong to them by content."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from hdica.finite.random.streams import Stream, streams_of
from hdica.finite.record import Values
from hdica.ingredients.plain import ARRAY, VECTOR
from hdica.ingredients.save import Save
from hdica.systems.method import P, Run, RunAll, Simulation, Together, Trial
from hdica.systems.outputs import Array, PointResult
from hdica.systems.parameters import constants_of

Rule = TypeVar("Rule")
"""What a kernel takes of a system, its rule."""
Runner = Callable[[P, Array, int, Stream, Save], Values]
"""``runner(system, times, n, stream, save)``; n is 0 for a method without."""

SHARED = {"noise": "shared"}
"""In place of a system where its parameters must not choose the random numbers."""


def content_of(system: object, without: frozenset[str] = frozenset()) -> dict[str, object]:
    """A system as plain data: what its numbers, and so its random streams, depend on.

    It is ``without`` fields that the result ignores: they must not choose the random numbers.
    """
    assert isinstance(system, BaseModel)
    fields = system.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
    return {"system": type(system).__name__, **{k: _without_place(v) for k, v in fields.items()}}


def _without_place(field: object) -> object:
    """A field without where a vector or samples in it lie: their digest says what they are."""
    inner = field.get(VECTOR, field.get(ARRAY)) if isinstance(field, dict) else None
    if not isinstance(field, dict) or not isinstance(inner, dict):
        return field
    named = {key: value for key, value in inner.items() if key != "file"}
    return {name: named if value is inner else value for name, value in field.items()}


def saved_for(save: Save, system: object) -> Save:
    """What to save, with the constants of the system in its formulas."""
    return replace(save, constants=constants_of(system))


def seeded(name: str, runner: Runner[P], without: frozenset[str] = frozenset()) -> Run[P]:
    """One point of a stochastic method, on the streams that belong to it by content."""

    def run(system: Any, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        assert seed is not None
        stream = streams_of(content_of(system, without), name, n)(seed)
        return PointResult(*runner(system, times, n or 0, stream, saved_for(save, system)))

    return run


def each(function: Callable[[P], Rule], trials: Sequence[Trial[P]]) -> list[Rule]:
    """A function of the system of every trial, computed once a system: points differ in seeds."""
    systems = {id(system): system for system, _ in trials}
    values = {key: function(system) for key, system in systems.items()}
    return [values[id(system)] for system, _ in trials]


def in_groups(
    keys: Sequence[Hashable], most: int, compute: Callable[[list[int]], list[Values]]
) -> list[PointResult]:
    """Results in order, computed for at most ``most`` points with equal keys at a time."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    results: dict[int, PointResult] = {}
    for members in places.values():
        for first in range(0, len(members), most):
            group = members[first : first + most]
            values = [PointResult(*each) for each in compute(group)]
            results |= dict(zip(group, values, strict=True))
    return [results[place] for place in range(len(keys))]


def in_lanes(
    name: str,
    rule_of: Callable[[P, int], Rule],
    content: Callable[[P], object],
    key: Callable[[P, Rule], Hashable],
    most: int,
    run: Callable[[list[P], list[Rule], Array, int, list[Stream]], list[Values]],
) -> RunAll[P]:
    """Points that a kernel computes side by side, each on the streams of the method ``name``.

    ``rule_of(system, n)`` is what the kernel takes; points with equal ``key(system, rule)`` go
    together, at most so many; ``content`` is what of a system its streams depend on; and
    ``run(systems, rules, times, n, streams)`` computes a group.
    """

    def together(
        trials: Sequence[Trial[P]], times: Array, n: int | None, save: Save
    ) -> list[PointResult]:
        assert n is not None
        rules = each(lambda system: rule_of(system, n), trials)
        of_seed = each(lambda system: streams_of(content(system), name, n), trials)

        def compute(group: list[int]) -> list[Values]:
            streams = [of_seed[k](trials[k][1] or 0) for k in group]
            return run([trials[k][0] for k in group], [rules[k] for k in group], times, n, streams)

        keys = [key(system, rule) for (system, _), rule in zip(trials, rules, strict=True)]
        return in_groups(keys, most, compute)

    return together


def on_shared_streams(name: str, runner: Runner[P]) -> RunAll[P]:
    """Points one by one, on a start and data that belong to n and seed alone."""

    def together(
        trials: Sequence[Trial[P]], times: Array, n: int | None, save: Save
    ) -> list[PointResult]:
        assert n is not None
        streams = streams_of(SHARED, name, n)
        return [
            PointResult(*runner(system, times, n, streams(seed or 0), save))
            for system, seed in trials
        ]

    return together


def alone(together: RunAll[P]) -> Run[P]:
    """One point of a method that computes points together."""

    def run(system: P, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        return together([(system, seed)], times, n, save)[0]

    return run


def with_shared_noise(own: Simulation[P], together: RunAll[P], cost: float) -> Simulation[P]:
    """A method whose points share noise; ``cost`` is what a point costs relative to its own."""
    equations = f"{own.about.equations}; points of equal n and seed share their noise"
    return replace(
        own,
        about=replace(own.about, equations=equations, noise="shared"),
        cost=replace(own.cost, seconds=lambda *point: cost * own.cost.seconds(*point)),
        run=alone(together),
        together=Together(together, own.lanes),
    )
