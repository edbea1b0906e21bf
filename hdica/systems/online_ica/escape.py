"""First passages of chains: the escape of online ICA from Q = 0, and its fall from the feature.

An escape is in n^3 steps. On the scale nu = n tau of order one noise leads away from Q = 0, as
Rattray (2002) found for Hebbian ICA: within n^3 steps for an odd f. A fall is in t = k/n, and near
the critical step size within n^(4/3) steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.passage import Passage, passages
from hdica.finite.random.streams import Stream
from hdica.finite.random.width import LANES
from hdica.finite.record import Values
from hdica.process.machine import slowness
from hdica.systems.fields import at_dimension, formula, resting_refusal
from hdica.systems.method import (
    AVERAGES,
    NUMERICS,
    OVERLAP,
    PROJECTED,
    About,
    Bits,
    Cost,
    Outputs,
    Role,
    RunAll,
    Scope,
    Simulation,
    Together,
)
from hdica.systems.online_ica.system import IGNORED, OnlineICA, rule
from hdica.systems.outputs import UNIT, Array, Output
from hdica.systems.projected.rule import chain_refusal
from hdica.systems.projected.simulation import OWN
from hdica.systems.trials import alone, content_of, in_lanes

MOST_RACES = 4096
"""Chains of one system in one call."""
TIME_UNIT = "samples per dimension"
PASSAGES = (
    Output("first", (), "time of the first passage of abs(Q), or of the end", UNIT),
    Output("first_seen", (), "1 if that was a passage, 0 if the run ended before one"),
)
FALLS = (replace(PASSAGES[0], units=TIME_UNIT), PASSAGES[1])
_AT_FOLD = 40.0
"""Time of a fall at the fold in n^(1/3), of a cubic f with sources of two values; for the cost."""
Race = Callable[[Sequence[Any], Sequence[Any], Array, int, Sequence[Stream]], list[Values]]


def _fall(n: int | None) -> float:
    return _AT_FOLD * (n or 1) ** (1 / 3)


def passage_refusal(system: OnlineICA) -> str:
    """Empty if first passages of the chain can be followed, else the sentence that says why not."""
    if system.batch != 1:
        return (
            f"batch = {system.batch} is not allowed for first passages (1: a batch follows method "
            "'chain')"
        )
    if chain_refusal(formula(system, "regularizer")):
        return (
            "first passages are those of the overlap alone, which is a chain only for the "
            f"regularizers 0 and beta*x, not for {system.regularizer!r} (use method 'vector')"
        )
    return resting_refusal(system, "first passages")


def _passage_values(passage: Passage, unit: float) -> Values:
    seen = passage.first >= 0
    time = math.nan if passage.diverged else passage.steps / unit
    flag = math.nan if passage.diverged else float(seen)
    return {"first": np.asarray(time), "first_seen": np.asarray(flag)}, passage.diverged


def _race(falling: bool) -> Race:
    """First passages, all seeds of a system in one race of eight lanes."""

    def race(
        systems: Sequence[OnlineICA],
        rules: Sequence[ChainRule],
        times: Array,
        n: int,
        streams: Sequence[Stream],
    ) -> list[Values]:
        most, unit = math.floor(times[-1] * n), float(n) if falling else float(n) ** 3
        found = passages(rules[0], n, streams, systems[0].threshold, most, falling)
        return [_passage_values(passage, unit) for passage in found]

    return race


def _passages(falling: bool) -> RunAll:
    # On the streams of the chain: a passage is one of the path that method chain gives.
    return in_lanes(
        "chain",
        lambda system, n: rule(at_dimension(system, n)).chain,
        lambda system: content_of(system, IGNORED),
        lambda system, one: id(system),
        MOST_RACES,
        _race(falling),
    )


_PASSAGES, _FALLS = _passages(falling=False), _passages(falling=True)
ESCAPE_TIMES = Simulation[OnlineICA](
    name="escape_times",
    role=Role.ESCAPE,
    about=About(
        text="when chains first find the feature",
        accuracy="exact in law",
        equations=(
            "Wang and Lu 2017, eq. (1)-(2), first passages of abs(Q) by the chain that is exact in "
            "law"
        ),
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    ),
    outputs=Outputs(PASSAGES),
    cost=Cost(seconds=lambda system, n, last: 5e-4 + 7e-9 * last * (n or 1), fused=True),
    scope=Scope(refuses=passage_refusal),
    run=alone(_PASSAGES),
    together=Together(_PASSAGES, lanes=2 * LANES),
)
FALL_TIMES = replace(
    ESCAPE_TIMES,
    name="fall_times",
    role=Role.OTHER,
    about=replace(
        ESCAPE_TIMES.about,
        text="when chains first lose the feature: abs(Q) at most `threshold`",
        equations="Wang and Lu 2017, eq. (1)-(2), first falls of abs(Q) to a level by the "
        "chain that is exact in law",
    ),
    outputs=Outputs(FALLS),
    cost=replace(
        ESCAPE_TIMES.cost,
        seconds=lambda system, n, last: 5e-4 + slowness() * 1.2e-8 * min(last, _fall(n)) * (n or 1),
    ),
    run=alone(_FALLS),
    together=Together(_FALLS, 2 * LANES),
)
