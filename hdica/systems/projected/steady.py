"""Methods of every system of the mean-field family: steady states, branches, transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits.mean_field.family import MeanField
from hdica.systems import fields, method
from hdica.systems.fields import F
from hdica.systems.method import (
    STATE_KINDS,
    TRANSITION_KINDS,
    Array,
    Output,
    PointResult,
    codes,
    padded,
)
from hdica.systems.projected.simulation import OWN
from hdica.systems.system import Control

# The solvers are imported where they are called: their libraries take longer to load than many a
# sweep without steady states takes to run.
if TYPE_CHECKING:
    from hdica.limits.mean_field.steady.states import SteadyStates
    from hdica.limits.mean_field.transitions.continuation import Branch, Transitions

FieldOf = Callable[[F], MeanField]
ENGINES = (*method.COMMON, method.NUMERICS, method.MEAN_FIELD, f"{method.MEAN_FIELD}.steady", OWN)
CONTINUED = (*ENGINES, f"{method.MEAN_FIELD}.transitions")
MAX_FIXED_POINTS = 12
MAX_TRANSITIONS = 12
MAX_BRANCH_POINTS = 2000


def family(field_of: FieldOf[Any], system: Any, parameter: str) -> Callable[[float], MeanField]:
    """The limit as a function of one scalar parameter of the system, whose feature stays."""
    refused = staying(system)
    if refused:
        raise HdicaError(refused, ["motion"])
    return lambda value: field_of(fields.with_parameter(system, parameter, value))


def find_transitions(
    field_of: FieldOf[Any], system: Any, parameter: str, ends: tuple[float, float]
) -> Transitions:
    """Folds, junctions and exchanges of stability with Q = 0 as one parameter varies.

    Where the limit does not change under Q -> -Q an exchange is a pitchfork in Q; mirror images
    are one state here, and in Q^2 the branches cross, so it is called transcritical as well.
    """
    from hdica.limits.mean_field.transitions.continuation import transitions

    fields.with_parameter(system, parameter, ends[1])
    result = transitions(family(field_of, system, parameter), *ends)
    kind = np.where(result.kind == "pitchfork", "transcritical", result.kind)
    return replace(result, kind=kind)


def steady_refusal(without_limit: method.Refuses[F], system: F) -> str:
    """Empty if steady states exist, else the sentence that says why not."""
    return (
        without_limit(system)
        or method.refusal(fields.constant_tau)(system)
        or moving_refusal(system)
    )


def staying(system: fields.Projected) -> str:
    """Empty if the feature stays, else that its steady states are not continued."""
    if not fields.motion(system).moves:
        return ""
    return (
        f"motion = {fields.optional(system, 'motion')!r} is not allowed for branches and "
        "transitions in this parameter (a feature that stays; hdica.best_step has the step sizes "
        "and drifts that can be tracked)"
    )


def moving_refusal(system: fields.Projected) -> str:
    """Empty if steady states are known where the feature moves, else why not.

    A feature that stays has all of them. One that moves has those at phi = 0 or beta x, roots of
    the drift less delta Q, where E[xi] = 0 and no jumps come.
    """
    moved, law = fields.motion(system), fields.prior(system)
    if not moved.moves:
        return ""
    lead = f"motion = {fields.optional(system, 'motion')!r} is not allowed for fixed points"
    if moved.jumps:
        return f"{lead} (a feature never rests)"
    if not _is_linear(system):
        return (
            f"{lead} with the regularizer {system.regularizer!r} (allowed: 0 and beta*x; method "
            "'pde' follows any)"
        )
    if abs(float(law.nodes.mean(law.nodes.points))) > 1e-12:
        return (
            f"{lead} with prior = {system.prior!r} (a prior of mean 0, such as 'gaussian' or "
            "{'sparse_sign': 0.3})"
        )
    return ""


_STATES = (
    Output("Q", ("fixed_point",), "overlap Q at the fixed point"),
    Output("R", ("fixed_point",), "R at the fixed point"),
    Output("h", ("fixed_point",), "h, half the curvature of the effective potential"),
    Output("bulk", ("fixed_point",), "E[x^2] of the bulk; below 1 the rest is on o(n) entries"),
    Output("stable", ("fixed_point",), "1 if stable, 0 if unstable"),
    Output(
        "kind", ("fixed_point",), "0 informative, 1 uninformative (Q = 0), 2 condensed (bulk < 1)"
    ),
    Output("error", ("fixed_point",), "error of Q at the fixed point"),
)


def _columns(states: SteadyStates | Branch) -> dict[str, Array]:
    """Columns of steady states, by output name."""
    return {
        "Q": states.q,
        "R": states.r,
        "h": states.h,
        "bulk": states.bulk,
        "stable": np.asarray(states.stable, dtype=float),
        "kind": codes(states.kind, STATE_KINDS),
    }


def _search_seconds(system: fields.Projected, n: int | None, last: float) -> float:
    if not _is_linear(system):
        return 0.05
    return 4e-3 if fields.averages_close(system) else 0.02


def _is_linear(system: fields.Projected) -> bool:
    """Whether the overlap alone closes the limit, so that its states are roots of one function."""
    return fields.formula(system, "regularizer").slope_if_linear is not None


def fixed_points(
    field_of: FieldOf[F],
    equations: str,
    closed: Callable[[F], dict[str, Array] | None],
    without_limit: method.Refuses[F] = method.always,
    uses: tuple[str, ...] = (),
) -> method.States[F]:
    """Method ``fixed_points``: the steady states, with kind and stability.

    ``closed`` has the same columns where the overlap alone closes the limit, else None;
    ``without_limit`` is empty if a system has a limit, else why not.
    """

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        from hdica.limits.mean_field.steady.states import steady_states

        columns = closed(system)
        if columns is None:
            states = steady_states(field_of(system))
            columns = {**_columns(states), "error": states.error}
        values = padded(columns, MAX_FIXED_POINTS, "fixed points")
        if save.x:
            values |= _densities(field_of(system), values["Q"], save)
        return PointResult(values)

    return method.States[F](
        name="fixed_points",
        role=method.Role.STEADY_STATES,
        rank=1,
        about=method.About(
            text="steady states by a search refined until stable, their stability and kind, and "
            "their densities at given x",
            accuracy="converged",
            equations=equations,
            engines=(*ENGINES, method.MEAN_FIELD, method.home_of(field_of), *uses),
        ),
        outputs=method.Outputs(
            _STATES,
            keeps=frozenset({"steady densities"}),
            coords=lambda times: {"fixed_point": np.arange(MAX_FIXED_POINTS)},
        ),
        cost=method.Cost(seconds=_search_seconds, prepares=fields.averages("drift")),
        scope=method.Scope(
            refuses=lambda system: steady_refusal(without_limit, system),
            ignores=frozenset({"start"}),
        ),
        run=run,
    )


def _densities(field: MeanField, q: Array, save: Save) -> dict[str, Array]:
    """What is kept of the densities of states of some overlaps, which may be NaN."""
    from hdica.limits.mean_field.steady.states import densities
    from hdica.systems.projected.density_values import by_group

    each = densities(field, q, np.asarray(save.x, dtype=float), save.edges)
    at_x, below = (np.stack([by_group(field.prior, one) for one in some]) for some in each)
    xi, weight = field.prior.group_values, field.prior.group_weights
    return {"density": at_x, "cdf": below, "xi": xi, "weight": weight}


def critical(
    field_of: FieldOf[F],
    control: Control,
    equations: str,
    closed: Callable[[F], dict[str, Array] | None] = lambda system: None,
    without_limit: method.Refuses[F] = method.always,
    uses: tuple[str, ...] = (),
) -> method.States[F]:
    """Method ``critical``: transitions in the system's natural parameter."""
    parameter = control.name

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        columns = closed(system)
        if columns is None:
            ends = find_transitions(field_of, system, parameter, (control.low, control.high))
            kind = codes(ends.kind, TRANSITION_KINDS)
            columns = {"value": ends.value, "Q": ends.q, "kind": kind, "error": ends.error}
        return PointResult(padded(columns, MAX_TRANSITIONS, "transitions"))

    return method.States[F](
        name="critical",
        role=method.Role.TRANSITIONS,
        rank=1,
        about=method.About(
            text="where steady states change: folds, exchanges of stability, junctions",
            accuracy="converged",
            equations=equations,
            engines=(*CONTINUED, method.home_of(field_of), *uses),
        ),
        outputs=method.Outputs(
            (
                Output("value", ("transition",), f"critical value of {parameter}"),
                Output("Q", ("transition",), "overlap at the transition"),
                Output("kind", ("transition",), "0 fold, 1 transcritical, 2 junction"),
                Output("error", ("transition",), "error of the critical value"),
            ),
            coords=lambda times: {"transition": np.arange(MAX_TRANSITIONS)},
        ),
        cost=method.Cost(
            seconds=lambda system, n, last: 0.1 if _is_linear(system) else 2.0,
            prepares=fields.averages("drift"),
        ),
        scope=method.Scope(
            refuses=lambda system: _varied_refusal(without_limit, system, parameter),
            ignores=frozenset({parameter, "start"}),
        ),
        run=run,
        varies=parameter,
    )


