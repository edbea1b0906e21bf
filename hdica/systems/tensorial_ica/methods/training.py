"""Trainings in phases by their ends alone: how near to a component, and which one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values, steps_of
from hdica.ingredients.save import Save
from hdica.systems.method import Outputs, Role, Together, Trial, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fields import Phases, constant_eta, phases
from hdica.systems.tensorial_ica.finite.rule import run_together, run_vessel
from hdica.systems.tensorial_ica.methods.trajectories import (
    PAPER,
    VECTOR,
    in_lanes,
    steps_seconds,
)
from hdica.systems.tensorial_ica.system import TensorialICA, rule
from hdica.systems.trials import alone, each

ENDS = (
    Output("tan2", (), "squared tangent of the angle to the nearest axis at the end"),
    Output("half", (), "the same at the end of the first phase; NaN without one"),
    Output("nearest", (), "number of the nearest component at the end"),
)


def trained(system: TensorialICA) -> Phases:
    """The training of a system, or the sentence that it has none."""
    found = phases(system)
    if found is None:
        raise HdicaError(
            "a training needs its number of samples (schedule: {T, c1, c2}, with kappa for T "
            "or without c1 or c2)",
            ["schedule"],
        )
    return found


def _at_ends(path: dict[str, Array], training: Phases) -> dict[str, Array]:
    """The ends of both phases among two times of a path."""
    half = path["tan2"][0] if training.first is not None else math.nan
    ends = {"tan2": path["tan2"][-1], "half": half, "nearest": path["nearest"][-1]}
    return {name: np.asarray(value, dtype=float) for name, value in ends.items()}


def _trainings(
    trials: Sequence[Trial], times: Array, n: int | None, save: Save
) -> list[PointResult]:
    rules, trainings = each(rule, trials), each(trained, trials)

    def compute(group: list[int], own: list[Stream]) -> list[Values]:
        training = trainings[group[0]]
        ends = np.array([training.half, training.end])
        found = run_together([rules[k] for k in group], ends, own)
        return [(_at_ends(values, training), why) for values, why in found]

    return in_lanes(trials, rules, compute, [(one.half, one.end) for one in trainings])


TRAINING = replace(
    VECTOR,
    name="training",
    role=Role.OTHER,
    rank=None,
    about=replace(
        VECTOR.about,
        text="the end of a training in phases of T/2 samples, and of its first phase",
        equations=f"{PAPER}, (ICA) with the step sizes of Theorems 4 and 7 and of Corollary 8",
    ),
    outputs=Outputs(ENDS),
    cost=replace(
        VECTOR.cost, seconds=lambda system, n, last: steps_seconds(system, trained(system).end)
    ),
    scope=replace(VECTOR.scope, refuses=refusal(trained)),
    run=alone(_trainings),
    together=Together(_trainings),
)


def _averaged(path: dict[str, Array], times: Array) -> dict[str, Array]:
    """The mean of tan2 over the output times from half of the last one on."""
    return {"tan2": np.asarray(np.mean(path["tan2"][times >= times[-1] / 2]))}


def _averages(
    trials: Sequence[Trial], times: Array, n: int | None, save: Save
) -> list[PointResult]:
    rules = each(rule, trials)

    def compute(group: list[int], own: list[Stream]) -> list[Values]:
        found = run_together([rules[k] for k in group], times, own)
        return [(_averaged(values, times), why) for values, why in found]

    return in_lanes(trials, rules, compute)


SETTLED = replace(
    VECTOR,
    name="settled",
    role=Role.OTHER,
    rank=None,
    about=replace(
        VECTOR.about, text="the mean of tan² over the output times in the second half of a run"
    ),
    outputs=Outputs((Output("tan2", (), "mean of tan2 over the output times in the second half"),)),
    run=alone(_averages),
    together=Together(_averages),
)


def _vessels(trials: Sequence[Trial], times: Array, n: int | None, save: Save) -> list[PointResult]:
    rules = each(rule, trials)

    def compute(group: list[int], own: list[Stream]) -> list[Values]:
        found = run_vessel([rules[k] for k in group], times, own)
        return [
            (_scaled(values, trials[k][0], times), why)
            for k, (values, why) in zip(group, found, strict=True)
        ]

    return in_lanes(trials, rules, compute)


def _scaled(values: dict[str, Array], system: TensorialICA, times: Array) -> dict[str, Array]:
    """The same with the deviation over eta t^1/2, the order that Lemma 5 gives; 0 at t = 0."""
    steps = steps_of(times, 1)
    scale = constant_eta(system) * np.sqrt(np.maximum(steps, 1))
    return values | {"ratio": values["sup"] / scale}


_AT = ("time",)
VESSEL = replace(
    VECTOR,
    name="vessel",
    role=Role.OTHER,
    rank=None,
    about=replace(
        VECTOR.about,
        text="how far U = v_k/v_1 strays from the centre of the vessel of Lemma 5",
        equations=f"{PAPER}, Lemma 5, with the centre of each path's own v",
    ),
    outputs=Outputs(
        (
            Output("sup", _AT, "largest deviation of U_k until t, mean over k"),
            Output("sup_max", _AT, "largest deviation of U_k until t, largest over k"),
            Output("ratio", _AT, "mean largest deviation over eta t^1/2"),
            Output("inside", _AT, "1 while the tangent stays below 2^-1/2"),
        )
    ),
    cost=replace(VECTOR.cost, seconds=lambda system, n, last: 8 * steps_seconds(system, last)),
    scope=replace(VECTOR.scope, refuses=refusal(constant_eta)),
    run=alone(_vessels),
    together=Together(_vessels),
)

METHODS = (TRAINING, SETTLED, VESSEL)
