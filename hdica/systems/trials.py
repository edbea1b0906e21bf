"""Trials: points of stochastic methods on streams of their own, and outputs of first passages."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pydantic import BaseModel

from hdica.finite.random.streams import Stream, streams_of
from hdica.finite.record import Values
from hdica.ingredients.plain import ARRAY, VECTOR
from hdica.ingredients.save import Save
from hdica.systems.method import (
    Array,
    Output,
    P,
    PointResult,
    Run,
    RunAll,
    Simulation,
    Together,
    Trial,
)
from hdica.systems.parameters import constants_of

if TYPE_CHECKING:
    from hdica.finite.projected.passage import Passage
    from hdica.limits.passage.chain import PassageLaw

Rule = TypeVar("Rule")  # what a kernel takes of a system, its rule
Runner = Callable[[P, Array, int, Stream, Save], Values]
"""``runner(system, times, n, stream, save)``; n is 0 for a method without."""

SHARED = {"noise": "shared"}
"""In place of a system where its parameters must not choose the random numbers."""


def content_of(system: object, without: frozenset[str] = frozenset()) -> dict[str, object]:
    """A system as plain data that choose its random streams, ``without`` fields it ignores."""
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

    def run(system: P, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
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


AGES = 2.0 ** (np.arange(-64, 25) / 8)
"""Times at which survival is given, in multiples of the mean, of the first escape or the last."""
UNIT = "n^3 steps"
MOST_RACES = 4096  # chains of one system in one call

MEAN = Output("mean", (), "mean time until abs(Q) has escaped", UNIT)
SD = Output("sd", (), "standard deviation of that time", UNIT)
MEDIAN = Output("median", (), "median of that time", UNIT)
KRAMERS = Output("kramers", (), "Kramers' formula for the mean", UNIT)
EXPONENT = Output("exponent", (), "exponent 3 P nu/(4 C) of Kramers' formula")
SURVIVAL = Output("survival", ("age",), "probability of no escape until age times the mean")
ERROR = Output("error", (), "relative error of the mean")
NU_OPTIMAL = Output("nu_optimal", (), "nu with the least mean as n -> infinity")
MEAN_OPTIMAL = Output("mean_optimal", (), "least mean escape time over nu as n -> infinity", UNIT)
FIRST = Output("first", (), "time of the first passage of abs(Q), or of the end", UNIT)
FIRST_SEEN = Output("first_seen", (), "1 if that was a passage, 0 if the run ended before one")
LAST = Output("last", (), "time at which min(K, M) sources are found, or of the end", UNIT)
LAST_SEEN = Output("last_seen", (), "1 if that was a passage, 0 if the run ended before")


def over_age(times: Array) -> dict[str, Array]:
    """Coordinates of a survival, whatever the times of a study."""
    return {"age": AGES}


def at_ages(survival: Callable[[Array], Array], mean: float) -> Array:
    """A survival at the ages; that of an exponential law where the mean is no number above 0."""
    return survival(AGES * mean) if 0 < mean < math.inf else np.exp(-AGES)


def exact_values(law: PassageLaw, n: int) -> dict[str, Array]:
    """What the exact law of a chain at n gives."""
    unit = float(n) ** 3
    return {
        "mean": np.asarray(law.mean / unit),
        "sd": np.asarray(law.sd / unit),
        "survival": at_ages(law.survival, law.mean),
        "error": np.asarray(law.error),
    }


def _passage_values(passage: Passage, unit: float, last: bool) -> Values:
    """Times of a chain in a unit of steps, and whether they are those of passages."""
    values = {}
    for name, steps in (("first", passage.first), ("last", passage.last))[: 1 + last]:
        seen = steps >= 0
        values[name], values[f"{name}_seen"] = (steps if seen else passage.steps) / unit, seen
    lost = bool(passage.diverged)
    return {k: np.asarray(math.nan if lost else float(v)) for k, v in values.items()}, (
        passage.diverged
    )


def races(
    name: str,
    rule_of: Callable[[P, int], Rule],
    content: Callable[[P], object],
    passages: Callable[[P, Rule, int, Sequence[Stream], int], list[Passage]],
    power: int,
    last: bool = False,
) -> RunAll[P]:
    """First passages in n^power steps, all seeds of a system in one race of eight lanes.

    ``passages(system, rule, n, streams, most)`` are those of chains on the streams, each of at most
    so many steps; with ``last`` also when all that can pass have. The streams are those of the
    method ``name``: a passage is one of the path that it gives.
    """

    def race(
        systems: list[P], rules: list[Rule], times: Array, n: int, streams: list[Stream]
    ) -> list[Values]:
        most, unit = math.floor(times[-1] * n), float(n) ** power
        ends = passages(systems[0], rules[0], n, streams, most)
        return [_passage_values(passage, unit, last) for passage in ends]

    return in_lanes(name, rule_of, content, lambda system, rule: id(system), MOST_RACES, race)
