"""The ways to compute online ICA: simulations at finite n, the limit, its fixed points."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits.overlap.nonlinear import closed_overlap, closed_refusal, folds_of
from hdica.systems.fields import (
    averages,
    constant_tau,
    formula,
    motion,
    prior,
    resting_refusal,
    schedule,
    source,
    start,
)
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    MOVING,
    NUMERICS,
    OVERLAP,
    About,
    Cost,
    Limit,
    Method,
    Outputs,
    Role,
    Scope,
)
from hdica.systems.online_ica import escape, passage
from hdica.systems.online_ica.system import (
    IGNORED,
    OnlineICA,
    beyond,
    drift,
    learned,
    limit_refusal,
    mean_field,
    moving,
    on_data,
    rule,
    second,
    sided_refusal,
    without_limit,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.projected.best_step import (
    best_step_method,
    tracked_transitions,
)
from hdica.systems.projected.collapse import fall_method, success_method
from hdica.systems.projected.controls import TAU
from hdica.systems.projected.density import particles, pde
from hdica.systems.projected.entries import entries
from hdica.systems.projected.normal import ornstein_uhlenbeck
from hdica.systems.projected.overlap import closed_states, ode
from hdica.systems.projected.rule import chain_refusal, moving_chain_refusal
from hdica.systems.projected.simulation import OWN, chain, vector
from hdica.systems.projected.steady import branch_points, critical, fixed_points, steady_refusal
from hdica.systems.projected.stream import given_data, streams

WORST = 1e-8
"""Errors beyond which the closed form is refused: two of its roots all but coincide."""


def refuses(system: OnlineICA) -> str:
    """Empty if there is a closed form for this system, else the sentence that says why not."""
    why = (
        limit_refusal(system)
        or closed_refusal(learned(system))
        or resting_refusal(system, "the closed form")
    )
    if why or schedule(system).constant is not None:
        return why
    return f"tau = {system.tau!r} is not allowed for the closed form (a constant step size)"


def _run(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    tau, begin = schedule(system).constant, start(system).overlap(prior(system))
    if tau is None:
        raise HdicaError(refuses(system))
    path = closed_overlap(learned(system), source(system), tau, begin, system.batch)
    with np.errstate(all="ignore"):
        q = path.at(times)
        overlap = math.copysign(1.0, begin) * np.sqrt(q)
        error = path.error(q) / (2 * np.sqrt(np.maximum(q, np.finfo(float).tiny)))
    if not np.all(error < WORST):
        raise HdicaError(
            f"tau = {system.tau!r} is not allowed for the closed form (two steady states all but "
            "coincide there, and their partial fractions cancel; use method 'ode')"
        )
    beta = formula(system, "regularizer").slope_if_linear or 0.0
    return PointResult({"Q": overlap, "R": np.full(times.size, beta), "Q_error": error})


CLOSED = Limit[OnlineICA](
    name="closed",
    role=Role.LIMIT,
    about=About(
        text="Q by the implicit solution of dQ/dt for odd polynomials f and a constant τ",
        accuracy="exact",
        equations="Wang and Lu 2017, (14) solved for t by partial fractions and inverted",
        engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    ),
    outputs=Outputs(
        (
            Output("Q", ("time",), "overlap Q = xi.x/n"),
            Output("R", ("time",), "R, the mean of x phi(x)"),
            Output("Q_error", ("time",), "error of Q by rounding"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 0.03),
    scope=Scope(refuses=refuses),
    run=_run,
    closed=True,
)


FLOW_POINTS = 201

_PAPER = "Wang and Lu 2017"
_STEADY = f"{_PAPER}, steady states of (6) (roots of the drift below (11) for linear phi)"


def _closed_transitions(system: OnlineICA) -> dict[str, Array] | None:
    """Folds in tau where phi is linear."""
    if formula(system, "regularizer").slope_if_linear is None:
        return None
    if motion(system).moves:
        return tracked_transitions(drift(system), motion(system).rate)
    folds, error = folds_of(learned(system), source(system))
    # Lambda/m turns T(Q) = -D1/D2 into m T(Q).
    folds, error = replace(folds, tau=system.batch * folds.tau), system.batch * error
    return {"value": folds.tau, "Q": folds.q, "kind": np.zeros(folds.q.size), "error": error}


def _drift_refusal(system: OnlineICA) -> str:
    return limit_refusal(system) or steady_refusal(without_limit, system)


def _flow_grid(times: Array) -> dict[str, Array]:
    return {"q": np.linspace(0.0, 1.0, FLOW_POINTS)}


def _run_drift(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    tau = constant_tau(system)
    overlap = np.sqrt(_flow_grid(times)["q"])
    moved = drift(system).at(overlap, tau) - motion(system).rate * overlap
    return PointResult({"drift": 2 * overlap * moved / tau})


DRIFT = Limit[OnlineICA](
    name="drift",
    role=Role.OTHER,
    about=About(
        text="the drift against q = Q² (φ = 0 or βx)",
        accuracy="exact",
        equations="Wang and Lu 2017, right-hand side of (14) for any f",
        engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    ),
    outputs=Outputs(
        (Output("drift", ("q",), "g(q) = (1/tau) dq/dt with q = Q^2, on the branch Q > 0"),),
        coords=_flow_grid,
    ),
    cost=Cost(seconds=lambda system, n, last: 2e-4, prepares=averages("drift")),
    scope=Scope(refuses=_drift_refusal, ignores=frozenset({"start", "prior"})),
    run=_run_drift,
)

# The sign of f may be left to its averages: whatever uses f, uses them.
_MEANS = (AVERAGES, NUMERICS, OVERLAP)
_CLOSED = (AVERAGES, OVERLAP)
_OF_OVERLAP = f"{_PAPER}, D below (11) and its central limit theorem"
_METHODS = (
    *given_data(
        (
            vector(lambda system: rule(system).vector, f"{_PAPER}, eq. (1)-(2)", _MEANS, IGNORED),
            chain(
                lambda system: rule(system).chain,
                lambda system: (
                    chain_refusal(formula(system, "regularizer"))
                    or moving_chain_refusal(motion(system))
                ),
                f"{_PAPER}, eq. (1)-(2)",
                _MEANS,
                IGNORED,
            ),
            ode(
                drift,
                limit_refusal,
                f"{_PAPER}, dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2 below (11), with the sign of "
                "G corrected; Dormand-Prince 8(5,3), tolerance 1e-12",
                uses=_MEANS,
                moving=moving,
                second=second,
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
                (*_CLOSED, MOVING),
            ),
            DRIFT,
            best_step_method(drift, _STEADY, _CLOSED),
        )
    ),
    *streams(on_data, f"{_PAPER}, eq. (1)-(2)", frozenset({"source"}), _MEANS),
)


def _whatever_the_start(method: Method) -> Method:
    """A method that knows no start refuses a sign that goes with its side."""
    # What draws random numbers draws them by all fields but those that it is made to leave out.
    more = frozenset() if method.stochastic else IGNORED
    scope = replace(method.scope, ignores=method.scope.ignores | more)
    if "start" in scope.ignores:
        applies = scope.refuses
        scope = replace(scope, refuses=lambda system: sided_refusal(system) or applies(system))
    return replace(method, scope=scope)


METHODS = (
    *(_whatever_the_start(method) for method in _METHODS),
    *given_data(
        (
            *(passage.ESCAPE_TIMES, *escape.METHODS, passage.FALL_TIMES),
            fall_method(drift, second, _OF_OVERLAP, _CLOSED, limit_refusal),
            success_method(drift, second, _OF_OVERLAP, _CLOSED, limit_refusal, IGNORED),
        )
    ),
)
