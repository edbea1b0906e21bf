"""The ways to compute online ICA: simulations at finite n, first passages, limits, fixed points.

An escape is in n^3 steps: on the scale nu = n tau of order one noise leads away from Q = 0, as
Rattray (2002) found for Hebbian ICA: within n^3 steps for an odd f. A fall is in t = k/n, and near
the critical step size within n^(4/3) steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.fastica.iteration import fastica
from hdica.finite.fastica.whitening import whitened
from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.passage import Passage, passages
from hdica.finite.random import LANES
from hdica.finite.random.streams import RUN, Stream
from hdica.finite.record import Values, begin, steps_of
from hdica.ingredients.contrasts import jumps
from hdica.ingredients.quadrature import dot
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.limits.overlap.nonlinear import closed_overlap, closed_refusal, folds_of
from hdica.process.machine import one_thread, slowness
from hdica.process.progress import check_deadline
from hdica.systems import fields, method
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.online_ica import escape
from hdica.systems.online_ica.system import (
    IGNORED,
    OnlineICA,
    beyond,
    drift,
    learned,
    limit_refusal,
    mean_field,
    moving,
    passage_refusal,
    rule,
    second,
    sided_refusal,
    steps,
    without_limit,
)
from hdica.systems.projected.best_step import best_step_method, tracked_transitions
from hdica.systems.projected.collapse import fall_method, success_method
from hdica.systems.projected.density import ornstein_uhlenbeck, pde
from hdica.systems.projected.entries import entries, particles
from hdica.systems.projected.family import TAU
from hdica.systems.projected.overlap import closed_states, ode
from hdica.systems.projected.pushed import chained_refusal
from hdica.systems.projected.simulation import OWN, TRAJECTORY, chain, vector
from hdica.systems.projected.steady import branch_points, critical, fixed_points, steady_refusal
from hdica.systems.projected.stream import of_model, streams
from hdica.systems.trials import FIRST, FIRST_SEEN, alone, content_of, races, seeded

TIME_UNIT = "samples per dimension"
_AT_FOLD = 40.0
"""Time of a fall at the fold in n^(1/3), of a cubic f with sources of two values; for the cost."""
_PAPER = "Wang and Lu 2017"
_RULE = f"{_PAPER}, eq. (1)-(2)"
# The sign of f may be left to its averages: whatever uses f, uses them.
_MEANS = (method.AVERAGES, method.NUMERICS, method.OVERLAP)


def _passages(power: int, falling: bool) -> method.RunAll:
    def of_rule(
        system: OnlineICA, chain: ChainRule, n: int, streams: Sequence[Stream], most: int
    ) -> list[Passage]:
        return passages(chain, n, streams, system.threshold, most, falling)

    return races(
        "chain",
        lambda system, n: rule(fields.at_dimension(system, n)).chain,
        lambda system: content_of(system, IGNORED),
        of_rule,
        power,
    )


_PASSAGES, _FALLS = _passages(3, falling=False), _passages(1, falling=True)
ESCAPE_TIMES = method.Simulation[OnlineICA](
    name="escape_times",
    role=method.Role.ESCAPE,
    about=method.About(
        text="when chains first find the feature",
        accuracy="exact in law",
        equations=f"{_RULE}, first passages of abs(Q) by the chain that is exact in law",
        bits=method.Bits.EVERY_KIND,
        engines=(*method.PROJECTED, *_MEANS, OWN, __package__),
    ),
    outputs=method.Outputs((FIRST, FIRST_SEEN)),
    cost=method.Cost(seconds=lambda system, n, last: 5e-4 + 7e-9 * last * (n or 1), fused=True),
    scope=method.Scope(refuses=passage_refusal),
    run=alone(_PASSAGES),
    together=method.Together(_PASSAGES, lanes=2 * LANES),
)
FALL_TIMES = replace(
    ESCAPE_TIMES,
    name="fall_times",
    role=method.Role.OTHER,
    about=replace(
        ESCAPE_TIMES.about,
        text="when chains first lose the feature: abs(Q) at most `threshold`",
        equations=f"{_RULE}, first falls of abs(Q) to a level by the chain that is exact in law",
    ),
    outputs=method.Outputs((replace(FIRST, units=TIME_UNIT), FIRST_SEEN)),
    cost=replace(
        ESCAPE_TIMES.cost,
        seconds=lambda system, n, last: (
            5e-4 + slowness() * 1.2e-8 * min(last, _AT_FOLD * (n or 1) ** (1 / 3)) * (n or 1)
        ),
    ),
    run=alone(_FALLS),
    together=method.Together(_FALLS, 2 * LANES),
)


WORST = 1e-8
"""Errors beyond which the closed form is refused: two of its roots all but coincide."""


def refuses(system: OnlineICA) -> str:
    """Empty if there is a closed form for this system, else the sentence that says why not."""
    why = limit_refusal(system) or closed_refusal(learned(system))
    why = why or fields.resting_refusal(system, "the closed form")
    if why or fields.schedule(system).constant is not None:
        return why
    return f"tau = {system.tau!r} is not allowed for the closed form (a constant step size)"


def _closed(system: OnlineICA, times: Array) -> PointResult:
    tau = fields.schedule(system).constant
    begin = fields.start(system).overlap(fields.prior(system))
    if tau is None:
        raise HdicaError(refuses(system))
    path = closed_overlap(learned(system), fields.source(system), tau, begin, system.batch)
    with np.errstate(all="ignore"):
        q = path.at(times)
        overlap = math.copysign(1.0, begin) * np.sqrt(q)
        error = path.error(q) / (2 * np.sqrt(np.maximum(q, np.finfo(float).tiny)))
    if not np.all(error < WORST):
        raise HdicaError(
            f"tau = {system.tau!r} is not allowed for the closed form (two steady states all but "
            "coincide there, and their partial fractions cancel; use method 'ode')"
        )
    beta = fields.formula(system, "regularizer").slope_if_linear or 0.0
    return PointResult({"Q": overlap, "R": np.full(times.size, beta), "Q_error": error})


CLOSED = method.Limit[OnlineICA](
    name="closed",
    role=method.Role.LIMIT,
    about=method.About(
        text="Q by the implicit solution of dQ/dt for odd polynomials f and a constant τ",
        accuracy="exact",
        equations=f"{_PAPER}, (14) solved for t by partial fractions and inverted",
        engines=(*method.COMMON, *_MEANS, OWN, __package__),
    ),
    outputs=method.Outputs((*TRAJECTORY, Output("Q_error", ("time",), "error of Q by rounding"))),
    cost=method.Cost(seconds=lambda system, n, last: 0.03),
    scope=method.Scope(refuses=refuses),
    run=lambda system, times, n, seed, save: _closed(system, times),
    closed=True,
)


def samples(law: Source, xi: Array, count: int, stream: Stream) -> Array:
    """At least the first ``count`` samples y = xi c/sqrt(n) + (I - xi xi'/n) z, shape (>=, n)."""
    source, noise = stream("source"), stream("noise")
    y = np.empty((-(-count // RUN) * RUN, xi.size))
    for first in range(0, count, RUN):
        check_deadline()
        c, z = law.sample(source, RUN) / math.sqrt(xi.size), noise.standard_normal((RUN, xi.size))
        y[first : first + RUN] = z + (c - z @ xi / xi.size)[:, None] * xi
    return y


def _offline_refusal(system: OnlineICA) -> str:
    """Empty if FastICA follows f, else the sentence that says why not."""
    f = fields.formula(system, "nonlinearity")
    if f.derivative.derivative.is_zero or any(jumps(f.value, kink) for kink in f.kinks):
        return (
            f"nonlinearity = {system.nonlinearity!r} is not allowed for method 'batch_fastica' "
            "(one that is not linear and does not jump, since its slope is averaged over samples)"
        )
    return fields.resting_refusal(system, "what is found from all samples at once")


def _offline(system: OnlineICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    """FastICA of the first m t n samples, whitened by their own mean and covariance."""
    law, start = fields.prior(system), fields.start(system)
    xi, x = begin(law, start, n, stream)
    f, side = fields.formula(system, "nonlinearity"), math.copysign(1.0, start.overlap(law))
    counts, rows = system.batch * steps_of(times, n), np.full((3, times.size), np.nan)
    with one_thread():
        every = samples(fields.source(system), xi, int(counts[-1]), stream)
        for index in np.flatnonzero(counts > n):
            y = every[: counts[index]]
            white = whitened(y)
            fit = fastica(white.scores(y), np.sqrt(white.variances) * (x @ white.directions), f)
            w = white.unmixing @ fit.w[0]
            overlap = side * abs(dot(xi, w)) / math.sqrt(n * dot(w, w))
            rows[:, index] = overlap, fit.converged[0], fit.iterations[0]
    return dict(zip(("Q", "converged", "iterations"), rows, strict=True)), ""


_OF_RULE = IGNORED | {"tau", "nu", "regularizer", "sign"}
BATCH_FASTICA = method.Simulation[OnlineICA](
    name="batch_fastica",
    role=method.Role.BASELINE,
    about=method.About(
        text="offline: FastICA with f of all samples so far, whitened, from the start of the rule",
        accuracy="exact",
        equations="Hyvarinen and Oja 1997, x <- mean(y f(u)) - mean(f'(u)) x on the first t n "
        f"samples of {_PAPER}, eq. (1), whitened, with a batch m t n",
        engines=(*method.FINITE, "hdica.finite.fastica", __package__),
        remark="Offline FastICA is an estimate from as many samples as the rule has seen, all at "
        "once and from the same start, and no proven optimum. No line is called optimal: message "
        "passing, the measure of PCA, cannot leave Q = 0 in ICA at any t of order one.",
    ),
    outputs=method.Outputs(
        (
            Output("Q", ("time",), "overlap of the estimate with xi, with the sign of the start"),
            Output("converged", ("time",), "1 if the iteration converged, else 0"),
            Output("iterations", ("time",), "iterations over all samples"),
        )
    ),
    cost=method.Cost(
        seconds=lambda system, n, last: (
            2e-3 + last * system.batch * (n or 1) ** 2 * (1.2e-7 + 4.2e-10 * (n or 1))
        ),
        # Of ten output times. Samples, white, and once more in the order of the kernels.
        memory=lambda system, n, last: int(3 * (n or 0) ** 2 * (1 + last * system.batch)),
        fused=True,
    ),
    scope=method.Scope(refuses=_offline_refusal, ignores=_OF_RULE),
    run=seeded("batch_fastica", _offline, _OF_RULE),
)


_FLOW = np.linspace(0.0, 1.0, 201)

_STEADY = f"{_PAPER}, steady states of (6) (roots of the drift below (11) for linear phi)"


def _closed_transitions(system: OnlineICA) -> dict[str, Array] | None:
    """Folds in tau where phi is linear."""
    if fields.formula(system, "regularizer").slope_if_linear is None:
        return None
    if fields.motion(system).moves:
        return tracked_transitions(drift(system), fields.motion(system).rate)
    folds, error = folds_of(learned(system), fields.source(system))
    # Lambda/m turns T(Q) = -D1/D2 into m T(Q).
    folds, error = replace(folds, tau=system.batch * folds.tau), system.batch * error
    return {"value": folds.tau, "Q": folds.q, "kind": np.zeros(folds.q.size), "error": error}


def _drift(system: OnlineICA) -> PointResult:
    tau, overlap = fields.constant_tau(system), np.sqrt(_FLOW)
    moved = drift(system).at(overlap, tau) - fields.motion(system).rate * overlap
    return PointResult({"drift": 2 * overlap * moved / tau})


DRIFT = method.Limit[OnlineICA](
    name="drift",
    role=method.Role.OTHER,
    about=method.About(
        text="the drift against q = Q² (φ = 0 or βx)",
        accuracy="exact",
        equations=f"{_PAPER}, right-hand side of (14) for any f",
        engines=(*method.COMMON, *_MEANS, OWN, __package__),
    ),
    outputs=method.Outputs(
        (Output("drift", ("q",), "g(q) = (1/tau) dq/dt with q = Q^2, on the branch Q > 0"),),
        coords=lambda times: {"q": _FLOW},
    ),
    cost=method.Cost(seconds=lambda system, n, last: 2e-4, prepares=fields.averages("drift")),
    scope=method.Scope(
        refuses=lambda one: limit_refusal(one) or steady_refusal(without_limit, one),
        ignores=frozenset({"start", "prior"}),
    ),
    run=lambda system, times, n, seed, save: _drift(system),
)

_CLOSED = (method.AVERAGES, method.OVERLAP)
_OF_OVERLAP = f"{_PAPER}, D below (11) and its central limit theorem"
_METHODS = (
    *of_model(
        (
            vector(lambda system: rule(system).vector, _RULE, _MEANS, IGNORED),
            chain(lambda system: rule(system).chain, chained_refusal, _RULE, _MEANS, IGNORED),
            ode(
                drift,
                limit_refusal,
                f"{_PAPER}, dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2 below (11), with the sign of "
                "G corrected; Dormand-Prince 8(5,3), tolerance 1e-12",
                uses=_MEANS,
                moving=moving,
                second=second,
                steps=steps,
            ),
            CLOSED,
            pde(
                mean_field,
                f"{_PAPER}, eq. (6)-(11) with the sign of G corrected",
                without_limit,
                _MEANS,
                beyond,
            ),
            ornstein_uhlenbeck(
                mean_field,
                limit_refusal,
                f"{_PAPER}, eq. (6)-(12) for phi = 0, with the sign of G corrected",
                _MEANS,
            ),
            particles(
                mean_field,
                f"{_PAPER}, eq. (15) and its SDE, self-consistent",
                without_limit,
                _MEANS,
            ),
            entries(mean_field, f"{_PAPER}, eq. (15)", without_limit, _MEANS),
            fixed_points(
                mean_field, _STEADY, closed_states(drift, mean_field), without_limit, _CLOSED
            ),
            branch_points(mean_field, TAU, f"{_STEADY}, continued in tau", without_limit, _MEANS),
            critical(
                mean_field,
                TAU,
                f"{_STEADY}, continued in tau",
                _closed_transitions,
                without_limit,
                (*_CLOSED, method.MEAN_FIELD),
            ),
            DRIFT,
            BATCH_FASTICA,
            best_step_method(drift, _STEADY, _CLOSED),
        )
    ),
    *streams(rule, _RULE, frozenset({"source", "noise_law"}), _MEANS),
)


def _whatever_the_start(own: method.Method) -> method.Method:
    """A method that knows no start refuses a sign that goes with its side."""
    # What draws random numbers draws them by all fields but those that it is made to leave out.
    scope, applies = own.scope, own.scope.refuses
    if not own.stochastic:
        scope = replace(scope, ignores=scope.ignores | IGNORED)
    if "start" in scope.ignores:
        scope = replace(scope, refuses=lambda system: sided_refusal(system) or applies(system))
    return replace(own, scope=scope)


METHODS = (
    *map(_whatever_the_start, _METHODS),
    *of_model(
        (
            *(ESCAPE_TIMES, *escape.METHODS, FALL_TIMES),
            fall_method(drift, second, _OF_OVERLAP, _CLOSED, limit_refusal),
            success_method(drift, second, _OF_OVERLAP, _CLOSED, limit_refusal, IGNORED),
        )
    ),
)