def _varied_refusal(without_limit: method.Refuses[F], system: F, parameter: str) -> str:
    """The refusal of the system with a plain number for the parameter that varies."""
    try:
        return steady_refusal(without_limit, fields.with_parameter(system, parameter, 1.0))
    except HdicaError as exc:
        return str(exc)


def branch_points(
    field_of: FieldOf[F],
    control: Control,
    equations: str,
    without_limit: method.Refuses[F] = method.always,
    uses: tuple[str, ...] = (),
) -> method.States[F]:
    """Method ``branches``: curves of steady states over the system's natural parameter."""
    parameter = control.name

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        from hdica.limits.mean_field.transitions.continuation import branches

        every = branches(family(field_of, system, parameter), control.low, control.high)
        each = [
            {"value": one.parameter, **_columns(one), "branch": np.full(one.q.size, float(index))}
            for index, one in enumerate(every)
        ]
        columns = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
        return PointResult(padded(columns, MAX_BRANCH_POINTS, "branch points"))

    dims = ("branch_point",)
    return method.States[F](
        name="branches",
        role=method.Role.BRANCHES,
        about=method.About(
            text="curves of steady states over a parameter, through folds and junctions",
            accuracy="converged",
            equations=equations,
            engines=(*CONTINUED, method.home_of(field_of), *uses),
        ),
        outputs=method.Outputs(
            (
                Output("value", dims, f"{parameter} along the branch"),
                *(Output(o.name, dims, o.long_name) for o in _STATES if o.name != "error"),
                Output("branch", dims, "index of the branch"),
            ),
            coords=lambda times: {"branch_point": np.arange(MAX_BRANCH_POINTS)},
        ),
        cost=method.Cost(seconds=lambda system, n, last: 5.0, prepares=fields.averages("drift")),
        scope=method.Scope(
            refuses=lambda system: (
                _varied_refusal(without_limit, system, parameter) or staying(system)
            ),
            ignores=frozenset({parameter, "start"}),
        ),
        run=run,
        varies=parameter,
    )
