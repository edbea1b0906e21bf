"""What ICA of the subspace model ends at, and how it gets there, for many samples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems import method
from hdica.systems.method import AVERAGES, COMMON, Array, Output, PointResult
from hdica.systems.subspace_ica import loss, prediction
from hdica.systems.subspace_ica import system as model
from hdica.systems.subspace_ica.loss import Flow, Loss
from hdica.systems.subspace_ica.prediction import Reduction, level, mean_square, variance
from hdica.systems.subspace_ica.system import HOME, OF_FASTICA, OF_GRADIENTS, PAPER, SubspaceICA

AT_LIMIT = (*COMMON, AVERAGES, HOME)
_AT, _EACH = ("time",), ("component",)
LEVELS = (50, 90, 99)  # overlaps, in hundredths, to which times are measured
WRONG = 1.02  # rate of the negative control


def _prediction(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """The final overlaps; in all D dimensions those of infinitely many samples alone."""
    reduced, count = reduction(system), model.samples_of(system)
    many, size = math.inf if count is None else count, model.size_of_space(system)
    law, inside = model.law(system), system.whitening == "sample"
    values: dict[str, float | Array] = {"gamma": reduced.gamma}
    if model.kind_of_space(system) == "principal":
        ends = prediction.principal(*law, reduced, many, size, inside)
        values |= {"gamma_c": reduced.gamma_c, "pca_overlap": reduced.length}
    else:
        ends = prediction.known_space(*law, system.gamma, many, size, inside)
        values |= {"gamma_c": reduced.gamma, "pca_overlap": 1.0}
    seen = count is None or model.kind_of_space(system) != "ambient"
    values |= {
        "predicted_overlap": ends.overlap if seen else math.nan,
        "predicted_correlation": ends.correlation if seen else math.nan,
        "variance": ends.variance,
        "variance_error": ends.variance_error,
        "eigenvalue": reduced.eigenvalues,
        "phi": np.sqrt(reduced.phi2),
    }
    names = [output.name for output in PREDICTION.outputs_of(save)]
    return PointResult(method.arrays(**{name: values[name] for name in names}))


def _predictable(system: SubspaceICA) -> None:
    model.only(system, "this limit", "fastica")
    check_ties(system)
    check_seen(system, 2)
    # New samples are not white in coordinates that others have whitened, and V is another one.
    estimated = system.whitening == "sample" and model.samples_of(system) is not None
    if system.batch == "fresh" and estimated:
        raise HdicaError(
            "batch = 'fresh' is not allowed for this limit with whitening = 'sample' (allowed: "
            "batch = 'all', or whitening = 'population')",
            ["batch", "whitening"],
        )


PREDICTION = method.Limit[SubspaceICA](
    name="prediction",
    role=method.Role.LIMIT,
    rank=1,
    about=method.About(
        text="overlaps at which FastICA ends if it finds the feature, as D → ∞ at fixed n/D: "
        "thresholds of the principal components, and the asymptotic variance",
        accuracy="approximate",
        equations=f"{PAPER}, Lemma 3 and Theorem 2 with the sample eigenvectors of n = D/c samples "
        "(Baik, Ben Arous and Peche 2005; Paul 2007)",
        engines=AT_LIMIT,
    ),
    outputs=method.Outputs(
        (
            Output(
                "predicted_overlap",
                (),
                "overlap with the whitened direction (none in the ambient space: NaN)",
            ),
            Output(
                "predicted_correlation",
                (),
                "correlation with the best projection (none in the ambient space: NaN)",
            ),
            Output("gamma", (), "signal-to-noise ratio of the reduced model, n = infinity"),
            Output("gamma_c", (), "signal-to-noise ratio in the space where ICA is run"),
            Output("pca_overlap", (), "length of the projection of v on the principal components"),
            Output("variance", (), "asymptotic variance V of FastICA"),
            Output("variance_error", (), "error of V, from quadrature"),
        ),
        extras=(
            Output("eigenvalue", _EACH, "limit of an eigenvalue of the sample covariance"),
            Output("phi", _EACH, "overlap of a spike with its principal component"),
        ),
    ),
    cost=method.Cost(seconds=lambda system, n, last: 3e-3 + 1e-6 * system.rank),
    scope=method.Scope(
        refuses=method.refusal(_predictable), ignores=OF_FASTICA | OF_GRADIENTS | {"start"}
    ),
    run=_prediction,
)


_OTHER = replace(PREDICTION, role=method.Role.OTHER, rank=None)


def _flow(system: SubspaceICA) -> Flow:
    """The flow of a system up (1) or down (-1) its population loss."""
    ratio, law = signal(system), model.law(system)
    sign = {"ascent": 1, "descent": -1}.get(system.direction) or loss.direction_of(*law, ratio)
    return Flow(Loss(*law, ratio), sign)


def _path(system: SubspaceICA, times: Array, *_: object) -> PointResult:
    moves, start = _flow(system), overlap_at_start(system)
    overlap, error = moves.path(start, times)
    # C of the bound, over all overlaps that the flow can come to.
    ahead = moves.speed(np.array(start)) > 0
    least = moves.least_slope(start, 1.0) if ahead else moves.least_slope(0.0, start)
    return PointResult(
        {
            "overlap": overlap,
            "overlap_error": error,
            "overlap_control": moves.path(start, WRONG * times)[0],
            "lower_bound": loss.bound(least, start, times),
        }
    )


def _flows(system: SubspaceICA) -> None:
    # A refusal of all limits shows the sentence of this last one: let it say what is amiss.
    if system.algorithm == "fastica":
        _predictable(system)
    model.only(system, "this limit", "sgd", "flow")
    overlap_at_start(system)
    check_seen(system)
    _flow(system)


FLOW = replace(
    PREDICTION,
    name="overlap_flow",
    rank=2,
    about=replace(
        PREDICTION.about,
        text="overlap as η → 0 and B, n → ∞ by the gradient flow on the population loss",
        accuracy="converged",
        equations=(
            f"{PAPER}, Theorem 4: da/dt = L'(a)(1 - a^2), with the sign that finds the feature"
        ),
    ),
    outputs=method.Outputs(
        (
            Output("overlap", _AT, "overlap with the feature of the reduced model"),
            Output("overlap_error", _AT, "error of the overlap, from the solver and the slope"),
            Output("overlap_control", _AT, "overlap with the rate wrong by 2 % (negative control)"),
            Output(
                "lower_bound", _AT, "bound tanh(Ct + artanh a0) of Theorem 4, C the least slope"
            ),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 0.5),
    scope=method.Scope(
        refuses=method.refusal(_flows), ignores=frozenset({"eta", "batch", "whitening"})
    ),
    run=_path,
    closed=True,
)


def _times(system: SubspaceICA, *_: object) -> PointResult:
    moves, start = _flow(system), overlap_at_start(system)
    ends = np.array(LEVELS) / 100
    values: dict[str, object] = {"time_order": loss.leading_time(moves.loss, start)}
    for percent, end, took, error in zip(LEVELS, ends, *moves.times(start, ends), strict=True):
        least = moves.least_slope(start, max(start, end))
        values[f"time_{percent}"], values[f"time_{percent}_error"] = took, error
        values[f"bound_{percent}"] = loss.bound_time(least, start, end)
    return PointResult(method.arrays(**values))


def _timed(system: SubspaceICA) -> None:
    _flows(system)
    start = overlap_at_start(system)
    if not 0 < start < 1:
        raise HdicaError(
            f"start.overlap = {start:g} is not allowed for a time (0 < a0 < 1: the flow rests at "
            "the ends)",
            ["start.overlap"],
        )


def _outputs(k: int) -> tuple[Output, ...]:
    """The time to an overlap in hundredths, its error and its bound."""
    to = f"time to overlap {k / 100:g}"
    return (
        Output(f"time_{k}", (), to),
        Output(f"time_{k}_error", (), f"error of the {to}"),
        Output(f"bound_{k}", (), f"bound on the {to}"),
    )


TIMES = replace(
    FLOW,
    name="recovery_time",
    role=method.Role.OTHER,
    rank=None,
    about=replace(
        FLOW.about,
        text="times of the gradient flow to overlaps 0.5, 0.9 and 0.99, and those of the bound",
    ),
    outputs=method.Outputs(
        (
            *(output for k in LEVELS for output in _outputs(k)),
            Output(
                "time_order", (), "leading order of all these times for a small overlap at first"
            ),
        )
    ),
    scope=replace(FLOW.scope, refuses=method.refusal(_timed)),
    run=_times,
    closed=False,
)


def _level(system: SubspaceICA, *_: object) -> PointResult:
    law, gamma = model.law(system), signal(system)
    size, count = model.size_of_space(system), model.samples_of(system)
    batch, eta = _steps(system)
    noise, sampling = level(*law, gamma, size, eta, batch), 0.0
    if count is not None:
        # The same samples come again and again, so that steps turn about what is best for them.
        inside = system.whitening == "sample"
        sampling = (size - 1) * variance(*law, gamma, inside)[0] / count
    relaxation = 2 * abs(Loss(*law, gamma).at(np.array(1.0)).slope)
    square = mean_square(*law, gamma)
    return PointResult(
        method.arrays(noise=noise, sampling=sampling, relaxation=relaxation, square=square)
    )


def _steps(system: SubspaceICA) -> tuple[int, float]:
    """B and eta of stochastic steps."""
    model.only(system, "this limit", "sgd")
    if not isinstance(system.batch, int) or system.eta is None:
        raise HdicaError(
            f"batch = {system.batch!r} is not allowed for the level of stochastic steps (a number "
            "of samples: all of them make no noise)",
            ["batch"],
        )
    return system.batch, system.eta


def _has_level(system: SubspaceICA) -> None:
    _steps(system)
    signal(system)
    check_seen(system, 2)


SGD_LEVEL = replace(
    _OTHER,
    name="sgd_level",
    about=replace(
        PREDICTION.about,
        text="mean of 1 − a² at which mini-batch steps of a constant size end",
        equations=f"{PAPER}, (B.5): (d - 1) eta E g^2/(2 B abs(L'(1)))",
    ),
    outputs=method.Outputs(
        (
            Output(
                "noise", (), "mean of 1 - a^2 from the noise of the batches, to first order in eta"
            ),
            Output("sampling", (), "mean of 1 - a^2 from the n samples, as they grow in number"),
            Output("relaxation", (), "rate 2 abs(L'(1)) at which 1 - a^2 falls to it"),
            Output("square", (), "E g(s)^2 at the feature"),
        )
    ),
    scope=method.Scope(
        refuses=method.refusal(_has_level),
        ignores=frozenset({"start", "direction"}),
    ),
    run=_level,
)


def _loss(system: SubspaceICA, *_: object) -> PointResult:
    law = model.law(system)
    at = Loss(*law, signal(system)).at(np.array(overlap_at_start(system)))
    exponent = loss.information_exponent(*law)
    return PointResult(
        method.arrays(
            L=at.loss,
            dL=at.slope,
            L_error=at.loss_error,
            dL_error=at.slope_error,
            exponent=math.nan if exponent is None else exponent,
        )
    )


def _has_loss(system: SubspaceICA) -> None:
    overlap_at_start(system)
    signal(system)
    loss.series(*model.law(system))


LOSS = replace(
    _OTHER,
    name="loss_at_start",
    about=replace(
        PREDICTION.about,
        text="population loss and its slope at the overlap of the start",
        accuracy="converged",
        equations=f"{PAPER}, Lemma 5 corrected, for any contrast and latent variable",
    ),
    outputs=method.Outputs(
        (
            Output("L", (), "population loss E G(w.y)"),
            Output("dL", (), "its slope in the overlap"),
            Output("L_error", (), "error of the loss"),
            Output("dL_error", (), "error of the slope"),
            Output("exponent", (), "information exponent: L(a) - L(0) ~ a^k for small a"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 0.1),
    scope=method.Scope(
        refuses=method.refusal(_has_loss),
        ignores=OF_FASTICA | OF_GRADIENTS | {"batch", "whitening", "algorithm"},
    ),
    run=_loss,
)
METHODS = (PREDICTION, FLOW, TIMES, SGD_LEVEL, LOSS)


def reduction(system: SubspaceICA) -> Reduction:
    """The reduced model with the principal components of the samples of a system."""
    count, size = model.samples_of(system), model.size_of_space(system)
    estimated = model.kind_of_space(system) == "principal" and count is not None
    c = system.dimension / count if estimated and count else 0.0
    used = size if model.kind_of_space(system) == "principal" else None
    return Reduction(model.strengths(system), model.weights(system), c, used)


def check_ties(system: SubspaceICA) -> None:
    """Refuse fewer components than spikes that do not say which spikes they are."""
    if model.kind_of_space(system) != "principal" or model.size_of_space(system) >= system.rank:
        return
    size, ordered = model.size_of_space(system), np.sort(model.strengths(system))[::-1]
    if ordered[size - 1] == ordered[size]:
        raise HdicaError(
            f"space.principal = {size} is not allowed for the limit (fewer than rank = "
            f"{system.rank}, and which spikes of equal beta are taken is up to the noise)",
            ["space.principal", "beta"],
        )


def check_seen(system: SubspaceICA, power: int = 1) -> None:
    """Refuse a contrast that does not see h, or a polynomial without the moments it needs.

    ``power`` is that of the slope of the contrast in what is averaged.
    """
    objective, law = model.law(system)
    terms = loss.series(objective, law).terms
    if all(term == 0.0 for term in terms[1:]):
        raise HdicaError(
            f"latent = {system.latent!r} is not allowed with contrast = {system.contrast!r} (the "
            "population loss does not depend on the overlap)",
            ["latent", "contrast"],
        )
    if objective.formula.coefficients is not None:
        order = power * (len(terms) - 2)
        if not all(math.isfinite(law.moment(k)) for k in range(order + 1)):
            raise loss.too_heavy(objective, law)


def signal(system: SubspaceICA) -> float:
    """Gamma of the reduced model in which a system runs: gamma_c where components are estimated."""
    check_ties(system)
    principal = model.kind_of_space(system) == "principal"
    gamma = reduction(system).gamma_c if principal else system.gamma
    if gamma <= 0:
        raise HdicaError(
            f"beta = {system.beta!r} is not allowed for the limit (no spike stands out of the "
            f"noise of {model.samples_of(system)} samples: beta > (D/n)^1/2 = "
            f"{math.sqrt(reduction(system).c):.4g} is needed)",
            ["beta", "samples_per_dimension", "samples"],
        )
    return gamma


def overlap_at_start(system: SubspaceICA) -> float:
    """a0 where it is given."""
    overlap = model.first_overlap(system)
    if overlap is None:
        raise HdicaError(
            "start = 'uniform' is not allowed for this limit, which needs a start of known overlap "
            "(allowed: {overlap: a0})",
            ["start"],
        )
    return overlap
