"""Recovery of all components in turn: by repeats from uniform starts, or by deflation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.systems.method import FINITE, About, Cost, Outputs, Role, Scope, always
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fields import first_vector, phases
from hdica.systems.tensorial_ica.finite import recover
from hdica.systems.tensorial_ica.methods.limits import ANY_SIGN, ODE
from hdica.systems.tensorial_ica.methods.trajectories import (
    HOME,
    PAPER,
    VECTOR,
    steps_seconds,
    streams,
)
from hdica.systems.tensorial_ica.system import TensorialICA, rule


def length(system: TensorialICA, last: float) -> int:
    """Steps of one run: those of the training, or else until the last output time."""
    training = phases(system)
    return int(steps_of(np.array([last if training is None else training.end]), 1)[0])


def _numbers(**values: float) -> dict[str, Array]:
    return {name: np.asarray(float(value)) for name, value in values.items()}


def _repeats(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    d, steps = system.dimension, length(system, float(times[-1]))
    found = recover.repeats(recover.runs_of(rule(system), steps), d, streams(system)(seed or 0))
    success = float(np.mean(found.components >= 0)) if found.count else math.nan
    values = _numbers(
        repeats=found.count if found.complete else math.nan,
        made=found.count,
        success=success,
        tan2=found.largest,
    )
    return PointResult(values)


def _one_sided(system: TensorialICA) -> str:
    """Empty if runs from the start can find every component, else why not."""
    v0 = first_vector(system)
    if v0 is None or np.ptp(np.abs(v0)) == 0:
        return ""
    return (
        f"start = {system.start!r} is not allowed for repeats (some components are nearer to it "
        "than others, which are never found: 'uniform' or 'maximiser')"
    )


REPEATS = replace(
    VECTOR,
    name="repeats",
    role=Role.OTHER,
    rank=None,
    about=replace(
        VECTOR.about,
        text=(
            "independent runs from the start until every component was found, and how many it took"
        ),
        equations=f"{PAPER}, (ICA) from fresh starts and samples, about d ln d times",
    ),
    outputs=Outputs(
        (
            Output("repeats", (), "runs until every component was found; NaN where one never was"),
            Output("made", (), "runs that were made"),
            Output("success", (), "share of runs that found a component"),
            Output("tan2", (), "largest squared tangent over the components"),
        )
    ),
    cost=replace(
        VECTOR.cost,
        seconds=lambda system, n, last: (
            2 * recover.coupon_mean(system.dimension) * steps_seconds(system, length(system, last))
        ),
    ),
    scope=replace(VECTOR.scope, refuses=_one_sided),
    run=_repeats,
    together=None,
)


def _deflation(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    steps = length(system, float(times[-1]))
    found = recover.deflation(rule(system), steps, streams(system)(seed or 0))
    reached = found.steps[:-1]
    values = _numbers(
        tan2=found.largest,
        median=float(np.median(found.tan2)),
        complete=found.complete,
        slowest=float(reached.max()) if np.all(reached >= 0) else math.nan,
    )
    if found.diverged:
        values = {name: np.asarray(math.nan) for name in values}
    return PointResult(values, found.diverged)


DEFLATION = replace(
    REPEATS,
    name="deflation",
    about=replace(
        REPEATS.about,
        text="one component after another, each in the complement of those found",
        equations=f"{PAPER}, (ICA) with the projection of Delfosse and Loubaton 1995",
    ),
    outputs=Outputs(
        (
            Output("tan2", (), "largest squared tangent over the components"),
            Output("median", (), "median squared tangent over the components"),
            Output("complete", (), "1 if every component was found"),
            Output("slowest", (), "most steps that a component took to tan^2 = 1/3", "steps"),
        )
    ),
    cost=Cost(
        seconds=lambda system, n, last: (
            1e-3 + length(system, last) * system.dimension * (1e-9 * system.dimension**2 + 1e-8)
        ),
        memory=lambda system, n: 2 * system.dimension**2,
    ),
    scope=replace(REPEATS.scope, refuses=always),
    run=_deflation,
)


def _coupons(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    d = system.dimension
    return PointResult(_numbers(repeats=recover.coupon_mean(d), repeats_sd=recover.coupon_sd(d)))


COUPONS = replace(
    ODE,
    name="coupons",
    role=Role.OTHER,
    rank=None,
    about=About(
        text="how many repeats that takes if each finds one component, any of them equally often",
        accuracy="exact",
        equations="Coupon collector: a sum of d geometric waiting times",
        engines=(*FINITE, HOME, f"{HOME}.finite"),
    ),
    outputs=Outputs(
        (
            Output("repeats", (), "mean number of runs until every component was found, d H_d"),
            Output("repeats_sd", (), "standard deviation of the number of runs"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 1e-4),
    scope=Scope(
        refuses=lambda system: "", ignores=ANY_SIGN | {"start", "eta", "schedule", "source"}
    ),
    run=_coupons,
    closed=False,
)

METHODS = (REPEATS, DEFLATION, COUPONS)
