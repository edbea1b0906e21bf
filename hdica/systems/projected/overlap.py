"""Methods where the overlap alone closes the limit: its equation and its steady states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import Schedule
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.moving import Moving, moved_drift
from hdica.limits.mean_field.moving import solve as moved
from hdica.limits.overlap.drift import Drift, bias, follow, solve
from hdica.limits.overlap.fixed_points import find_fixed_points, holds_from
from hdica.systems import fields, method
from hdica.systems.fields import F
from hdica.systems.method import Array, Output, PointResult, band_of, bias_of
from hdica.systems.projected.simulation import TRAJECTORY, reached

DriftOf = Callable[[F], Drift]
Closed = Callable[[F, Array], Array | None]
Second = Callable[[Array, float], Array]
"""D1(Q, tau) of a system: what a step adds to its mean drift at order 1/n^2."""
ROUNDING = 1e-14
CONTROL = "with the drift wrong by 2 % (negative control)"
_AT_ZERO = 1e-6
"""Roots of the drift nearer to 0 are the uninformative state, or born from it in rounding."""


OUTPUTS = (
    *TRAJECTORY,
    Output("Q_error", ("time",), "error of Q: of the time steps and of the averages of f"),
    Output("Q_control", ("time",), f"overlap {CONTROL}"),
    Output("Q_sd", ("time",), "limit of sqrt(n) times the standard deviation of Q"),
    Output(
        "Q_from_n",
        ("time",),
        "n from which three standard deviations stay clear of unstable states",
    ),
)


def ode(
    drift_of: DriftOf[F],
    refuses: Callable[[F], str],
    equations: str,
    closed: Closed = lambda system, times: None,
    uses: tuple[str, ...] = (),
    moving: Callable[[F], Moving | None] = lambda system: None,
    second: Callable[[F], Second] | None = None,
    steps: Callable[[F], Schedule] = fields.schedule,
) -> method.Limit[F]:
    """Method ``ode``: the overlap as n -> infinity, with its central limit theorem.

    ``refuses`` says why the overlap does not close the limit; ``closed`` is Q at the times in
    closed form, or None where there is none. ``moving`` is the limit of a system in which more
    than the step size changes with time, None for others. ``second`` is D1 of a system, by which
    the mean of runs of a finite n is known, ``steps`` the step size as :func:`observing` has it.
    """

    def bias_of_mean(system: F, times: Array) -> Array:
        assert second is not None
        fields.check_bias(system)
        if moving(system) is not None or steps(system).observed is not None:
            raise HdicaError(
                "bias = True is not allowed where the feature moves, the signal varies or step "
                "sizes follow the samples (the term of order 1/n is known where none of them does)"
            )
        law, begin = fields.prior(system), fields.start(system)
        at_start = begin.overlap(law), begin.spread(law), begin.bias(law)
        return bias(drift_of(system), second(system), fields.schedule(system), at_start, times)

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        law, begin, changes = fields.prior(system), fields.start(system), moving(system)
        least, seen = np.full(times.size, np.nan), steps(system).observed
        if seen is not None:
            path = follow(drift_of(system), seen, begin.overlap(law), times)
        elif changes is None:
            drift, at_start = drift_of(system), (begin.overlap(law), begin.spread(law))
            path = solve(drift, fields.schedule(system), *at_start, times)
            least = holds_from(drift, fields.schedule(system), at_start, times)
        else:
            path = moved(changes, times)
        exact = closed(system, times) if changes is None else None
        beta = fields.formula(system, "regularizer").slope_if_linear or 0.0
        values = {
            "Q": path.q if exact is None else exact,
            "R": np.full(times.size, beta),
            "Q_error": path.error if exact is None else np.full(times.size, ROUNDING),
            "Q_control": path.control,
            "Q_sd": path.spread,
            "Q_from_n": least,
        }
        if save.bands:
            values["R_sd"] = np.zeros(times.size)
        if save.bias:
            values["Q_bias"] = bias_of_mean(system, times)
        return PointResult(values)

    rooms = (method.NUMERICS, method.OVERLAP, method.MEAN_FIELD, method.MEAN_FIELD, method.AVERAGES)
    return method.Limit[F](
        name="ode",
        role=method.Role.LIMIT,
        rank=1,
        about=method.About(
            text="dQ/dt as n → ∞ (in closed form where there is one), with the central limit "
            "theorem (φ = 0 or βx)",
            accuracy="converged",
            equations=equations,
            engines=reached(drift_of, uses, *rooms),
        ),
        outputs=method.Outputs(
            OUTPUTS,
            bands=(band_of(TRAJECTORY[1]),),
            bias=() if second is None else (bias_of(TRAJECTORY[0]),),
        ),
        cost=method.Cost(seconds=_seconds, prepares=fields.averages("drift", "noise")),
        scope=method.Scope(refuses=lambda system: refuses(system) or _unknown_moments(system)),
        run=run,
        closed=True,
    )


_SIZES, _NEAR, _CLOSE = 129, 1e-3, 1e-6
"""Overlaps for a table; those at 0 and 1, where D1/D2 may be 0/0, are this far inside."""


def observing(
    system: F, power: int, scale: Callable[[], float], best: Callable[[Array, float], Array]
) -> Schedule:
    """The step size of a system, of one that follows what is observed with all its numbers.

    E u^p of the power p is that of a normal number plus ``scale()`` abs(Q)^p. ``best(Q, scale)`` is
    the step size of the largest rate at overlaps, in whose place 0 is where none learns.
    """
    schedule = fields.schedule(system)
    if schedule.observed is None:
        return schedule
    what, batch, slope = "such a step size", fields.batch(system), scale()
    why = fields.closed_refusal(system) or fields.resting_refusal(system, what)
    if batch > 1:
        why = f"batch = {batch} is not allowed for {what} (1)"
    elif not method.ZERO < abs(slope) < np.inf:
        # The moments of a normal number are 1 and 3.
        why = f"E u^{power} = {power - 1} + {slope:g} Q^{power} says nothing of Q"
    if why:
        raise HdicaError(f"tau = {fields.optional(system, 'tau')!r} is not allowed: {why}", ["tau"])
    side = -1.0 if fields.start(system).overlap(fields.prior(system)) < 0 else 1.0
    q = np.clip(np.sqrt(np.linspace(0.0, 1.0, _SIZES)), schedule.observed.least, 1 - _CLOSE)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.nan_to_num(best(side * np.maximum(q, _NEAR), slope), posinf=0.0)
    tau = tuple(np.maximum(sizes, 0.0).tolist())
    seen = schedule.observed._replace(power=power, scale=slope, sizes=tau)
    return schedule._replace(observed=seen)


def _seconds(system: fields.Projected, n: int | None, last: float) -> float:
    if fields.signal_varies(system):
        return 0.05 + 0.012 * last
    steps = fields.schedule(system)
    if steps.observed:
        return 0.015 * last**0.5
    constant = steps.constant
    tau = (steps.at(0.0) + steps.at(last / 2) + steps.at(last)) / 3
    # Steps of the solver become longer as the path comes to rest.
    once = 0.003 + 0.0047 * (tau * last) ** 0.5
    return once * (4 if constant is None else 2 if fields.motion(system).moves else 1)


def _unknown_moments(system: fields.Projected) -> str:
    """Empty unless the feature moves from a first estimate that has no law given the feature."""
    if fields.start(system).length is None or not fields.motion(system).moves:
        return ""
    return (
        f"motion = {fields.optional(system, 'motion')!r} is not allowed with start = a vector for "
        "method 'ode' (a start with a law given the feature, such as {'overlap': 0.5}; method "
        "'vector' takes any)"
    )


def closed_states(
    drift_of: DriftOf[F], field_of: Callable[[F], MeanField]
) -> Callable[[F], dict[str, Array] | None]:
    """Columns of all steady states from the roots of the drift; None where phi is not linear."""

    def states(system: F) -> dict[str, Array] | None:
        beta = fields.formula(system, "regularizer").slope_if_linear
        if beta is None:
            return None
        tau, field = fields.constant_tau(system), field_of(system)
        delta = fields.motion(system).rate
        points = find_fixed_points(moved_drift(drift_of(system), delta, tau), tau)
        return {
            "Q": points.q,
            "R": np.full(points.q.size, beta),
            "h": np.array([field.curvature(float(q), beta, tau) / 2 for q in points.q]),
            "bulk": np.ones(points.q.size),
            "stable": points.stable.astype(float),
            "kind": np.where(np.abs(points.q) < _AT_ZERO, 1.0, 0.0),
            "error": points.error,
        }

    return states
