"""FastICA on samples of the subspace model, and on their whitened scores drawn without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.fastica.found import Found, best
from hdica.finite.random.streams import Stream, streams_of
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.systems.method import (
    FINITE,
    About,
    Cost,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.subspace_ica.fields import (
    contrast,
    first_overlap,
    kind_of_space,
    needed_samples,
    size_of_space,
)
from hdica.systems.subspace_ica.finite import estimate
from hdica.systems.subspace_ica.finite.prepared import Prepared, ambient, known, principal
from hdica.systems.subspace_ica.finite.rotated import DENSE, rotated
from hdica.systems.subspace_ica.system import HOME, OF_GRADIENTS, PAPER, SubspaceICA
from hdica.systems.trials import content_of

Prepare = Callable[[SubspaceICA, Stream], Prepared]
_OF_SCORES = (*FINITE, "hdica.finite.fastica", HOME, f"{HOME}.finite")
AT_FINITE = (*_OF_SCORES, "hdica.finite.whitening")
"""Folders behind what is estimated from samples."""
LARGEST = 2**14
"""Largest dimension of a covariance that is computed."""
MOST_HELD = 2**31
"""Most numbers of whitened samples: they are in memory."""

OUTPUTS = (
    Output("overlap", (), "overlap of the whitened estimate with the whitened v"),
    Output("correlation", (), "correlation of the filter with the best one, over the population"),
    Output("single", (), "overlap that the first start leads to"),
    Output("pca_overlap", (), "length of v in the space in which ICA is run"),
    Output("score", (), "mean of the contrast less that of a Gaussian projection"),
    Output("iterations", (), "iterations of FastICA from the start that is taken"),
    Output("converged", (), "1 if they converged, else 0"),
)
EXTRAS = (
    Output("w", ("component",), "whitened estimate along the spikes u"),
    Output("overlaps", ("restart",), "overlap that a start leads to"),
    Output("variances", ("component",), "variance of the samples along a principal component"),
)


def _check_fastica(system: SubspaceICA) -> None:
    """Refuse another algorithm, no samples, and more of them than memory holds."""
    if system.algorithm != "fastica":
        raise HdicaError(
            f"algorithm = {system.algorithm!r} is not allowed for FastICA (allowed: 'fastica')",
            ["algorithm"],
        )
    check_held(system)


def check_held(system: SubspaceICA) -> None:
    """Refuse infinitely many whitened samples, or more than memory holds."""
    count, d = needed_samples(system), size_of_space(system)
    if count * d > MOST_HELD:
        raise HdicaError(
            f"samples = {count} is not allowed in {d} whitened dimensions (at most "
            f"{MOST_HELD // d}: they are in memory)",
            ["samples_per_dimension" if system.samples is None else "samples", "space"],
        )


def check_dimension(system: SubspaceICA) -> None:
    """Refuse a covariance that is too large to be computed."""
    if kind_of_space(system) != "known" and system.dimension > LARGEST:
        instead = "; scores without samples have no such bound"
        raise HdicaError(
            f"dimension = {system.dimension} is not allowed for the covariance of samples (at "
            f"most {LARGEST}{instead if kind_of_space(system) == 'principal' else ''})",
            ["dimension"],
        )


def _check_samples(system: SubspaceICA) -> None:
    _check_fastica(system)
    check_dimension(system)


def _check_principal(system: SubspaceICA) -> None:
    """Refuse any other space, and fewer samples than the rotated ones need."""
    _check_fastica(system)
    if kind_of_space(system) != "principal":
        raise HdicaError(
            f"space = {system.space!r} is not allowed for scores without samples (allowed: "
            "'principal' or {principal: d})",
            ["space"],
        )
    count = needed_samples(system)
    if count < system.rank + 2:
        raise HdicaError(
            f"samples = {count} is not allowed for scores without samples (at least rank + 2 = "
            f"{system.rank + 2})",
            ["samples_per_dimension" if system.samples is None else "samples", "rank"],
        )


def check_any(system: SubspaceICA) -> None:
    """Refuse what no FastICA takes: scores without samples have no largest dimension."""
    alone = kind_of_space(system) == "principal" and system.dimension > LARGEST
    (_check_principal if alone else _check_samples)(system)


def of_samples(system: SubspaceICA, stream: Stream) -> Prepared:
    """Whitened samples, from n samples in D dimensions."""
    spiked, count, sample = system.spiked, needed_samples(system), system.whitening == "sample"
    kind = kind_of_space(system)
    if kind == "principal":
        return principal(spiked, size_of_space(system), count, stream, sample=sample)
    return (known if kind == "known" else ambient)(spiked, count, stream, sample=sample)


def without_samples(system: SubspaceICA, stream: Stream) -> Prepared:
    """Whitened scores on principal components, of the same law, without the samples."""
    sample = system.whitening == "sample"
    return rotated(
        system.spiked, size_of_space(system), needed_samples(system), stream, sample=sample
    )


def _found(system: SubspaceICA, prepared: Prepared, stream: Stream) -> Found:
    w = estimate.starts(prepared.frame, system.restarts, first_overlap(system), stream)
    how = (contrast(system), system.tolerance, system.iterations)
    if system.batch == "fresh":
        return estimate.with_new_samples(prepared, w, *how, stream)
    return estimate.from_starts(prepared, w, *how)


def _values(prepared: Prepared, found: Found, rank: int) -> dict[str, Any]:
    at, frame = best(found), prepared.frame
    overlaps = frame.overlap(found.w)
    variances = np.full(rank, np.nan)
    variances[: prepared.variances.size] = prepared.variances[:rank]
    return {
        "overlap": overlaps[at],
        "correlation": frame.correlation(found.w)[at],
        "single": overlaps[0],
        "pca_overlap": frame.held,
        "score": found.score[at],
        "iterations": found.iterations[at],
        "converged": found.converged[at],
        "w": frame.coordinates(found.w)[at],
        "overlaps": overlaps,
        "variances": variances,
    }


def _estimated(name: str, prepare: Prepare) -> Callable[..., PointResult]:
    """FastICA on what ``prepare`` gives of a system and its random numbers."""

    def run(
        system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
    ) -> PointResult:
        stream = streams_of(content_of(system, OF_GRADIENTS), name)(seed or 0)
        with one_thread():
            prepared = prepare(system, stream)
            values = _values(prepared, _found(system, prepared, stream), system.rank)
        wanted = [o.name for o in OUTPUTS] + [o.name for o in EXTRAS if o.name in save.extra]
        return PointResult({key: np.asarray(values[key], dtype=float) for key in wanted})

    return run


def iteration_seconds(system: SubspaceICA) -> float:
    """Cost model of FastICA on whitened samples: some fifteen iterations from every start."""
    count, d = needed_samples(system), size_of_space(system)
    each = count * (5e-9 + 8e-10 * d) * system.restarts
    if system.batch == "fresh":
        return system.iterations * (each + 3e-8 * count * d)
    return min(15, system.iterations) * each


def drawing_seconds(system: SubspaceICA) -> float:
    """Cost model of samples, their covariance and its eigenvectors."""
    count, size = needed_samples(system), float(system.dimension)
    if kind_of_space(system) == "known":
        return 3e-8 * count * system.rank
    return count * size * (1.5e-8 + 6e-11 * size) + 2e-9 * size**3 / 4


def rotated_seconds(system: SubspaceICA) -> float:
    """Cost model of scores without samples."""
    count, d = needed_samples(system), size_of_space(system) + system.rank
    rest = min(count, system.dimension)
    if rest + system.rank <= DENSE:
        return 1e-3 + 5e-8 * count * d + 8e-10 * float(rest) ** 3
    return 1e-3 + 5e-8 * count * d + rest * d * 2e-9 * (50 + 5 * rest ** (1 / 3))


def _held(system: SubspaceICA, n: int | None) -> int:
    """Whitened samples, once more in the kernels' order, and what whitening all D makes."""
    scores = 2 * needed_samples(system) * size_of_space(system)
    ambient = kind_of_space(system) == "ambient" and system.whitening == "sample"
    return scores + (3 * system.dimension**2 if ambient else 0)


