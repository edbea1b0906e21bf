"""The ways to compute online ICA: simulations at finite n, the limit, its fixed points."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.rule import chain_refusal, run_chain, run_vector
from hdica.finite.streams import point_stream
from hdica.ingredients.save import Save
from hdica.limits.expectations import gain_at, power_at
from hdica.limits.fixed_points import Folds, find_fixed_points, find_folds
from hdica.limits.overlap import solve
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method, Output, PointResult
from hdica.systems.online_ica import (
    OnlineICA,
    drift,
    formula,
    limit_refusal,
    prior,
    rule,
    schedule,
    source,
    start,
)

Array = NDArray[np.float64]
MAX_FIXED_POINTS = 12
MAX_TRANSITIONS = 4
FLOW_POINTS = 201

_OVERLAP = Output("Q", ("time",), "overlap Q = xi.x/n")
_ENERGY = Output("R", ("time",), "R, the mean of x phi(x)")


def content(system: OnlineICA) -> dict[str, object]:
    """The system as plain data: what its numbers, and so its random streams, depend on."""
    return {"system": "OnlineICA", **system.model_dump(mode="json", exclude_defaults=True)}


def _simulation(name: str) -> Method:
    runner = {"vector": run_vector, "chain": run_chain}[name]

    def run(
        system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
    ) -> PointResult:
        assert n is not None
        assert seed is not None
        key = content(system)
        values, diverged = runner(
            rule(system), times, n, lambda part: point_stream(key, name, n, seed, part)
        )
        return PointResult(values, diverged)

    def seconds(system: OnlineICA, n: int | None, last: float) -> float:
        assert n is not None
        return 2e-4 + n * last * (4.2e-9 * n if name == "vector" else 4e-8) + 5e-8 * n

    return Method(
        name=name,
        stochastic=True,
        accuracy="exact" if name == "vector" else "exact in law",
        outputs=(_OVERLAP, _ENERGY),
        run=run,
        coords=lambda times: {"time": times},
        refuses=(lambda system: "") if name == "vector" else lambda s: chain_refusal(rule(s)),
        seconds=seconds,
        equations=(
            "Wang and Lu 2017, eq. (1)-(2), all n coordinates"
            if name == "vector"
            else "Wang and Lu 2017, eq. (1)-(2), reduced exactly in law to the overlap"
        ),
        kernel=KERNEL_VERSION,
    )


def _run_ode(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    law, begin = prior(system), start(system)
    path = solve(drift(system), schedule(system), begin.overlap(law), begin.spread(law), times)
    beta = formula(system, "regularizer").slope_if_linear or 0.0
    return PointResult(
        {
            "Q": path.q,
            "R": np.full(times.size, beta),
            "Q_error": path.error,
            "Q_control": path.control,
            "Q_sd": path.spread,
        }
    )


ODE = Method(
    name="ode",
    stochastic=False,
    accuracy="converged",
    outputs=(
        _OVERLAP,
        _ENERGY,
        Output("Q_error", ("time",), "error of Q, from a run with 100 times finer tolerance"),
        Output("Q_control", ("time",), "overlap with the drift wrong by 2 % (negative control)"),
        Output("Q_sd", ("time",), "limit of sqrt(n) times the standard deviation of Q"),
    ),
    run=_run_ode,
    coords=lambda times: {"time": times},
    refuses=limit_refusal,
    seconds=lambda system, n, last: 6e-3,
    equations=(
        "Wang and Lu 2017, dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2 below (11), with the sign of "
        "G corrected; Dormand-Prince 8(5,3), tolerance 1e-12"
    ),
    kernel=KERNEL_VERSION,
)


def _constant_tau(system: OnlineICA) -> float:
    tau = schedule(system).constant
    if tau is None:
        raise HdicaError(
            f"tau = {system.tau!r} is not allowed for fixed points (a constant step size)"
        )
    return tau


def _steady_refusal(system: OnlineICA) -> str:
    try:
        _constant_tau(system)
    except HdicaError as exc:
        return str(exc)
    return limit_refusal(system)


def _padded(values: Array, size: int, what: str) -> Array:
    if values.size > size:
        raise HdicaError(f"{values.size} {what} were found, more than the {size} a store holds")
    return np.concatenate([values, np.full(size - values.size, np.nan)])


def _run_fixed_points(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    found = find_fixed_points(drift(system), _constant_tau(system))
    beta = formula(system, "regularizer").slope_if_linear or 0.0
    columns = {"Q": found.q, "R": np.full(found.q.size, beta), "stable": found.stable.astype(float)}
    return PointResult(
        {k: _padded(v, MAX_FIXED_POINTS, "fixed points") for k, v in columns.items()}
    )


FIXED_POINTS = Method(
    name="fixed_points",
    stochastic=False,
    accuracy="converged",
    outputs=(
        Output("Q", ("fixed_point",), "overlap Q at the fixed point"),
        Output("R", ("fixed_point",), "R at the fixed point"),
        Output("stable", ("fixed_point",), "1 if stable, 0 if unstable"),
    ),
    run=_run_fixed_points,
    coords=lambda times: {"fixed_point": np.arange(MAX_FIXED_POINTS)},
    refuses=_steady_refusal,
    seconds=lambda system, n, last: 5e-4,
    ignores=frozenset({"start", "prior"}),
    equations="Wang and Lu 2017, roots of the right-hand side below (11)",
    kernel=KERNEL_VERSION,
)


def folds(system: OnlineICA) -> tuple[Folds, Array]:
    """Critical step sizes, and the error of each.

    Mirror images (Q and -Q at one step size, for odd f) are reported once, with Q > 0. The
    error is the difference to T(Q) by quadrature with twice the nodes, at the same Q.
    """
    found = find_folds(drift(system))
    f, law = formula(system, "nonlinearity"), source(system)
    kept = [
        i
        for i, (tau, q) in enumerate(zip(found.tau, found.q, strict=True))
        if q > 0 or not np.any(np.isclose(found.q, -q, atol=1e-7) & np.isclose(found.tau, tau))
    ]
    tau, q = found.tau[kept], found.q[kept]
    return Folds(tau, q), np.array([_fold_error(f, law, t, x) for t, x in zip(tau, q, strict=True)])


@lru_cache(maxsize=256)
def _fold_error(f, law, tau: float, q: float) -> float:  # type: ignore[no-untyped-def]
    top = -2 * (1 - q * q) * gain_at(f, law, float(q), 240)
    again = top / (q * power_at(f, law, float(q), 240))
    return abs(again - tau) + 4 * float(np.finfo(float).eps) * tau


def _run_critical(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    found, error = folds(system)
    columns = {"value": found.tau, "Q": found.q, "error": error}
    return PointResult({k: _padded(v, MAX_TRANSITIONS, "folds") for k, v in columns.items()})


CRITICAL = Method(
    name="critical",
    stochastic=False,
    accuracy="converged",
    outputs=(
        Output("value", ("transition",), "critical step size tau_c of a fold"),
        Output("Q", ("transition",), "overlap at the fold"),
        Output("error", ("transition",), "error of the critical step size"),
    ),
    run=_run_critical,
    coords=lambda times: {"transition": np.arange(MAX_TRANSITIONS)},
    refuses=limit_refusal,
    seconds=lambda system, n, last: 2e-2,
    ignores=frozenset({"tau", "start", "prior"}),
    equations="extrema of tau = -2 (1 - Q^2) (G/tau)/(Q Lambda/tau^2) over Q",
    kernel=KERNEL_VERSION,
)


def _flow_grid(times: Array) -> dict[str, Array]:
    return {"q": np.linspace(0.0, 1.0, FLOW_POINTS)}


def _run_drift(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    tau = _constant_tau(system)
    overlap = np.sqrt(_flow_grid(times)["q"])
    return PointResult({"drift": 2 * overlap * drift(system).at(overlap, tau) / tau})


DRIFT = Method(
    name="drift",
    stochastic=False,
    accuracy="exact",
    outputs=(Output("drift", ("q",), "g(q) = (1/tau) dq/dt with q = Q^2, on the branch Q > 0"),),
    run=_run_drift,
    coords=_flow_grid,
    refuses=_steady_refusal,
    seconds=lambda system, n, last: 2e-4,
    ignores=frozenset({"start", "prior"}),
    equations="Wang and Lu 2017, right-hand side of (14) for any f",
    kernel=KERNEL_VERSION,
)

METHODS = {
    m.name: m
    for m in (_simulation("vector"), _simulation("chain"), ODE, FIXED_POINTS, CRITICAL, DRIFT)
}
