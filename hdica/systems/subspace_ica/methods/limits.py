"""What ICA of the subspace model ends at, and how it gets there, for many samples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    About,
    Cost,
    Limit,
    Outputs,
    Role,
    Scope,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.subspace_ica.fields import (
    contrast,
    kind_of_space,
    latent,
    samples_of,
    size_of_space,
)
from hdica.systems.subspace_ica.limit import flow, prediction
from hdica.systems.subspace_ica.limit.hermite import information_exponent, series
from hdica.systems.subspace_ica.limit.loss import Loss, direction_of
from hdica.systems.subspace_ica.limit.pca import Reduction
from hdica.systems.subspace_ica.limit.variance import level, mean_square, variance
from hdica.systems.subspace_ica.methods.reduced import (
    check_seen,
    check_ties,
    only,
    overlap_at_start,
    reduction,
    signal,
)
from hdica.systems.subspace_ica.system import HOME, OF_FASTICA, OF_GRADIENTS, PAPER, SubspaceICA

HERE = (*COMMON, AVERAGES, HOME, f"{HOME}.limit")
"""Folders behind limits."""
_AT = ("time",)
_EACH = ("component",)
LEVELS = (50, 90, 99)
"""Overlaps, in hundredths, to which times are told."""
WRONG = 1.02
"""Rate of the negative control."""


def _predicted(system: SubspaceICA, known: Reduction) -> prediction.Prediction:
    """The final overlaps; in all D dimensions those of infinitely many samples alone."""
    kind, count = kind_of_space(system), samples_of(system)
    given = contrast(system), latent(system)
    many, size = math.inf if count is None else float(count), size_of_space(system)
    inside = system.whitening == "sample"
    if kind == "principal":
        return prediction.principal(*given, known, many, size, inside)
    found = prediction.known_space(*given, system.gamma, many, size, inside)
    if kind == "ambient" and count is not None:
        nan = math.nan
        return replace(found, overlap=nan, correlation=nan, found=nan)
    return found


def _prediction(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    known = reduction(system)
    found = _predicted(system, known)
    principal = kind_of_space(system) == "principal"
    values: dict[str, float | Array] = {
        "predicted_overlap": found.overlap,
        "predicted_correlation": found.correlation,
        "gamma": known.gamma,
        "gamma_c": known.gamma_c if principal else known.gamma,
        "pca_overlap": known.kept if principal else 1.0,
        "variance": found.variance,
        "variance_error": found.variance_error,
    }
    each = {"eigenvalue": known.eigenvalues, "phi": np.sqrt(known.phi2)}
    values |= {name: value for name, value in each.items() if name in save.extra}
    return PointResult({name: np.asarray(value, dtype=float) for name, value in values.items()})


def _predictable(system: SubspaceICA) -> None:
    only(system, "fastica")
    check_ties(system)
    check_seen(system, 2)
    # New samples are not white in coordinates that others have whitened, and V is another one.
    estimated = system.whitening == "sample" and samples_of(system) is not None
    if system.batch == "fresh" and estimated:
        raise HdicaError(
            "batch = 'fresh' is not allowed for this limit with whitening = 'sample' (allowed: "
            "batch = 'all', or whitening = 'population')",
            ["batch", "whitening"],
        )


PREDICTION = Limit[SubspaceICA](
    name="prediction",
    role=Role.LIMIT,
    rank=1,
    about=About(
        text="overlaps at which FastICA ends if it finds the feature, as D → ∞ at fixed n/D: "
        "thresholds of the principal components, and the asymptotic variance",
        accuracy="approximate",
        equations=f"{PAPER}, Lemma 3 and Theorem 2 with the sample eigenvectors of n = D/c samples "
        "(Baik, Ben Arous and Peche 2005; Paul 2007)",
        engines=HERE,
    ),
    outputs=Outputs(
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
    cost=Cost(seconds=lambda system, n, last: 3e-3 + 1e-6 * system.rank),
    scope=Scope(refuses=refusal(_predictable), ignores=OF_FASTICA | OF_GRADIENTS | {"start"}),
    run=_prediction,
)


def _flow(system: SubspaceICA) -> flow.Flow:
    """The flow of a system up or down its population loss."""
    ratio = signal(system)
    loss = Loss(contrast(system), latent(system), ratio)
    return flow.Flow(loss, _direction(system, ratio))


def _direction(system: SubspaceICA, gamma: float) -> int:
    """1 for ascent, -1 for descent."""
    given = {"ascent": 1, "descent": -1}.get(system.direction)
    return given or direction_of(contrast(system), latent(system), gamma)


def _least(moves: flow.Flow, start: float) -> float:
    """C of the bound, over all overlaps that the flow can come to."""
    ahead = float(moves.speed(np.array(start))) > 0
    return moves.least_slope(start, 1.0) if ahead else moves.least_slope(0.0, start)


def _path(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    moves, start = _flow(system), overlap_at_start(system)
    found, errors = moves.path(start, times)
    wrong, _ = moves.path(start, WRONG * times)
    return PointResult(
        {
            "overlap": found,
            "overlap_error": errors,
            "overlap_control": wrong,
            "lower_bound": flow.bound(_least(moves, start), start, times),
        }
    )


def _flows(system: SubspaceICA) -> None:
    # Whoever asks for any limit is told what this last one says: let it be what is amiss.
    if system.algorithm == "fastica":
        _predictable(system)
    only(system, "sgd", "flow")
    overlap_at_start(system)
    check_seen(system)
    _direction(system, signal(system))


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
    outputs=Outputs(
        (
            Output("overlap", _AT, "overlap with the feature of the reduced model"),
            Output("overlap_error", _AT, "error of the overlap, from the solver and the slope"),
            Output("overlap_control", _AT, "overlap with the rate wrong by 2 % (negative control)"),
            Output(
                "lower_bound", _AT, "bound tanh(Ct + artanh a0) of Theorem 4, C the least slope"
            ),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 0.5),
    scope=Scope(refuses=refusal(_flows), ignores=frozenset({"eta", "batch", "whitening"})),
    run=_path,
    closed=True,
)


def _times(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    moves, start = _flow(system), overlap_at_start(system)
    ends = np.array(LEVELS) / 100
    took, errors = moves.times(start, ends)
    values: dict[str, float] = {}
    for place, name in enumerate(map(str, LEVELS)):
        least = moves.least_slope(start, max(start, float(ends[place])))
        values[f"time_{name}"] = float(took[place])
        values[f"time_{name}_error"] = float(errors[place])
        values[f"bound_{name}"] = float(flow.bound_time(least, start, ends[place]))
    values["time_order"] = flow.leading_time(moves.loss, start)
    return PointResult({name: np.asarray(value) for name, value in values.items()})


def _timed(system: SubspaceICA) -> None:
    _flows(system)
    start = overlap_at_start(system)
    if not 0 < start < 1:
        raise HdicaError(
            f"start.overlap = {start:g} is not allowed for a time (0 < a0 < 1: the flow rests at "
            "the ends)",
            ["start.overlap"],
        )


def _told(k: int) -> tuple[Output, ...]:
    """What is told of the time to an overlap in hundredths."""
    to = f"time to overlap {k / 100:g}"
    return (
        Output(f"time_{k}", (), to),
        Output(f"time_{k}_error", (), f"error of the {to}"),
        Output(f"bound_{k}", (), f"bound on the {to}"),
    )


TIMES = replace(
    FLOW,
    name="recovery_time",
    role=Role.OTHER,
    rank=None,
    about=replace(
        FLOW.about,
        text="times of the gradient flow to overlaps 0.5, 0.9 and 0.99, and those of the bound",
    ),
    outputs=Outputs(
        (
            *(output for k in LEVELS for output in _told(k)),
            Output(
                "time_order", (), "leading order of all these times for a small overlap at first"
            ),
        )
    ),
    scope=replace(FLOW.scope, refuses=refusal(_timed)),
    run=_times,
    closed=False,
)


def _level(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    given, gamma = (contrast(system), latent(system)), signal(system)
    size, count = size_of_space(system), samples_of(system)
    batch, eta = _steps(system)
    reached = level(*given, gamma, size, eta, batch)
    fixed = 0.0
    if count is not None:
        # The same samples come again and again, so that steps turn about what is best for them.
        fixed = (size - 1) * variance(*given, gamma, system.whitening == "sample")[0] / count
    rate = 2 * abs(float(Loss(*given, gamma).at(np.array(1.0)).slope))
    values = {"noise": reached, "sampling": fixed, "relaxation": rate}
    values["square"] = mean_square(*given, gamma)
    return PointResult({name: np.asarray(value, dtype=float) for name, value in values.items()})


def _steps(system: SubspaceICA) -> tuple[int, float]:
    """B and eta of stochastic steps."""
    only(system, "sgd")
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
    PREDICTION,
    name="sgd_level",
    role=Role.OTHER,
    rank=None,
    about=replace(
        PREDICTION.about,
        text="mean of 1 − a² at which mini-batch steps of a constant size end",
        equations=f"{PAPER}, (B.5): (d - 1) eta E g^2/(2 B abs(L'(1)))",
    ),
    outputs=Outputs(
        (
            Output(
                "noise", (), "mean of 1 - a^2 from the noise of the batches, to first order in eta"
            ),
            Output("sampling", (), "mean of 1 - a^2 from the n samples, as they grow in number"),
            Output("relaxation", (), "rate 2 abs(L'(1)) at which 1 - a^2 falls to it"),
            Output("square", (), "E g(s)^2 at the feature"),
        )
    ),
    scope=Scope(refuses=refusal(_has_level), ignores=frozenset({"start", "direction"})),
    run=_level,
)


def _loss(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    given = contrast(system), latent(system)
    found = Loss(*given, signal(system)).at(np.array(overlap_at_start(system)))
    exponent = information_exponent(*given)
    return PointResult(
        {
            "L": found.loss,
            "dL": found.slope,
            "L_error": found.loss_error,
            "dL_error": found.slope_error,
            "exponent": np.asarray(math.nan if exponent is None else float(exponent)),
        }
    )


def _has_loss(system: SubspaceICA) -> None:
    overlap_at_start(system)
    signal(system)
    series(contrast(system), latent(system))


LOSS = replace(
    PREDICTION,
    name="loss_at_start",
    role=Role.OTHER,
    rank=None,
    about=replace(
        PREDICTION.about,
        text="population loss and its slope at the overlap of the start",
        accuracy="converged",
        equations=f"{PAPER}, Lemma 5 corrected, for any contrast and latent variable",
    ),
    outputs=Outputs(
        (
            Output("L", (), "population loss E G(w.y)"),
            Output("dL", (), "its slope in the overlap"),
            Output("L_error", (), "error of the loss"),
            Output("dL_error", (), "error of the slope"),
            Output("exponent", (), "information exponent: L(a) - L(0) ~ a^k for small a"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 0.1),
    scope=Scope(
        refuses=refusal(_has_loss),
        ignores=OF_FASTICA | OF_GRADIENTS | {"batch", "whitening", "algorithm"},
    ),
    run=_loss,
)

METHODS = (PREDICTION, FLOW, TIMES, SGD_LEVEL, LOSS)
