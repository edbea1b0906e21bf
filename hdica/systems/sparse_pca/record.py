"""Online sparse PCA as the rest of hdica knows it: its methods, and why it learns nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream
from hdica.systems import method
from hdica.systems.fields import (
    closed_refusal,
    motion,
    noise_refusal,
    prior,
    resting_refusal,
    schedule,
    start,
)
from hdica.systems.method import ZERO, Array, Output, PointResult
from hdica.systems.projected import family
from hdica.systems.projected.best_step import best_step_method
from hdica.systems.projected.collapse import steady_method
from hdica.systems.projected.density import ornstein_uhlenbeck, pde
from hdica.systems.projected.entries import entries, particles
from hdica.systems.projected.learning import BEGIN, searched, untracked
from hdica.systems.projected.overlap import closed_states, ode
from hdica.systems.projected.simulation import OWN, TRAJECTORY, chain, vector
from hdica.systems.projected.steady import branch_points, critical, fixed_points, staying
from hdica.systems.projected.stream import SAMPLES_TO_TRY, data_notes, of_model, streams
from hdica.systems.sparse_pca import system as pca
from hdica.systems.sparse_pca.baselines import (
    penalty_of,
    run_penalised,
    run_sample_pca,
    sample_pca_overlap,
)
from hdica.systems.sparse_pca.bayes import Components, known, overlaps, run_message_passing
from hdica.systems.sparse_pca.rule import PCARule, oja_chain_refusal
from hdica.systems.sparse_pca.system import SparsePCA
from hdica.systems.system import Control, Notes, Symbol, System, in_words, work
from hdica.systems.trials import seeded

_PAPER = "Wang and Lu 2016"
_STEADY = f"{_PAPER}, eq. (16)-(20)"


def _closed_path(system: SparsePCA, times: Array) -> Array | None:
    """Q of Oja's method in closed form, for a constant step size."""
    tau, omega = schedule(system).constant, pca.signal(system).constant
    if tau is None or omega is None:
        return None
    # An update of a batch is as m updates of single samples of step size tau/m.
    m, begin = system.batch, start(system).overlap(prior(system))
    return pca.oja_overlap(begin, tau / m, omega, m * times)


_VARIES: method.Refuses[SparsePCA] = method.refusal(pca.constant_omega)
"""Why what needs a constant signal does not exist; empty if it does."""


def _baseline_refusal(system: SparsePCA) -> str:
    """Empty if the signal is constant and the feature stays, else the sentence that says so."""
    return resting_refusal(system, "what is found from all samples at once") or _VARIES(system)


OMEGA = Control("omega", 1e-3, 100.0)
_BATCH = frozenset({"tau", "start", "regularizer", "variant", "constants"})


def _offline(
    name: str,
    about: tuple[str, str, str],
    compute: Callable[[PCARule, Array, int, Stream], tuple[dict[str, Array], str]],
    cost: method.Cost[SparsePCA],
    refuses: method.Refuses[SparsePCA] = _baseline_refusal,
    ignores: frozenset[str] = _BATCH,
    outputs: tuple[Output, ...] = TRAJECTORY[:1],
) -> method.Simulation[SparsePCA]:
    """A baseline that has all samples so far at once; ``about`` is text, accuracy and equations."""
    text, accuracy, equations = about
    return method.Simulation[SparsePCA](
        name=name,
        role=method.Role.BASELINE,
        about=method.About(
            text=text,
            accuracy=accuracy,
            equations=equations,
            engines=(*method.PROJECTED, OWN, __package__),
        ),
        outputs=method.Outputs(outputs),
        cost=cost,
        scope=method.Scope(refuses=refuses, ignores=ignores),
        run=seeded(
            name,
            lambda system, times, n, stream, save: compute(pca.rule(system), times, n, stream),
            without=ignores,
        ),
    )


SAMPLE_PCA = _offline(
    "sample_pca",
    (
        "the batch baseline: the leading sample eigenvector",
        "exact",
        "leading eigenvector of the sample covariance of the first t n samples, with a batch m t n",
    ),
    run_sample_pca,
    method.Cost(
        seconds=lambda system, n, last: 1e-3 + 1e-10 * (n or 1) ** 3 * (1 + last * system.batch),
        memory=lambda system, n, last: 2 * (n or 0) ** 2,
    ),
)
SAMPLE_PCA_LIMIT = method.Limit[SparsePCA](
    name="sample_pca_limit",
    role=method.Role.BASELINE,
    about=method.About(
        text="its overlap as n → ∞",
        accuracy="exact",
        equations="overlap of the leading sample eigenvector of a spiked covariance (Paul 2007)",
        engines=(*method.COMMON, __package__),
    ),
    outputs=method.Outputs(TRAJECTORY[:1]),
    cost=method.Cost(seconds=lambda system, n, last: 1e-5),
    scope=method.Scope(refuses=_baseline_refusal, ignores=_BATCH | {"prior"}),
    run=lambda system, times, n, seed, save: PointResult(
        {"Q": np.asarray(sample_pca_overlap(pca.constant_omega(system), system.batch * times))}
    ),
)
_unknown: method.Refuses[SparsePCA] = method.refusal(lambda system: Components.of(prior(system)))
"""Empty if the posterior of the feature is known, else why not."""