FASTICA = Simulation[SubspaceICA](
    name="fastica",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="FastICA on n samples of the model, centred, projected and whitened; the best start",
        accuracy="exact",
        equations=f"{PAPER}, (2) on samples of (3), best of several starts",
        engines=AT_FINITE,
    ),
    outputs=Outputs(OUTPUTS, extras=EXTRAS),
    cost=Cost(
        seconds=lambda system, n, last: 1e-3 + drawing_seconds(system) + iteration_seconds(system),
        memory=_held,
    ),
    scope=Scope(refuses=refusal(_check_samples), ignores=OF_GRADIENTS, n=Size.NONE),
    run=_estimated("fastica", of_samples),
)
SCORES = replace(
    FASTICA,
    name="fastica_scores",
    rank=2,
    about=About(
        text="the same on whitened scores drawn without the n D samples: n, D to 10⁶ in seconds",
        accuracy="exact in law",
        equations=f"{PAPER}, (2) on principal components of (3), of which the law is drawn",
        engines=_OF_SCORES,
    ),
    cost=Cost(
        seconds=lambda system, n, last: rotated_seconds(system) + iteration_seconds(system),
        memory=lambda system, n: 2 * needed_samples(system) * size_of_space(system),
    ),
    scope=replace(FASTICA.scope, refuses=refusal(_check_principal)),
    run=_estimated("fastica_scores", without_samples),
)

METHODS = (FASTICA, SCORES)
