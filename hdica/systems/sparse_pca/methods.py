"""The ways to compute online sparse PCA: simulations at finite n, the limit, its steady states."""

from __future__ import annotations

import numpy as np

from hdica.systems.fields import closed_refusal, prior, resting_refusal, schedule, start
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    OVERLAP,
    PROJECTED,
    About,
    Cost,
    Limit,
    Outputs,
    Refuses,
    Role,
    Scope,
    Simulation,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.projected.best_step import best_step_method
from hdica.systems.projected.collapse import steady_method
from hdica.systems.projected.density import particles, pde
from hdica.systems.projected.entries import entries
from hdica.systems.projected.normal import ornstein_uhlenbeck
from hdica.systems.projected.overlap import closed_states, ode
from hdica.systems.projected.simulation import OWN, TRAJECTORY, chain, vector
from hdica.systems.projected.steady import branch_points, critical, fixed_points, staying
from hdica.systems.projected.stream import given_data, streams
from hdica.systems.sparse_pca.penalised import penalty_of, run_penalised
from hdica.systems.sparse_pca.rule import oja_chain_refusal
from hdica.systems.sparse_pca.sample_pca import run_sample_pca, sample_pca_overlap
from hdica.systems.sparse_pca.system import (
    SparsePCA,
    beyond,
    constant_omega,
    drift,
    mean_field,
    moving,
    oja_overlap,
    on_data,
    rule,
    second,
    signal,
)
from hdica.systems.system import Control
from hdica.systems.trials import seeded

_PAPER = "Wang and Lu 2016"
_STEADY = f"{_PAPER}, eq. (16)-(20)"


def _closed_path(system: SparsePCA, times: Array) -> Array | None:
    """Q of Oja's method in closed form, for a constant step size."""
    tau, omega = schedule(system).constant, signal(system).constant
    if tau is None or omega is None:
        return None
    # An update of a batch is as m updates of single samples of step size tau/m.
    m, begin = system.batch, start(system).overlap(prior(system))
    return oja_overlap(begin, tau / m, omega, m * times)


_VARIES: Refuses[SparsePCA] = refusal(constant_omega)
"""Why what needs a constant signal does not exist; empty if it does."""


def _baseline_refusal(system: SparsePCA) -> str:
    """Empty if the signal is constant and the feature stays, else the sentence that says so."""
    return resting_refusal(system, "what is found from all samples at once") or _VARIES(system)


