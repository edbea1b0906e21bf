"""Offline baselines of online tensorial ICA, on the very samples that the online rule sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.systems.fields import source
from hdica.systems.method import (
    COMMON,
    About,
    Cost,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fields import moments
from hdica.systems.tensorial_ica.finite.batch import (
    Estimate,
    batch_fastica,
    batch_gradient,
    batch_level,
    nearest_axis,
)
from hdica.systems.tensorial_ica.finite.draws import draws
from hdica.systems.tensorial_ica.finite.rule import first
from hdica.systems.tensorial_ica.finite.samples import passes
from hdica.systems.tensorial_ica.methods.limits import ANY_SIGN, ODE
from hdica.systems.tensorial_ica.methods.trajectories import (
    AT_FINITE,
    HOME,
    PAPER,
    TAN2,
    mixing,
    streams,
)
from hdica.systems.tensorial_ica.system import TensorialICA, rule

Estimator = Callable[[TensorialICA, Any, Array, Array | None], Estimate]
_AT = ("time",)
OUTPUTS = (
    TAN2,
    Output("nearest", _AT, "number of the nearest component"),
    Output("iterations", _AT, "iterations over all samples"),
    Output("converged", _AT, "1 if they converged, else 0"),
)


def _estimates(estimator: Estimator) -> Callable[..., PointResult]:
    """The estimate of the samples until each time, and the start until they span d dimensions."""

    def run(
        system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
    ) -> PointResult:
        stream, d = streams(system)(seed or 0), system.dimension
        a, begin = mixing(system, stream), partial(_begin, system, seed or 0)
        v0 = first(rule(system), stream)
        with one_thread():
            start, found = v0 if a is None else a @ v0, []
        for count in steps_of(times, 1).tolist():
            try:
                found.append(estimator(system, passes(begin, d, count, a), start, a))
            except HdicaError:
                # Too few, or in one of the directions all alike, as those of discrete sources may
                # be: they cannot be whitened.
                found.append(Estimate(start, *nearest_axis(v0), 0, False))
        columns = {
            "tan2": [one.tan2 for one in found],
            "nearest": [one.component for one in found],
            "iterations": [one.iterations for one in found],
            "converged": [float(one.converged) for one in found],
        }
        return PointResult({k: np.array(v, dtype=float) for k, v in columns.items()})

    return run


def _begin(system: TensorialICA, seed: int) -> Callable[[int], Array]:
    """The samples that the rule sees, from the first on."""
    return draws(source(system), system.dimension, streams(system)(seed)("source"))


def _fastica(system: TensorialICA, blocks: Any, start: Array, a: Array | None) -> Estimate:
    return batch_fastica(blocks, start, a)


def _gradient(system: TensorialICA, blocks: Any, start: Array, a: Array | None) -> Estimate:
    sign = moments(system).sign if system.sign == "known" else None
    return batch_gradient(blocks, start, a, sign=sign)


def _seconds(system: TensorialICA, n: int | None, last: float) -> float:
    """Some dozen passes over the samples, the first of which draws them, at a few output times."""
    return 1e-3 + last * system.dimension * (1.5e-7 + 5e-10 * system.dimension)


FASTICA = Simulation[TensorialICA](
    name="batch_fastica",
    role=Role.BASELINE,
    about=About(
        text="offline: whitening and one-unit FastICA (cubic) on the samples that `vector` sees",
        accuracy="exact",
        equations=(
            "Hyvarinen and Oja 1997, fixed-point iteration of the kurtosis of whitened samples"
        ),
        engines=AT_FINITE,
    ),
    outputs=Outputs(OUTPUTS),
    cost=Cost(seconds=_seconds, memory=lambda system, n: system.dimension**2),
    scope=Scope(
        # Of all other fields, the step size too, the samples are drawn.
        ignores=frozenset({"bounds"}),
        n=Size.NONE,
    ),
    run=_estimates(_fastica),
)
GRADIENT = replace(
    FASTICA,
    name="batch_gradient",
    about=replace(
        FASTICA.about,
        text="offline: whitening and gradient ascent of the kurtosis on the same samples",
        equations=f"{PAPER}, offline procedure: whitening and gradient ascent of the kurtosis",
    ),
    run=_estimates(_gradient),
)


def _level(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    counts = np.maximum(steps_of(times, 1), 1)
    levels = [
        batch_level(source(system), system.dimension, 1, whiten=white) for white in (True, False)
    ]
    return PointResult({"tan2": levels[0] / counts, "unwhitened": levels[1] / counts})


LEVEL = replace(
    ODE,
    name="batch_level",
    role=Role.OTHER,
    rank=None,
    about=About(
        text="what both lead to for many samples, with and without whitening",
        accuracy="approximate",
        equations="Ollila 2010, deflation FastICA: law of the estimator for many samples",
        engines=("hdica.finite", *COMMON, HOME, f"{HOME}.finite"),
    ),
    outputs=Outputs(
        (
            Output("tan2", _AT, "mean of tan2 as the number of samples grows, to first order"),
            Output("unwhitened", _AT, "the same without whitening"),
        )
    ),
    scope=Scope(
        refuses=refusal(lambda system: batch_level(source(system), 2, 1, whiten=False)),
        ignores=ANY_SIGN | {"start", "eta", "schedule"},
    ),
    run=_level,
    closed=False,
)

METHODS = (FASTICA, GRADIENT, LEVEL)
