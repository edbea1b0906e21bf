"""Escape of online ICA from Q = 0: first passages of chains, in n^3 steps.

On the scale nu = n tau of order one noise leads away from Q = 0, as Rattray (2002) found for
Hebbian ICA: within n^3 steps for an odd f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.passage import Passage, passages
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.systems.ages import UNIT
from hdica.systems.fields import at_dimension, formula, resting_refusal
from hdica.systems.kernel import AVERAGES, NUMERICS, OVERLAP, PROJECTED
from hdica.systems.method import Array, Method, Output, Role
from hdica.systems.online_ica.system import IGNORED, OnlineICA, rule
from hdica.systems.projected.rule import chain_refusal
from hdica.systems.projected.simulation import OWN
from hdica.systems.trials import alone, content_of, in_lanes

MOST_RACES = 4096
"""Chains of one system in one call."""
PASSAGES = (
    Output("first", (), "time of the first passage of abs(Q), or of the end", UNIT),
    Output("first_seen", (), "1 if that was a passage, 0 if the run ended before one"),
)


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


def _passage_values(passage: Passage, n: int) -> Values:
    seen = passage.first >= 0
    time = math.nan if passage.diverged else passage.steps / float(n) ** 3
    flag = math.nan if passage.diverged else float(seen)
    return {"first": np.asarray(time), "first_seen": np.asarray(flag)}, passage.diverged


def _race(
    systems: Sequence[OnlineICA],
    rules: Sequence[ChainRule],
    times: Array,
    n: int,
    streams: Sequence[Stream],
) -> list[Values]:
    """First passages, all seeds of a system in one race of eight lanes."""
    most = math.floor(times[-1] * n)
    found = passages(rules[0], n, streams, systems[0].threshold, most)
    return [_passage_values(passage, n) for passage in found]


# On the streams of the chain: a passage is one of the path that method chain gives.
_PASSAGES = in_lanes(
    "chain",
    lambda system, n: rule(at_dimension(system, n)).chain,
    lambda system: content_of(system, IGNORED),
    lambda system, one: id(system),
    MOST_RACES,
    _race,
)
ESCAPE_TIMES = Method(
    name="escape_times",
    about="when chains first find the feature",
    engines=(*PROJECTED, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    role=Role.ESCAPE,
    stochastic=True,
    accuracy="exact in law",
    outputs=PASSAGES,
    run=alone(_PASSAGES),
    refuses=passage_refusal,
    seconds=lambda system, n, last: 5e-4 + 7e-9 * last * (n or 1),
    fused=True,
    equations=(
        "Wang and Lu 2017, eq. (1)-(2), first passages of abs(Q) by the chain that is exact in law"
    ),
    together=_PASSAGES,
)