def _bayes_refusal(system: SparsePCA) -> str:
    why = noise_refusal(system, "the posterior of the feature")
    return why or _baseline_refusal(system) or _unknown(system)


def _bayes(system: SparsePCA, times: Array) -> PointResult:
    components, omega = Components.of(prior(system)), pca.constant_omega(system)
    seen = (system.batch * times).tolist()
    best, reached, error = np.array([known(components, omega, t) for t in seen]).T
    wrong = np.array([overlaps(components, 1.02 * omega, t)[0] for t in seen])
    values = {"Q": best, "Q_reached": reached, "Q_error": error, "Q_control": wrong}
    return PointResult(values)


BAYES = method.Limit[SparsePCA](
    name="bayes",
    role=method.Role.BASELINE,
    about=method.About(
        text="the most that is known: the overlap of the posterior mean, as n → ∞",
        accuracy="converged",
        equations="state evolution of the posterior and its free entropy (Deshpande and Montanari "
        "2014; Lesieur, Krzakala and Zdeborova 2017), and what message passing reaches",
        engines=(*method.COMMON, __package__),
        remark="The posterior is the optimum as n → ∞: no estimate from as many samples has a "
        "larger overlap, and no other line is called optimal.",
    ),
    outputs=method.Outputs(
        (
            TRAJECTORY[0],
            Output("Q_reached", ("time",), "overlap that message passing reaches"),
            Output("Q_error", ("time",), "error of both overlaps"),
            Output("Q_control", ("time",), "overlap of a signal 2 % too strong (control)"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 4.0),
    scope=method.Scope(refuses=_bayes_refusal, ignores=_BATCH),
    run=lambda system, times, n, seed, save: _bayes(system, times),
)
MESSAGE_PASSING = _offline(
    "message_passing",
    (
        "the posterior mean of the samples so far, by approximate message passing",
        "approximate",
        "approximate message passing with its terms of reaction, from the mean of the prior "
        "(Deshpande and Montanari 2014), of the first t n samples, with a batch m t n",
    ),
    run_message_passing,
    method.Cost(
        seconds=lambda system, n, last: 1e-2 + 1e-7 * (n or 1) ** 2 * (1 + last * system.batch),
        memory=lambda system, n, last: int(2 * (n or 0) ** 2 * (1 + last * system.batch)),
    ),
    _bayes_refusal,
)
_unpenalised: method.Refuses[SparsePCA] = method.refusal(
    lambda system: penalty_of(pca.rule(system))
)
"""Empty if the regularizer is a penalty, else why not."""
PENALISED_PCA = _offline(
    "penalised_pca",
    (
        "the offline problem (7): penalised PCA of the samples so far (a·sign(x) + b·x)",
        "approximate",
        f"{_PAPER}, eq. (7) with Phi' = phi/tau and the covariance of the first t n samples; soft "
        "thresholded power iterations (Luss and Teboulle 2013), the best of five starts",
    ),
    run_penalised,
    method.Cost(
        seconds=lambda system, n, last: (
            5e-3 + 1e-6 * (n or 1) ** 2 + 1e-10 * (n or 1) ** 3 * (1 + last)
        ),
        memory=lambda system, n, last: 2 * (n or 0) ** 2,
    ),
    lambda system: _baseline_refusal(system) or _unpenalised(system),
    frozenset({"start", "variant"}),
    (
        TRAJECTORY[0],
        Output("objective", ("time",), "(-x'S x/2 + sum of Phi(x_i))/n at the solution"),
        Output("residual", ("time",), "departure from the conditions of a stationary point"),
        Output("nonzero", ("time",), "share of entries of the solution that are not 0"),
    ),
)
METHODS = (
    *of_model(
        (
            vector(lambda system: pca.rule(system).vector, f"{_PAPER}, eq. (1), (5), (6)"),
            chain(
                lambda system: pca.rule(system).chain,
                lambda system: oja_chain_refusal(pca.rule(system)),
                f"{_PAPER}, eq. (1), (5) with phi = 0",
            ),
            ode(
                pca.drift,
                closed_refusal,
                f"{_PAPER}, closed form (14); for a varying step size its equation, "
                "Dormand-Prince 8(5,3), tolerance 1e-12",
                _closed_path,
                moving=pca.moving,
                second=pca.second,
                steps=pca.steps,
            ),
            pde(pca.mean_field, f"{_PAPER}, eq. (8)-(13)", beyond=pca.beyond),
            ornstein_uhlenbeck(
                pca.mean_field,
                closed_refusal,
                f"{_PAPER}, eq. (8)-(14) for phi = 0",
            ),
            particles(pca.mean_field, f"{_PAPER}, the process behind eq. (11), self-consistent"),
            entries(
                pca.mean_field, f"{_PAPER}, the process behind eq. (11), its entries uncoupled"
            ),
            fixed_points(
                pca.mean_field,
                _STEADY,
                closed_states(pca.drift, pca.mean_field),
                _VARIES,
                (method.OVERLAP,),
            ),
            branch_points(pca.mean_field, OMEGA, f"{_STEADY}, continued in omega", _VARIES),
            critical(
                pca.mean_field,
                OMEGA,
                f"{_STEADY}, continued in omega",
                without_limit=lambda system: _VARIES(system) or staying(system),
            ),
            best_step_method(pca.drift, _STEADY, (method.OVERLAP,), _VARIES),
            steady_method(
                pca.drift,
                pca.second,
                f"{_PAPER}, drift of (14) and its central limit theorem",
                without_limit=_VARIES,
            ),
            SAMPLE_PCA,
            SAMPLE_PCA_LIMIT,
            PENALISED_PCA,
            BAYES,
            MESSAGE_PASSING,
        )
    ),
    *streams(pca.rule, f"{_PAPER}, eq. (5), (6)", frozenset({"omega", "noise_law"})),
)
Mask = NDArray[np.bool_]


_STAYS = (
    "the start has overlap 0, as a random one has as n grows, and the limit stays at Q = 0 for "
    "ever on this scale of time (t = k/n); Theorem 1 of Wang and Lu 2016 asks for Q_0 other than "
    f"0: {BEGIN}"
)


def _least(system: SparsePCA) -> tuple[float, float, float] | None:
    """Step size, omega, and that up to which Oja's method learns nothing; None of what varies."""
    tau, omega = schedule(system).constant, pca.signal(system).constant
    if tau is None or omega is None or closed_refusal(system):
        return None
    return tau, omega, tau / (2 * int(system.batch))


def _weak(system: SparsePCA) -> str:
    """That the signal is too weak for Oja's method; empty if it is not."""
    if pca.signal(system).constant == 0:
        return "omega = 0 leaves nothing to learn: take omega > 0"
    oja, m = _least(system), system.batch
    if motion(system).moves or oja is None or oja[1] > oja[2]:
        return ""
    half, twice = ("tau/2", "2") if m == 1 else (f"tau/{2 * m}", f"{2 * m}")
    return (
        f"omega = {oja[1]:g} is at most {half} = {oja[2]:g}, so Q falls to 0 from every start: "
        f"take tau < {twice} omega"
    )


def _limit(system: SparsePCA, values: Mapping[str, Array], times: Array) -> str:
    if np.abs(values["Q"]).max() > ZERO:
        return _weak(system)
    oja = _least(system)
    if oja is None or oja[1] <= oja[2]:
        return _STAYS
    grows = oja[0] * (oja[1] - oja[2])
    return f"{_STAYS}; at finite n noise of order n^-1/2 grows like exp({grows:.3g} t)"


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
    if pca.signal(system).constant == 0 and parameter == "tau":
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


__all__ = ["SYSTEM", "SparsePCA"]

SYSTEM = System(
    parameters=SparsePCA,
    title="Online sparse PCA of the spiked covariance model",
    short="online sparse PCA",
    papers=(work("Wang and Lu 2016"),),
    order_parameters=(family.OVERLAP, family.PENALTY),
    controls=(family.TAU, OMEGA, family.RHO),
    dimensions=(family.FEATURE, family.GROUP, family.FOLLOWED, family.COLUMN),
    symbols={
        **family.SYMBOLS,
        **in_words(
            sample_pca="sample PCA",
            sample_pca_limit="limit of sample PCA",
            penalised_pca="penalised PCA",
            bayes="posterior",
            message_passing="message passing",
            Q_reached="overlap of message passing",
            objective="objective",
            residual="residual",
            nonzero="share not 0",
        ),
        "omega_c": Symbol("ω<sub>c</sub>", r"$\omega_\mathrm{c}$", "ω_c"),
    },
    methods=METHODS,
    mean_field=pca.mean_field,
    overlap=pca.overlap,
    leaving=pca.unstable,
    functions={"best_step": "hdica.systems.projected.best_step"},
    notes=NOTES,
    examples=(
        {"tau": 0.5, "omega": 1.5, "start": {"overlap": 0.7}},
        {
            "tau": 0.5,
            "omega": 1.5,
            "regularizer": "0.1*sign(x)",
            "prior": {"sparse": 0.3},
            "start": {"overlap": 0.7},
        },
        {"tau": 0.5, **SAMPLES_TO_TRY},
        {
            "tau": 0.5,
            "omega": 1.5,
            "prior": "gaussian",
            "motion": {"exchange": 0.1},
            "start": {"overlap": 0.7},
        },
    ),
)
