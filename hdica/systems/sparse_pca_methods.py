"""The ways to compute online sparse PCA: simulations at finite n, the limit, its steady states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.pca import oja_chain_refusal, run_oja_chain, run_pca_vector
from hdica.finite.sample_pca import run_sample_pca
from hdica.finite.streams import point_stream
from hdica.ingredients.save import Save
from hdica.limits.fixed_points import find_fixed_points
from hdica.limits.overlap import solve
from hdica.limits.sample_pca import sample_pca_overlap
from hdica.systems.density_methods import particles, pde
from hdica.systems.fields import constant_tau, formula, prior, schedule, start
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method, Output, PointResult
from hdica.systems.sparse_pca import (
    SparsePCA,
    drift,
    mean_field,
    oja_overlap,
    overlap_refusal,
    rule,
)
from hdica.systems.steady_methods import branch_points, critical, fixed_points

Array = NDArray[np.float64]
_OVERLAP = Output("Q", ("time",), "overlap Q = xi.x/n, the cosine of estimate and feature")
_ENERGY = Output("R", ("time",), "R, the mean of x phi(x)")
_PAPER = "Wang and Lu 2016"
ROUNDING = 1e-14


def content(system: SparsePCA) -> dict[str, object]:
    """The system as plain data: what its numbers, and so its random streams, depend on."""
    return {"system": "SparsePCA", **system.model_dump(mode="json", exclude_defaults=True)}


def _run_vector(
    system: SparsePCA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    assert seed is not None
    key = content(system)
    values, diverged = run_pca_vector(
        rule(system), times, n, lambda part: point_stream(key, "vector", n, seed, part), save
    )
    return PointResult(values, diverged)


VECTOR = Method(
    name="vector",
    stochastic=True,
    accuracy="exact",
    outputs=(
        _OVERLAP,
        _ENERGY,
        Output("largest", ("time",), "share of |x|^2 on the largest entry of the estimate"),
    ),
    run=_run_vector,
    coords=lambda times: {"time": times},
    refuses=lambda system: "",
    seconds=lambda system, n, last: 2e-4 + 5e-9 * (n or 1) ** 2 * last + 5e-8 * (n or 1),
    equations=f"{_PAPER}, eq. (1), (5), (6), all n coordinates",
    kernel=KERNEL_VERSION,
    keeps=frozenset({"densities", "support", "functionals"}),
)


def _run_chain(
    system: SparsePCA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    assert seed is not None
    key = content(system)
    values, diverged = run_oja_chain(
        rule(system), times, n, lambda part: point_stream(key, "chain", n, seed, part)
    )
    return PointResult(values, diverged)


CHAIN = Method(
    name="chain",
    stochastic=True,
    accuracy="exact in law",
    outputs=(_OVERLAP, _ENERGY),
    run=_run_chain,
    coords=lambda times: {"time": times},
    refuses=lambda system: oja_chain_refusal(rule(system)),
    seconds=lambda system, n, last: 2e-4 + 4e-8 * (n or 1) * last + 5e-8 * (n or 1),
    equations=f"{_PAPER}, eq. (1), (5) with phi = 0, reduced exactly in law to the overlap",
    kernel=KERNEL_VERSION,
)


def _run_ode(
    system: SparsePCA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    law, begin, steps = prior(system), start(system), schedule(system)
    path = solve(drift(system), steps, begin.overlap(law), begin.spread(law), times)
    q, error = path.q, path.error
    if steps.constant is not None:
        q = oja_overlap(begin.overlap(law), steps.constant, system.omega, times)
        error = np.full(times.size, ROUNDING)
    beta = formula(system, "regularizer").slope_if_linear or 0.0
    return PointResult(
        {
            "Q": q,
            "R": np.full(times.size, beta),
            "Q_error": error,
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
        Output("Q_error", ("time",), "error of Q: rounding in closed form, else the solver's"),
        Output("Q_control", ("time",), "overlap with the drift wrong by 2 % (negative control)"),
        Output("Q_sd", ("time",), "limit of sqrt(n) times the standard deviation of Q"),
    ),
    run=_run_ode,
    coords=lambda times: {"time": times},
    refuses=overlap_refusal,
    seconds=lambda system, n, last: 6e-3,
    equations=f"{_PAPER}, closed form (14); for a varying step size its ODE, Dormand-Prince 8(5,3)",
    kernel=KERNEL_VERSION,
)


_IGNORED = frozenset({"tau", "start", "regularizer", "variant", "constants"})


def _run_sample_pca(
    system: SparsePCA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    assert seed is not None
    # What the result does not depend on must not choose its random numbers either.
    key = {k: v for k, v in content(system).items() if k not in _IGNORED}
    values, diverged = run_sample_pca(
        rule(system), times, n, lambda part: point_stream(key, "sample_pca", n, seed, part)
    )
    return PointResult(values, diverged)


SAMPLE_PCA = Method(
    name="sample_pca",
    stochastic=True,
    accuracy="exact",
    outputs=(_OVERLAP,),
    run=_run_sample_pca,
    coords=lambda times: {"time": times},
    refuses=lambda system: "",
    seconds=lambda system, n, last: 1e-3 + 1e-10 * (n or 1) ** 3 * (1 + last),
    ignores=_IGNORED,
    equations="leading eigenvector of the sample covariance of the first t n samples",
    kernel=KERNEL_VERSION,
)
SAMPLE_PCA_LIMIT = Method(
    name="sample_pca_limit",
    stochastic=False,
    accuracy="exact",
    outputs=(_OVERLAP,),
    run=lambda system, times, n, seed, save: PointResult(
        {"Q": np.asarray(sample_pca_overlap(system.omega, times))}
    ),
    coords=lambda times: {"time": times},
    refuses=lambda system: "",
    seconds=lambda system, n, last: 1e-5,
    ignores=_IGNORED | {"prior"},
    equations="overlap of the leading sample eigenvector of a spiked covariance (Paul 2007)",
    kernel=KERNEL_VERSION,
)


def _closed_states(system: SparsePCA) -> dict[str, Array] | None:
    """Steady states of Oja's method, from the roots of its drift."""
    beta = formula(system, "regularizer").slope_if_linear
    if beta is None:
        return None
    tau = constant_tau(system)
    found, field = find_fixed_points(drift(system), tau), mean_field(system)
    h = [field.curvature(float(q), beta, tau) / 2 for q in found.q]
    return {
        "Q": found.q,
        "R": np.full(found.q.size, beta),
        "h": np.array(h),
        "bulk": np.ones(found.q.size),
        "stable": found.stable.astype(float),
        "kind": np.where(np.abs(found.q) < 1e-6, 1.0, 0.0),
    }


def _no_closed_form(system: Any) -> None:
    return None


METHODS = {
    m.name: m
    for m in (
        VECTOR,
        CHAIN,
        ODE,
        pde(mean_field, f"{_PAPER}, eq. (8)-(13)"),
        particles(mean_field, content, f"{_PAPER}, the process behind eq. (11), self-consistent"),
        fixed_points(mean_field, f"{_PAPER}, eq. (16)-(20)", _closed_states),
        branch_points(mean_field, "omega", f"{_PAPER}, eq. (16)-(20), continued in omega"),
        critical(
            mean_field, "omega", f"{_PAPER}, eq. (16)-(20), continued in omega", _no_closed_form
        ),
        SAMPLE_PCA,
        SAMPLE_PCA_LIMIT,
    )
}
