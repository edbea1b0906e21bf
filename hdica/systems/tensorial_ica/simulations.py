"""Simulations of online tensorial ICA: paths, ends of trainings, recovery of all components."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream, streams_of
from hdica.finite.record import Values, steps_of
from hdica.ingredients.save import NOTHING, Save
from hdica.process.machine import one_thread
from hdica.systems import method
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.tensorial_ica import paths
from hdica.systems.tensorial_ica import system as model
from hdica.systems.tensorial_ica.rule import TensorialRule, run_together
from hdica.systems.tensorial_ica.system import AT_FINITE, PAPER, PATH, TensorialICA, U, V
from hdica.systems.tensorial_ica.transient import ANY_RULE, ENGINES
from hdica.systems.trials import alone, content_of, in_lanes

IGNORED = frozenset({"mixing", "bounds"})  # fields that choose no random numbers


def streams(system: TensorialICA) -> Callable[[int], Stream]:
    """Random numbers of a point by its seed: one stream of samples, whatever is made of them."""
    return streams_of(content_of(system, IGNORED), "vector", 0)


Trials = Sequence[method.Trial[TensorialICA]]


def _side_by_side(
    key: Callable[[TensorialICA, TensorialRule], Hashable], run: Callable[..., list[Values]]
) -> method.RunAll[TensorialICA]:
    """Points with equal keys in the lanes of a kernel; their numbers do not depend on that."""
    together = in_lanes(
        "vector",
        lambda system, n: model.rule(system),
        lambda system: content_of(system, IGNORED),
        key,
        LANES,
        run,
    )
    return lambda trials, times, n, save: together(trials, times, 0, save)


def _vectors(trials: Trials, times: Array, n: int | None, save: Save) -> list[PointResult]:
    keep = frozenset(save.extra)
    together = _side_by_side(
        lambda system, rule: rule.alike,
        lambda _, rules, times, n, own: run_together(rules, times, own, keep),
    )
    return together(trials, times, n, save)


def mixing(system: TensorialICA, stream: Stream) -> Array | None:
    """A, shape (d, d), orthonormal from the Haar measure; None for the identity."""
    if system.mixing == "identity":
        return None
    raw = stream("mixing").standard_normal((system.dimension, system.dimension))
    with one_thread():
        q, r = np.linalg.qr(raw)
    # Unique, and so Haar distributed, with a positive diagonal of R (Mezzadri 2007).
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


def _observed(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    stream = streams(system)(seed or 0)
    keep = frozenset(save.extra)
    return PointResult(
        *paths.run_observed(model.rule(system), mixing(system, stream), times, stream, keep)
    )


_STEP = {"rademacher": 1.1e-9, "uniform": 1.2e-9, "laplace": 2.5e-9}
"""Seconds a component and step, by source; others come from NumPy."""


def steps_seconds(system: TensorialICA, steps: float) -> float:
    """Cost model of so many steps of one point."""
    spec = system.source if isinstance(system.source, str) else ""
    return 1e-4 + steps * (1e-9 + system.dimension * _STEP.get(spec, 2.5e-8))


VECTOR = method.Simulation[TensorialICA](
    name="vector",
    role=method.Role.SIMULATION,
    rank=1,
    about=method.About(
        text="v = A'u, all d entries; a step costs d operations, eight seeds run side by side",
        accuracy="exact",
        equations=f"{PAPER}, (ICA) in the coordinates v = A'u of the sources",
        bits=method.Bits.EVERY_KIND,
        engines=AT_FINITE,
    ),
    outputs=method.Outputs(PATH, extras=(V,)),
    cost=method.Cost(
        seconds=lambda system, n, last: steps_seconds(system, last),
        memory=lambda system, *_: 2 * system.dimension,
    ),
    scope=method.Scope(ignores=IGNORED, n=method.Size.NONE),
    run=alone(_vectors),
    together=method.Together(_vectors),
)


OBSERVED = replace(
    VECTOR,
    name="observed",
    rank=None,
    about=replace(
        VECTOR.about,
        text="u from data X = AZ, identity or random orthonormal A, on the same samples",
        equations=f"{PAPER}, (ICA) as it is printed",
        bits=method.Bits.ONE_KIND,
    ),
    outputs=method.Outputs(PATH, extras=(V, U)),
    cost=method.Cost(
        seconds=lambda system, n, last: (
            1e-4
            + last
            * system.dimension
            * (2e-8 + 1e-9 * system.dimension * (system.mixing != "identity"))
        ),
        memory=lambda system, *_: 2 * system.dimension ** (1 if system.mixing == "identity" else 2),
    ),
    scope=replace(VECTOR.scope, ignores=frozenset({"bounds"})),
    run=_observed,
    together=None,
)


_OTHER = replace(VECTOR, role=method.Role.OTHER, rank=None)


def _ends(system: TensorialICA) -> tuple[float, float]:
    training = model.trained(system)
    return training.half, training.end


def _train(
    systems: list[TensorialICA], rules: list[TensorialRule], _: Array, n: int, own: list[Stream]
) -> list[Values]:
    two, results = model.trained(systems[0]).first is not None, []
    for path, why in run_together(rules, np.array(_ends(systems[0])), own):
        half, end = path["tan2"] if two else (math.nan, path["tan2"][-1])
        results.append((method.arrays(tan2=end, half=half, nearest=path["nearest"][-1]), why))
    return results


_trainings = _side_by_side(lambda system, rule: (rule.alike, _ends(system)), _train)


TRAINING = replace(
    _OTHER,
    name="training",
    about=replace(
        VECTOR.about,
        text="the end of a training in phases of T/2 samples, and of its first phase",
        equations=f"{PAPER}, (ICA) with the step sizes of Theorems 4 and 7 and of Corollary 8",
    ),
    outputs=method.Outputs(
        (
            Output("tan2", (), "squared tangent of the angle to the nearest axis at the end"),
            Output("half", (), "the same at the end of the first phase; NaN without one"),
            Output("nearest", (), "number of the nearest component at the end"),
        )
    ),
    cost=replace(
        VECTOR.cost,
        seconds=lambda system, n, last: steps_seconds(system, model.trained(system).end),
    ),
    scope=replace(VECTOR.scope, refuses=method.refusal(model.trained)),
    run=alone(_trainings),
    together=method.Together(_trainings),
)


def _averages(trials: Trials, times: Array, n: int | None, save: Save) -> list[PointResult]:
    late, results = times >= times[-1] / 2, _vectors(trials, times, n, NOTHING)
    return [
        replace(path, values={"tan2": np.asarray(np.mean(path.values["tan2"][late]))})
        for path in results
    ]


SETTLED = replace(
    _OTHER,
    name="settled",
    about=replace(
        VECTOR.about, text="the mean of tan² over the output times in the second half of a run"
    ),
    outputs=method.Outputs(
        (Output("tan2", (), "mean of tan2 over the output times in the second half"),)
    ),
    run=alone(_averages),
    together=method.Together(_averages),
)


def _vessel(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """The deviation too over eta t^1/2, the order that Lemma 5 gives; 0 at t = 0."""
    values, why = paths.run_vessel(model.rule(system), streams(system)(seed or 0), times)
    unit = model.constant_eta(system) * np.sqrt(np.maximum(steps_of(times, 1), 1))
    return PointResult(values | {"ratio": values["sup"] / unit}, why)


_AT = ("time",)
VESSEL = replace(
    _OTHER,
    name="vessel",
    about=replace(
        VECTOR.about,
        text="how far U = v_k/v_1 strays from the centre of the vessel of Lemma 5",
        equations=f"{PAPER}, Lemma 5, with the centre of each path's own v",
    ),
    outputs=method.Outputs(
        (
            Output("sup", _AT, "largest deviation of U_k until t, mean over k"),
            Output("sup_max", _AT, "largest deviation of U_k until t, largest over k"),
            Output("ratio", _AT, "mean largest deviation over eta t^1/2"),
            Output("inside", _AT, "1 while the tangent stays below 2^-1/2"),
        )
    ),
    cost=replace(VECTOR.cost, seconds=lambda system, n, last: 8 * steps_seconds(system, last)),
    scope=replace(VECTOR.scope, refuses=method.refusal(model.constant_eta)),
    run=_vessel,
    together=None,
)


def length(system: TensorialICA, last: float) -> int:
    """Steps of one run: those of the training, or else until the last output time."""
    training = model.phases(system)
    return int(steps_of(np.array([last if training is None else training.end]), 1)[0])


def _repeats(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    run = paths.runs_of(model.rule(system), length(system, float(times[-1])))
    runs = paths.repeats(run, system.dimension, streams(system)(seed or 0))
    success = np.mean(runs.components >= 0) if runs.count else math.nan
    count = runs.count if runs.complete else math.nan
    values = method.arrays(repeats=count, made=runs.count, success=success, tan2=runs.largest)
    return PointResult(values)


def _one_sided(system: TensorialICA) -> str:
    """Empty if runs from the start can find every component, else why not."""
    v0 = model.first_vector(system)
    if v0 is None or np.ptp(np.abs(v0)) == 0:
        return ""
    return (
        f"start = {system.start!r} is not allowed for repeats (some components are nearer to it "
        "than others, which are never found: 'uniform' or 'maximiser')"
    )


REPEATS = replace(
    _OTHER,
    name="repeats",
    about=replace(
        VECTOR.about,
        text=(
            "independent runs from the start until every component was found, and how many it took"
        ),
        equations=f"{PAPER}, (ICA) from fresh starts and samples, about d ln d times",
    ),
    outputs=method.Outputs(
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
            2 * paths.coupon_mean(system.dimension) * steps_seconds(system, length(system, last))
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
    result = paths.deflation(model.rule(system), steps, streams(system)(seed or 0))
    reached = result.steps[:-1]
    values = method.arrays(
        tan2=result.largest,
        median=np.median(result.tan2),
        complete=math.nan if result.diverged else result.complete,
        slowest=reached.max() if not result.diverged and np.all(reached >= 0) else math.nan,
    )
    return PointResult(values, result.diverged)


DEFLATION = replace(
    REPEATS,
    name="deflation",
    about=replace(
        REPEATS.about,
        text="one component after another, each in the complement of those found",
        equations=f"{PAPER}, (ICA) with the projection of Delfosse and Loubaton 1995",
    ),
    outputs=method.Outputs(
        (
            Output("tan2", (), "largest squared tangent over the components"),
            Output("median", (), "median squared tangent over the components"),
            Output("complete", (), "1 if every component was found"),
            Output("slowest", (), "most steps that a component took to tan^2 = 1/3", "steps"),
        )
    ),
    cost=method.Cost(
        seconds=lambda system, n, last: (
            1e-3 + length(system, last) * system.dimension * (1e-9 * system.dimension**2 + 1e-8)
        ),
        memory=lambda system, *_: 2 * system.dimension**2,
    ),
    scope=replace(REPEATS.scope, refuses=method.always),
    run=_deflation,
)


COUPONS = method.Limit[TensorialICA](
    name="coupons",
    role=method.Role.OTHER,
    about=method.About(
        text="how many repeats that takes if each finds one component, any of them equally often",
        accuracy="exact",
        equations="Coupon collector: a sum of d geometric waiting times",
        engines=ENGINES,
    ),
    outputs=method.Outputs(
        (
            Output("repeats", (), "mean number of runs until every component was found, d H_d"),
            Output("repeats_sd", (), "standard deviation of the number of runs"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 1e-4),
    scope=method.Scope(ignores=ANY_RULE),
    run=lambda system, *_: PointResult(
        method.arrays(
            repeats=paths.coupon_mean(system.dimension),
            repeats_sd=paths.coupon_sd(system.dimension),
        )
    ),
)


PATHS = (VECTOR, OBSERVED, TRAINING, SETTLED, VESSEL)
RECOVERY = (REPEATS, DEFLATION, COUPONS)