OMEGA = Control("omega", 1e-3, 100.0)
_BATCH = frozenset({"tau", "start", "regularizer", "variant", "constants"})
SAMPLE_PCA = Simulation[SparsePCA](
    name="sample_pca",
    role=Role.BASELINE,
    about=About(
        text="the batch baseline: the leading sample eigenvector",
        accuracy="exact",
        equations="leading eigenvector of the sample covariance of the first t n samples, with a "
        "batch m t n",
        engines=(*PROJECTED, OWN, __package__),
    ),
    outputs=Outputs(TRAJECTORY[:1]),
    cost=Cost(
        seconds=lambda system, n, last: 1e-3 + 1e-10 * (n or 1) ** 3 * (1 + last * system.batch),
        memory=lambda system, n: 2 * (n or 0) ** 2,
    ),
    scope=Scope(refuses=_baseline_refusal, ignores=_BATCH),
    run=seeded(
        "sample_pca",
        lambda system, times, n, stream, save: run_sample_pca(rule(system), times, n, stream),
        without=_BATCH,
    ),
)
SAMPLE_PCA_LIMIT = Limit[SparsePCA](
    name="sample_pca_limit",
    role=Role.BASELINE,
    about=About(
        text="its overlap as n → ∞",
        accuracy="exact",
        equations="overlap of the leading sample eigenvector of a spiked covariance (Paul 2007)",
        engines=(*COMMON, __package__),
    ),
    outputs=Outputs(TRAJECTORY[:1]),
    cost=Cost(seconds=lambda system, n, last: 1e-5),
    scope=Scope(refuses=_baseline_refusal, ignores=_BATCH | {"prior"}),
    run=lambda system, times, n, seed, save: PointResult(
        {"Q": np.asarray(sample_pca_overlap(constant_omega(system), system.batch * times))}
    ),
)
_OFFLINE = frozenset({"start", "variant"})
_unpenalised: Refuses[SparsePCA] = refusal(lambda system: penalty_of(rule(system)))
"""Empty if the regularizer is a penalty, else why not."""
PENALISED_PCA = Simulation[SparsePCA](
    name="penalised_pca",
    role=Role.BASELINE,
    about=About(
        text="the offline problem (7): penalised PCA of the samples so far (a·sign(x) + b·x)",
        accuracy="approximate",
        equations=f"{_PAPER}, eq. (7) with Phi' = phi/tau and the covariance of the first t n "
        "samples; soft thresholded power iterations (Luss and Teboulle 2013), the best of five "
        "starts",
        engines=(*PROJECTED, OWN, __package__),
    ),
    outputs=Outputs(
        (
            TRAJECTORY[0],
            Output("objective", ("time",), "(-x'S x/2 + sum of Phi(x_i))/n at the solution"),
            Output("residual", ("time",), "departure from the conditions of a stationary point"),
            Output("nonzero", ("time",), "share of entries of the solution that are not 0"),
        )
    ),
    cost=Cost(
        seconds=lambda system, n, last: (
            5e-3 + 1e-6 * (n or 1) ** 2 + 1e-10 * (n or 1) ** 3 * (1 + last)
        ),
        memory=lambda system, n: 2 * (n or 0) ** 2,
    ),
    scope=Scope(
        refuses=lambda system: _baseline_refusal(system) or _unpenalised(system),
        ignores=_OFFLINE,
    ),
    run=seeded(
        "penalised_pca",
        lambda system, times, n, stream, save: run_penalised(rule(system), times, n, stream),
        without=_OFFLINE,
    ),
)

METHODS = (
    *given_data(
        (
            vector(lambda system: rule(system).vector, f"{_PAPER}, eq. (1), (5), (6)"),
            chain(
                lambda system: rule(system).chain,
                lambda system: oja_chain_refusal(rule(system)),
                f"{_PAPER}, eq. (1), (5) with phi = 0",
            ),
            ode(
                drift,
                closed_refusal,
                f"{_PAPER}, closed form (14); for a varying step size its equation, "
                "Dormand-Prince 8(5,3), tolerance 1e-12",
                _closed_path,
                moving=moving,
                second=second,
            ),
            pde(mean_field, f"{_PAPER}, eq. (8)-(13)", beyond=beyond),
            ornstein_uhlenbeck(
                mean_field, closed_refusal, f"{_PAPER}, eq. (8)-(14) for phi = 0", (AVERAGES,)
            ),
            particles(mean_field, f"{_PAPER}, the process behind eq. (11), self-consistent"),
            entries(mean_field, f"{_PAPER}, the process behind eq. (11), its entries uncoupled"),
            fixed_points(
                mean_field, _STEADY, closed_states(drift, mean_field), _VARIES, (OVERLAP,)
            ),
            branch_points(mean_field, OMEGA, f"{_STEADY}, continued in omega", _VARIES),
            critical(
                mean_field,
                OMEGA,
                f"{_STEADY}, continued in omega",
                without_limit=lambda system: _VARIES(system) or staying(system),
            ),
            best_step_method(drift, _STEADY, (OVERLAP,), _VARIES),
            steady_method(
                drift,
                second,
                f"{_PAPER}, drift of (14) and its central limit theorem",
                without_limit=_VARIES,
            ),
            SAMPLE_PCA,
            SAMPLE_PCA_LIMIT,
            PENALISED_PCA,
        )
    ),
    *streams(on_data, f"{_PAPER}, eq. (5), (6)", frozenset({"omega"})),
)
