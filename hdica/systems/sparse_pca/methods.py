"""The ways to compute online sparse PCA, and what its results say where it learns nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.systems.fields import closed_refusal, motion, prior, resting_refusal, schedule, start
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
from hdica.systems.outputs import ZERO, Array, Output, PointResult
from hdica.systems.projected.assumed import data_notes
from hdica.systems.projected.best_step import best_step_method
from hdica.systems.projected.collapse import steady_method
from hdica.systems.projected.density import particles, pde
from hdica.systems.projected.entries import entries
from hdica.systems.projected.learning import BEGIN, searched, untracked
from hdica.systems.projected.normal import ornstein_uhlenbeck
from hdica.systems.projected.overlap import closed_states, ode
from hdica.systems.projected.simulation import OWN, TRAJECTORY, chain, vector
from hdica.systems.projected.steady import branch_points, critical, fixed_points, staying
from hdica.systems.projected.stream import given_data, streams
from hdica.systems.sparse_pca.baselines import (
    penalty_of,
    run_penalised,
    run_sample_pca,
    sample_pca_overlap,
)
from hdica.systems.sparse_pca.rule import oja_chain_refusal
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
from hdica.systems.system import Control, Notes
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
Mask = NDArray[np.bool_]


def _least(system: SparsePCA, tau: float) -> float:
    """The omega up to which Oja's method learns nothing."""
    return tau / (2 * int(system.batch))


def _stays(system: SparsePCA) -> str:
    """That a limit which starts at Q = 0 stays there, and what to do."""
    lead = (
        "the start has overlap 0, as a random one has as n grows, and the limit stays at Q = 0 for "
        "ever on this scale of time (t = k/n); Theorem 1 of Wang and Lu 2016 asks for Q_0 other "
        f"than 0: {BEGIN}"
    )
    tau, omega = schedule(system).constant, signal(system).constant
    if tau is None or omega is None or closed_refusal(system):
        return lead
    if omega > _least(system, tau):
        grows = tau * (omega - _least(system, tau))
        return f"{lead}; at finite n noise of order n^-1/2 grows like exp({grows:.3g} t)"
    return lead


def _weak(system: SparsePCA) -> str:
    """That the signal is too weak for Oja's method; empty if it is not."""
    tau, omega = schedule(system).constant, signal(system).constant
    if omega == 0:
        return "omega = 0 leaves nothing to learn: take omega > 0"
    if motion(system).moves or tau is None or omega is None or closed_refusal(system):
        return ""
    if omega > _least(system, tau):
        return ""
    m = system.batch
    half, twice = ("tau/2", "2") if m == 1 else (f"tau/{2 * m}", f"{2 * m}")
    return (
        f"omega = {omega:g} is at most {half} = {_least(system, tau):g}, so Q falls to 0 "
        f"from every start: take tau < {twice} omega"
    )


def _limit(system: SparsePCA, values: Mapping[str, Array], times: Array) -> str:
    still = np.abs(values["Q"]).max() <= ZERO
    return _stays(system) if still else _weak(system)


def _states(system: SparsePCA, overlap: Array, stable: Mask, informative: Mask) -> str:
    if np.any(stable & informative):
        return ""
    if motion(system).moves:
        return untracked(system)
    return _weak(system) or (
        "no informative state was found to be stable: take a smaller step size, a weaker "
        "regularizer or a larger omega"
    )


def _transitions(
    system: SparsePCA, parameter: str, overlap: Array, ends: tuple[float, float] | None
) -> str:
    if overlap.size:
        return ""
    if signal(system).constant == 0 and parameter == "tau":
        return _weak(system)
    return searched(parameter, ends)


NOTES = Notes(
    _limit,
    _states,
    _transitions,
    data=data_notes(
        1,
        "subtract the mean of every column and divide by the standard deviation of the noise (not "
        "hdica.whiten, which leaves no principal component)",
    ),
)
