"""The transitions of an overlap at finite n: falls at a fold, odds at a separatrix, a pitchfork.

Each method gives, beside its prediction at n, where the system lies on the law that all n share:
``scaled``, the control in units of its window, ``unit``, that of what is measured, and ``law``, so
that what is measured is unit law(scaled) and what n leaves beyond it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits import collapse
from hdica.limits.overlap.drift import Drift
from hdica.systems import fields, method
from hdica.systems.fields import F
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.projected.simulation import OWN

TIME = "samples per dimension"
_SCALED = Output("scaled", (), "the control in units of its window at n")
_LAW = Output("law", (), "the law that all n share at the scaled control")
_FALL = (
    _SCALED,
    Output("unit", (), "unit of time at the fold, (n/(b^2 V))^(1/3)", TIME),
    _LAW,
    Output("predicted", (), "mean time of the fall by the diffusion at n", TIME),
    Output("sd", (), "standard deviation of that time", TIME),
    Output("critical", (), "critical step size of the fold"),
    Output("error", (), "relative error of both moments"),
)
_ODDS = (
    _SCALED,
    _LAW,
    Output("predicted", (), "probability by the diffusion at n that a run goes up"),
    Output("edge", (), "the unstable overlap at n, above which a run goes up; 1 if there is none"),
    Output("error", (), "error of the probability, from twice as many panels"),
)
_STEADY = (
    _SCALED,
    Output("unit", (), "unit of Q^2 at the pitchfork, (2 V/(n B))^(1/2)"),
    _LAW,
    Output("predicted", (), "steady mean of Q^2 by the diffusion at n"),
    Output("error", (), "error of that mean, from twice as many panels"),
)
_SOME = 100
"""A dimension at which systems are checked before anything is solved."""
_CHECKED = 1e-9
"""Relative tolerance of averages that no method reports by itself."""


def _without_start(system: fields.Projected) -> str:
    """Empty unless the start is one whose overlap has no law, or Q < 0."""
    begin = fields.start(system)
    if begin.length is None and begin.overlap(fields.prior(system)) >= 0:
        return ""
    return (
        f"start = {system.start!r} is not allowed for the odds of a start (one with a law given "
        "the feature and Q >= 0, such as {'overlap': 0.5})"
    )


def _refuses(more: method.Refuses[F], last: method.Refuses[F] = method.always) -> method.Refuses[F]:
    def refuses(own: F) -> str:
        # Each is asked at an n, where a step size in units of 1/n is one like others.
        system = fields.at_dimension(own, _SOME)
        return (
            fields.closed_refusal(system)
            or fields.resting_refusal(system, "transitions of the overlap at n")
            or more(system)
            or method.refusal(fields.constant_tau)(system)
            or last(system)
        )

    return refuses


def _method(
    name: str,
    about: str,
    outputs: tuple[Output, ...],
    at_n: Callable[[F, int], tuple[float, ...]],
    rooms: tuple[str, ...],
    refuses: method.Refuses[F],
    seconds: Callable[[F], float],
    equations: str,
    ignores: frozenset[str] = frozenset(),
) -> method.Limit[F]:
    """A method whose ``outputs`` are what ``at_n(system, n)`` gives, for a system held at an n."""

    def run(system: F, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        assert n is not None
        pairs = zip(outputs, at_n(fields.at_dimension(system, n), n), strict=True)
        return PointResult({output.name: np.asarray(value, dtype=float) for output, value in pairs})

    reached = (method.NUMERICS, method.OVERLAP, method.AVERAGES, method.COLLAPSE)
    return method.Limit[F](
        name=name,
        role=method.Role.OTHER,
        about=method.About(
            text=about,
            accuracy="approximate",
            equations=equations,
            engines=(*method.COMMON, *reached, OWN, *rooms),
        ),
        outputs=method.Outputs(outputs),
        cost=method.Cost(
            seconds=lambda system, n, last: seconds(system),
            prepares=fields.averages("drift", "noise", "second"),
        ),
        scope=method.Scope(refuses=refuses, ignores=ignores, n=method.Size.DIMENSION),
        run=run,
    )


def success_method(
    drift_of: Callable[[F], Drift],
    second_of: Callable[[F], collapse.Second],
    equations: str,
    uses: tuple[str, ...] = (),
    without_limit: method.Refuses[F] = method.always,
    ignores: frozenset[str] = frozenset(),
) -> method.Method:
    """Method ``success_diffusion``: the odds of a start beside an unstable state.

    ``drift_of`` and ``second_of`` are the drift and D1 of a system closed by its overlap,
    ``equations`` where they are from, ``ignores`` fields on which they do not depend.
    """

    def at_n(system: F, n: int) -> tuple[float, ...]:
        tau, law, begin = fields.constant_tau(system), fields.prior(system), fields.start(system)
        drift, second = drift_of(system), second_of(system)
        edge = collapse.separatrix_of(drift, second, tau)
        if edge is None:
            return (-np.inf, 0.0, 0.0, 1.0, 0.0)
        spread, q = begin.spread(law), begin.overlap(law)
        scaled = (q - edge.q) / edge.width(n, spread)
        moved = q + begin.bias(law) / n
        odds, error = collapse.success_odds(drift, second, tau, n, edge, (moved, spread / n))
        return (scaled, collapse.separatrix(scaled), odds, edge.at(n), error + _CHECKED)

    return _method(
        name="success_diffusion",
        about="probability that a run goes up from its start at n, by the diffusion (φ = 0 or βx)",
        rooms=(method.home_of(drift_of), *uses),
        outputs=_ODDS,
        at_n=at_n,
        refuses=_refuses(without_limit, _without_start),
        seconds=lambda system: 0.0046 if fields.averages_close(system) else 0.05,
        ignores=ignores,
        equations=f"{equations}; odds of dQ = (D + D1/n) dt + (V/n)^(1/2) dW, and Phi((2 lambda "
        "n/V)^(1/2) (Q0 - Q_u))",
    )


def steady_method(
    drift_of: Callable[[F], Drift],
    second_of: Callable[[F], collapse.Second],
    equations: str,
    uses: tuple[str, ...] = (),
    without_limit: method.Refuses[F] = method.always,
) -> method.Method:
    """Method ``steady_diffusion``: the steady size of an overlap that is about to form."""

    def at_n(system: F, n: int) -> tuple[float, ...]:
        tau, drift = fields.constant_tau(system), drift_of(system)
        form = collapse.pitchfork_of(drift, tau)
        scaled = form.scaled(n)
        square, error = collapse.steady_square(drift, second_of(system), tau, n)
        return (scaled, form.unit(n), collapse.pitchfork(scaled), square, error + _CHECKED * square)

    return _method(
        name="steady_diffusion",
        about="steady mean of Q² at n where informative states are born (φ = 0 or βx)",
        rooms=(method.home_of(drift_of), *uses),
        outputs=_STEADY,
        at_n=at_n,
        refuses=_refuses(without_limit),
        seconds=lambda system: 0.01 if fields.averages_close(system) else 0.02,
        ignores=frozenset({"start"}),
        equations=f"{equations}; steady law of dQ = (D + D1/n) dt + (V/n)^(1/2) dW, and that of "
        "mu Q - B Q^3 alone",
    )


def fall_method(
    drift_of: Callable[[F], Drift],
    second_of: Callable[[F], collapse.Second],
    equations: str,
    uses: tuple[str, ...] = (),
    without_limit: method.Refuses[F] = method.always,
) -> method.Method:
    """Method ``fall_diffusion``: when a run first loses the feature, of a system with a threshold.

    The start must be exact, Q > 0 above the threshold.
    """

    def from_exact(system: F) -> str:
        begin, threshold = fields.start(system), fields.optional(system, "threshold")
        if begin.exact and begin.overlap(fields.prior(system)) > threshold:
            return ""
        return (
            f"start = {system.start!r} is not allowed for falls by the diffusion ({{'overlap': Q0, "
            f"'exact': True}} with Q0 above the threshold {threshold:g})"
        )

    def at_n(system: F, n: int) -> tuple[float, ...]:
        tau, begin = fields.constant_tau(system), fields.start(system).overlap(fields.prior(system))
        drift, threshold = drift_of(system), fields.optional(system, "threshold")
        fold = collapse.fold_of(drift, tau)
        scaled = fold.scaled(tau, n)
        fall = collapse.fall_time(drift, second_of(system), tau, n, begin, threshold)
        if not fall.error < 1:
            raise HdicaError("the mean time of the fall does not settle as panels are halved")
        moments = fall.mean, fall.sd, fold.tau, fall.error + _CHECKED
        return (scaled, fold.unit(n), collapse.fold(scaled), *moments)

    return _method(
        name="fall_diffusion",
        about="mean time until a run loses the feature at n, by the diffusion near the fold",
        rooms=(method.home_of(drift_of), *uses),
        outputs=_FALL,
        at_n=at_n,
        refuses=_refuses(without_limit, from_exact),
        seconds=lambda system: 0.05,
        equations=f"{equations}; first passage of dQ = (D + D1/n) dt + (V/n)^(1/2) dW to the "
        "threshold, and (n/(b^2 V))^(1/3) F(eps) at the fold",
    )
