"""First passages of an overlap: the outputs that its theories and its chains have, declared once.

A survival is given at ages, multiples of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from hdica.finite.projected.passage import Passage
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.limits.escape import EscapeLaw, Trap, safe_exp
from hdica.limits.passage.chain import PassageLaw
from hdica.systems.method import RunAll
from hdica.systems.outputs import Array, Output
from hdica.systems.trials import in_lanes

Problem = TypeVar("Problem")
Rule = TypeVar("Rule")
AGES = 2.0 ** (np.arange(-64, 25) / 8)
"""Times at which survival is given, in multiples of the mean, of the first escape or the last."""
UNIT = "n^3 steps"
MOST_RACES = 4096
"""Chains of one system in one call."""

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


def law_values(trap: Trap, law: EscapeLaw, nu: float) -> dict[str, Array]:
    """What the escape law of a diffusion gives."""
    values: dict[str, Array | float] = {
        "mean": law.mean,
        "sd": law.sd,
        "median": law.median,
        "kramers": safe_exp(trap.log_kramers(nu)),
        "exponent": trap.exponent(nu),
        "survival": at_ages(law.survival, law.mean),
        "error": law.mean_error,
    }
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


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
    rule_of: Callable[[Problem, int], Rule],
    content: Callable[[Problem], object],
    passages: Callable[[Problem, Rule, int, Sequence[Stream], int], list[Passage]],
    power: int,
    last: bool = False,
) -> RunAll[Problem]:
    """First passages in n^power steps, all seeds of a system in one race of eight lanes.

    ``passages(system, rule, n, streams, most)`` are those of chains on the streams, each of at most
    so many steps; with ``last`` also when all that can pass have. The streams are those of the
    method ``name``: a passage is one of the path that it gives.
    """

    def race(
        systems: list[Problem], rules: list[Rule], times: Array, n: int, streams: list[Stream]
    ) -> list[Values]:
        most, unit = math.floor(times[-1] * n), float(n) ** power
        ends = passages(systems[0], rules[0], n, streams, most)
        return [_passage_values(passage, unit, last) for passage in ends]

    return in_lanes(name, rule_of, content, lambda system, rule: id(system), MOST_RACES, race)
