"""The ways to compute online ICA: simulations at finite n, the limit, its fixed points."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averages, gain_at, power_at
from hdica.limits.overlap.fixed_points import Folds, find_folds, fold_error
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method, Output, PointResult
from hdica.systems.online_ica.rule import chain_refusal
from hdica.systems.online_ica.system import (
    OnlineICA,
    drift,
    limit_refusal,
    mean_field,
    rule,
    without_limit,
)
from hdica.systems.shared.density import particles, pde
from hdica.systems.shared.fields import constant_tau, formula, source
from hdica.systems.shared.overlap import closed_states, ode
from hdica.systems.shared.simulation import chain, vector
from hdica.systems.shared.steady import branch_points, critical, fixed_points, steady_refusal

Array = NDArray[np.float64]
FLOW_POINTS = 201

_PAPER = "Wang and Lu 2017"
_STEADY = f"{_PAPER}, steady states of (6) (roots of the drift below (11) for linear phi)"


def folds(system: OnlineICA) -> tuple[Folds, Array]:
    """Critical step sizes, and the error of each.

    Mirror images (Q and -Q at one step size, for odd f) are reported once, with Q > 0. The
    error is what the averages leave open, and the difference to T(Q) from averages at that very
    Q, whose nodes are others.
    """
    flow = drift(system)
    found = find_folds(flow)
    f, law = formula(system, "nonlinearity"), source(system)
    kept = [
        i
        for i, (tau, q) in enumerate(zip(found.tau, found.q, strict=True))
        if q > 0 or not np.any(np.isclose(found.q, -q, atol=1e-7) & np.isclose(found.tau, tau))
    ]
    tau, q = found.tau[kept], found.q[kept]
    pairs = zip(tau.tolist(), q.tolist(), strict=True)
    errors = [fold_error(flow, t, x) + _seen_again(f, law, t, x) for t, x in pairs]
    return Folds(tau, q), np.array(errors)


@lru_cache(maxsize=256)
def _seen_again(f: Formula, law: Source, tau: float, q: float) -> float:
    """Difference to T(Q) by averages at one overlap, plus their own error.

    For polynomials, whose averages are in closed form, their rounding alone.
    """
    if f.coefficients is not None:
        known = averages(f, law)
        power = float(known.power(q))
        share = 2 * (1 - q * q) / (abs(q) * power)
        return share * known.gain_error + tau * known.power_error / power
    (gain, gain_off), (power, power_off) = gain_at(f, law, q), power_at(f, law, q)
    share = 2 * (1 - q * q) / (abs(q) * power)
    again = -math.copysign(share, q) * gain
    return abs(again - tau) + share * gain_off + tau * power_off / power


def _closed_transitions(system: OnlineICA) -> dict[str, Array] | None:
    """Folds in tau where phi is linear."""
    if formula(system, "regularizer").slope_if_linear is None:
        return None
    found, error = folds(system)
    return {"value": found.tau, "Q": found.q, "kind": np.zeros(found.q.size), "error": error}


def _drift_refusal(system: OnlineICA) -> str:
    return limit_refusal(system) or steady_refusal(without_limit, system)


def _flow_grid(times: Array) -> dict[str, Array]:
    return {"q": np.linspace(0.0, 1.0, FLOW_POINTS)}


def _run_drift(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    tau = constant_tau(system)
    overlap = np.sqrt(_flow_grid(times)["q"])
    return PointResult({"drift": 2 * overlap * drift(system).at(overlap, tau) / tau})


DRIFT = Method(
    name="drift",
    stochastic=False,
    accuracy="exact",
    outputs=(Output("drift", ("q",), "g(q) = (1/tau) dq/dt with q = Q^2, on the branch Q > 0"),),
    run=_run_drift,
    coords=_flow_grid,
    refuses=_drift_refusal,
    seconds=lambda system, n, last: 2e-4,
    ignores=frozenset({"start", "prior"}),
    equations="Wang and Lu 2017, right-hand side of (14) for any f",
    kernel=KERNEL_VERSION,
)

METHODS = {
    m.name: m
    for m in (
        vector(lambda system: rule(system).vector, f"{_PAPER}, eq. (1)-(2)"),
        chain(
            lambda system: rule(system).chain,
            lambda system: chain_refusal(rule(system)),
            f"{_PAPER}, eq. (1)-(2)",
        ),
        ode(
            drift,
            limit_refusal,
            f"{_PAPER}, dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2 below (11), with the sign of "
            "G corrected; Dormand-Prince 8(5,3), tolerance 1e-12",
        ),
        pde(mean_field, f"{_PAPER}, eq. (6)-(11) with the sign of G corrected", without_limit),
        particles(mean_field, f"{_PAPER}, eq. (15) and its SDE, self-consistent", without_limit),
        fixed_points(mean_field, _STEADY, closed_states(drift, mean_field), without_limit),
        branch_points(mean_field, "tau", f"{_STEADY}, continued in tau", without_limit),
        critical(
            mean_field, "tau", f"{_STEADY}, continued in tau", _closed_transitions, without_limit
        ),
        DRIFT,
    )
}
