"""First passages of online ICA by chains: the escape from Q = 0 and the fall from the feature.

An escape is in n^3 steps. On the scale nu = n tau of order one noise leads away from Q = 0, as
Rattray (2002) found for Hebbian ICA: within n^3 steps for an odd f. A fall is in t = k/n, and near
the critical step size within n^(4/3) steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.passage import Passage, passages
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.process.machine import slowness
from hdica.systems.fields import (
    at_dimension,
    formula,
    resting_refusal,
)
from hdica.systems.first_passage import (
    FIRST,
    FIRST_SEEN,
    races,
)
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
from hdica.systems.projected.rule import chain_refusal
from hdica.systems.projected.simulation import OWN
from hdica.systems.trials import alone, content_of

TIME_UNIT = "samples per dimension"
_AT_FOLD = 40.0
"""Time of a fall at the fold in n^(1/3), of a cubic f with sources of two values; for the cost."""
_RULE = "Wang and Lu 2017, eq. (1)-(2)"


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


def _passages(power: int, falling: bool) -> RunAll:
    def of_rule(
        system: OnlineICA, chain: ChainRule, n: int, streams: Sequence[Stream], most: int
    ) -> list[Passage]:
        return passages(chain, n, streams, system.threshold, most, falling)

    return races(
        "chain",
        lambda system, n: rule(at_dimension(system, n)).chain,
        lambda system: content_of(system, IGNORED),
        of_rule,
        power,
    )


_PASSAGES, _FALLS = _passages(3, falling=False), _passages(1, falling=True)
ESCAPE_TIMES = Simulation[OnlineICA](
    name="escape_times",
    role=Role.ESCAPE,
    about=About(
        text="when chains first find the feature",
        accuracy="exact in law",
        equations=f"{_RULE}, first passages of abs(Q) by the chain that is exact in law",
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    ),
    outputs=Outputs((FIRST, FIRST_SEEN)),
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
        equations=f"{_RULE}, first falls of abs(Q) to a level by the chain that is exact in law",
    ),
    outputs=Outputs((replace(FIRST, units=TIME_UNIT), FIRST_SEEN)),
    cost=replace(
        ESCAPE_TIMES.cost,
        seconds=lambda system, n, last: (
            5e-4 + slowness() * 1.2e-8 * min(last, _AT_FOLD * (n or 1) ** (1 / 3)) * (n or 1)
        ),
    ),
    run=alone(_FALLS),
    together=Together(_FALLS, 2 * LANES),
)
