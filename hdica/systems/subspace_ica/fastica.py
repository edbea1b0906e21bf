"""FastICA on samples of the subspace model, and on their whitened scores drawn without them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.fastica.iteration import Fit, accumulate, best, fastica, scores, unit_rows
from hdica.finite.random.streams import Stream, streams_of
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems import method
from hdica.systems.method import FINITE, Array, Output, PointResult
from hdica.systems.subspace_ica import samples
from hdica.systems.subspace_ica import system as model
from hdica.systems.subspace_ica.rotated import DENSE, rotated
from hdica.systems.subspace_ica.samples import ROWS, Frame, Prepared, Take
from hdica.systems.subspace_ica.system import HOME, OF_GRADIENTS, PAPER, SubspaceICA
from hdica.systems.trials import content_of


def starts(frame: Frame, number: int, overlap: float | None, stream: Stream) -> Array:
    """Unit vectors, (number, d): uniform, or so but for an overlap with the signal."""
    d = frame.size
    w = stream("start").standard_normal((number, d))
    if overlap is not None:
        e = frame.signal
        across = w - np.sum(w * e, axis=1, keepdims=True) * e
        size = np.sqrt(np.sum(across**2, axis=1, keepdims=True))
        # In one dimension there is no other direction.
        w = overlap * e + math.sqrt(1 - overlap * overlap) * across / size if d > 1 else e + 0 * w
    return unit_rows(w, d)


def with_new_samples(
    prepared: Prepared, w: Array, contrast: Contrast, tolerance: float, most: int, stream: Stream
) -> Fit:
    """FastICA that uses as many new samples in every iteration, all starts the same ones.

    The coordinates are those of the first samples; the score is that over further new samples.
    """
    count, take = len(prepared.y), prepared.renew(lambda part: stream(f"fresh {part}"))
    w = w.copy()
    iterations, converged = np.zeros(len(w), dtype=np.int64), np.zeros(len(w), dtype=bool)
    alive = np.arange(len(w))
    for _ in range(most):
        new = _iterate(take, count, w[alive], contrast)
        done = np.abs(np.abs(np.sum(new * w[alive], axis=1)) - 1) < tolerance
        w[alive], converged[alive] = new, done
        iterations[alive] += 1
        alive = alive[~done]
        if not alive.size:
            break
    total = np.zeros(len(w))
    for first in range(0, count, ROWS):
        check_deadline()
        block = take(min(ROWS, count - first))
        total += scores(block, w, contrast) * len(block)
    return Fit(w, iterations, converged, total / count)


def _iterate(take: Take, count: int, w: Array, contrast: Contrast) -> Array:
    """W <- Pi(mean(y g(w.y)) - mean(g'(w.y)) w) of new samples; w where that has no direction."""
    a, b = np.zeros_like(w), np.zeros(len(w))
    for first in range(0, count, ROWS):
        check_deadline()
        pushed, bent = accumulate(take(min(ROWS, count - first)), w, contrast)
        a, b = a + pushed, b + bent
    new = a - b[:, None] * w
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt(np.sum(new * new, axis=1, keepdims=True))
    directed = np.isfinite(size) & (size > 0)
    return np.where(directed, new / np.where(directed, size, 1.0), w)


AT_FINITE = (*FINITE, "hdica.finite.fastica", HOME)
LARGEST = 2**14  # dimension of a covariance that is computed
MOST_NUMBERS = 2**31  # numbers of whitened samples: they are in memory


def _check_samples(system: SubspaceICA, principal: bool = False) -> None:
    """Refuse another algorithm, no samples, and more of them than memory holds."""
    model.only(system, "FastICA", "fastica")
    check_size(system)
    if not principal:
        check_dimension(system)


def check_size(system: SubspaceICA) -> None:
    """Refuse infinitely many whitened samples, or more than memory holds."""
    count, d = model.needed_samples(system), model.size_of_space(system)
    if count * d > MOST_NUMBERS:
        raise HdicaError(
            f"samples = {count} is not allowed in {d} whitened dimensions (at most "
            f"{MOST_NUMBERS // d}: they are in memory)",
            [model.name_of_samples(system), "space"],
        )


def check_dimension(system: SubspaceICA) -> None:
    """Refuse a covariance that is too large to be computed."""
    if model.kind_of_space(system) != "known" and system.dimension > LARGEST:
        instead = "; scores without samples have no such bound"
        raise HdicaError(
            f"dimension = {system.dimension} is not allowed for the covariance of samples (at "
            f"most {LARGEST}{instead if model.kind_of_space(system) == 'principal' else ''})",
            ["dimension"],
        )


def _check_principal(system: SubspaceICA) -> None:
    """Refuse any other space, and fewer samples than the rotated ones need."""
    _check_samples(system, principal=True)
    if model.kind_of_space(system) != "principal":
        raise HdicaError(
            f"space = {system.space!r} is not allowed for scores without samples (allowed: "
            "'principal' or {principal: d})",
            ["space"],
        )
    count = model.needed_samples(system)
    if count < system.rank + 2:
        raise HdicaError(
            f"samples = {count} is not allowed for scores without samples (at least rank + 2 = "
            f"{system.rank + 2})",
            [model.name_of_samples(system), "rank"],
        )


def check_any(system: SubspaceICA) -> None:
    """Refuse what no FastICA takes: scores without samples have no largest dimension."""
    alone = model.kind_of_space(system) == "principal" and system.dimension > LARGEST
    (_check_principal if alone else _check_samples)(system)


def of_samples(system: SubspaceICA, stream: Stream) -> Prepared:
    """Whitened samples, from n samples in D dimensions."""
    spiked, count, kind = system.spiked, model.needed_samples(system), model.kind_of_space(system)
    sample = system.whitening == "sample"
    if kind == "principal":
        return samples.principal(spiked, model.size_of_space(system), count, stream, sample=sample)
    make = samples.known if kind == "known" else samples.ambient
    return make(spiked, count, stream, sample=sample)


def without_samples(system: SubspaceICA, stream: Stream) -> Prepared:
    """Whitened scores on principal components, of the same law, without the samples."""
    d, count = model.size_of_space(system), model.needed_samples(system)
    return rotated(system.spiked, d, count, stream, sample=system.whitening == "sample")


def _estimated(
    name: str, prepare: Callable[[SubspaceICA, Stream], Prepared]
) -> Callable[..., PointResult]:
    """FastICA on what ``prepare`` gives of a system and its random numbers."""

    def run(
        system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
    ) -> PointResult:
        stream = streams_of(content_of(system, OF_GRADIENTS), name)(seed or 0)
        with one_thread():
            prepared = prepare(system, stream)
            frame, law = prepared.frame, model.contrast(system)
            w = starts(frame, system.restarts, model.first_overlap(system), stream)
            tolerance, most = system.tolerance, system.iterations
            if system.batch == "fresh":
                fit = with_new_samples(prepared, w, law, tolerance, most, stream)
            else:
                fit = fastica(prepared.y, w, law, tolerance=tolerance, most=most)
        at, overlaps = best(fit), frame.overlap(fit.w)
        variances = np.full(system.rank, np.nan)
        variances[: prepared.variances.size] = prepared.variances[: system.rank]
        values: dict[str, object] = {
            "overlap": overlaps[at],
            "correlation": frame.correlation(fit.w)[at],
            "single": overlaps[0],
            "pca_overlap": frame.length,
            "score": fit.score[at],
            "iterations": fit.iterations[at],
            "converged": fit.converged[at],
            "w": frame.coordinates(fit.w)[at],
            "overlaps": overlaps,
            "variances": variances,
        }
        names = [output.name for output in FASTICA.outputs_of(save)]
        return PointResult(method.arrays(**{name: values[name] for name in names}))

    return run


def iteration_seconds(system: SubspaceICA) -> float:
    """Cost model of FastICA on whitened samples: some fifteen iterations from every start."""
    count, d = model.needed_samples(system), model.size_of_space(system)
    each = count * (5e-9 + 8e-10 * d) * system.restarts
    if system.batch == "fresh":
        return system.iterations * (each + 3e-8 * count * d)
    return min(15, system.iterations) * each


def drawing_seconds(system: SubspaceICA) -> float:
    """Cost model of samples, their covariance and its eigenvectors."""
    count, size = model.needed_samples(system), float(system.dimension)
    if model.kind_of_space(system) == "known":
        return 3e-8 * count * system.rank
    return count * size * (1.5e-8 + 6e-11 * size) + 2e-9 * size**3 / 4


def rotated_seconds(system: SubspaceICA) -> float:
    """Cost model of scores without samples."""
    count, d = model.needed_samples(system), model.size_of_space(system) + system.rank
    rest = min(count, system.dimension)
    if rest + system.rank <= DENSE:
        return 1e-3 + 5e-8 * count * d + 8e-10 * float(rest) ** 3
    return 1e-3 + 5e-8 * count * d + rest * d * 2e-9 * (50 + 5 * rest ** (1 / 3))


FASTICA = method.Simulation[SubspaceICA](
    name="fastica",
    role=method.Role.SIMULATION,
    rank=1,
    about=method.About(
        text="FastICA on n samples of the model, centred, projected and whitened; the best start",
        accuracy="exact",
        equations=f"{PAPER}, (2) on samples of (3), best of several starts",
        engines=AT_FINITE,
    ),
    outputs=method.Outputs(
        (
            Output("overlap", (), "overlap of the whitened estimate with the whitened v"),
            Output(
                "correlation",
                (),
                "correlation of the filter with the best one, over the population",
            ),
            Output("single", (), "overlap that the first start leads to"),
            Output("pca_overlap", (), "length of v in the space in which ICA is run"),
            Output("score", (), "mean of the contrast less that of a Gaussian projection"),
            Output("iterations", (), "iterations of FastICA from the start that is taken"),
            Output("converged", (), "1 if they converged, else 0"),
        ),
        extras=(
            Output("w", ("component",), "whitened estimate along the spikes u"),
            Output("overlaps", ("restart",), "overlap that a start leads to"),
            Output(
                "variances", ("component",), "variance of the samples along a principal component"
            ),
        ),
    ),
    cost=method.Cost(
        seconds=lambda system, n, last: 1e-3 + drawing_seconds(system) + iteration_seconds(system),
        # Whitened samples, once more in the kernels' order, and what whitening all D makes.
        memory=lambda system, *_: (
            2 * model.needed_samples(system) * model.size_of_space(system)
            + 3 * system.dimension**2 * (system.space == "ambient" and system.whitening == "sample")
        ),
    ),
    scope=method.Scope(
        refuses=method.refusal(_check_samples), ignores=OF_GRADIENTS, n=method.Size.NONE
    ),
    run=_estimated("fastica", of_samples),
)
SCORES = replace(
    FASTICA,
    name="fastica_scores",
    rank=2,
    about=method.About(
        text="the same on whitened scores drawn without the n D samples: n, D to 10⁶ in seconds",
        accuracy="exact in law",
        equations=f"{PAPER}, (2) on principal components of (3), of which the law is drawn",
        engines=AT_FINITE,
    ),
    cost=method.Cost(
        seconds=lambda system, n, last: rotated_seconds(system) + iteration_seconds(system),
        memory=lambda system, *_: 2 * model.needed_samples(system) * model.size_of_space(system),
    ),
    scope=replace(FASTICA.scope, refuses=method.refusal(_check_principal)),
    run=_estimated("fastica_scores", without_samples),
)
METHODS = (FASTICA, SCORES)
