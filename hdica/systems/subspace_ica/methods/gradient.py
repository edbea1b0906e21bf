"""Gradient steps and their flow on whitened samples of the subspace model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError, speaking_of
from hdica.finite.random.streams import Stream, streams_of
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.systems.arguments import MOST_WHOLE
from hdica.systems.method import AVERAGES, About, Cost, Outputs, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.subspace_ica.fields import (
    contrast,
    first_overlap,
    kind_of_space,
    latent,
    samples_of,
    size_of_space,
)
from hdica.systems.subspace_ica.finite import estimate
from hdica.systems.subspace_ica.finite.draws import Take
from hdica.systems.subspace_ica.finite.frame import Frame
from hdica.systems.subspace_ica.finite.gradient import cyclic, descend, flow
from hdica.systems.subspace_ica.finite.prepared import Prepared
from hdica.systems.subspace_ica.limit.loss import direction_of
from hdica.systems.subspace_ica.methods.samples import (
    AT_FINITE,
    FASTICA,
    check_any,
    check_dimension,
    check_held,
    drawing_seconds,
    of_samples,
    rotated_seconds,
    without_samples,
)
from hdica.systems.subspace_ica.system import HOME, OF_FASTICA, PAPER, SubspaceICA
from hdica.systems.trials import content_of

_OUTPUTS = (
    Output("overlap", ("time",), "overlap of the estimate with the signal in whitened samples"),
)
_EXTRAS = (Output("w_path", ("time", "component"), "whitened estimate along the spikes u"),)


def sign_of(system: SubspaceICA) -> int:
    """1 if the mean of the contrast is made larger, -1 if smaller.

    Raises
    ------
    HdicaError
        If neither finds v, and the direction is not given.
    """
    if system.direction != "auto":
        return 1 if system.direction == "ascent" else -1
    with speaking_of("direction", "contrast", "latent"):
        return direction_of(contrast(system), latent(system))


def _check(system: SubspaceICA, algorithm: str, what: str) -> None:
    if system.algorithm != algorithm:
        raise HdicaError(
            f"algorithm = {system.algorithm!r} is not allowed for {what} (allowed: {algorithm!r})",
            ["algorithm"],
        )
    if samples_of(system) is not None:
        check_held(system)
        if kind_of_space(system) == "ambient":
            check_dimension(system)


def _check_sgd(system: SubspaceICA) -> None:
    _check(system, "sgd", "projected gradient steps")
    if samples_of(system) is None and kind_of_space(system) == "ambient":
        raise HdicaError(
            "space = 'ambient' is not allowed with infinitely many samples (allowed: 'principal' "
            "or 'known', which are the same then)",
            ["space", "samples_per_dimension", "samples"],
        )
    if samples_of(system) is None and size_of_space(system) != system.rank:
        raise HdicaError(
            f"space = {system.space!r} is not allowed with infinitely many samples (as many "
            f"dimensions as spikes: {system.rank})",
            ["space", "samples_per_dimension", "samples"],
        )
    sign_of(system)


def _check_flow(system: SubspaceICA) -> None:
    # Whoever asks for any simulation is told what the last one says: let it be what is amiss.
    if system.algorithm == "fastica":
        check_any(system)
    elif system.algorithm == "sgd":
        _check_sgd(system)
    _check(system, "flow", "a gradient flow")
    check_held(system)
    sign_of(system)


def prepared_of(system: SubspaceICA, stream: Stream) -> Prepared:
    """Whitened samples; on principal components of many samples they are drawn without these."""
    kind, count = kind_of_space(system), samples_of(system) or 0
    if kind == "principal" and count >= system.rank + 2:
        return without_samples(system, stream)
    return of_samples(system, stream)


def _begun(system: SubspaceICA, stream: Stream) -> tuple[Frame, Take, Array, Array]:
    """Coordinates, the samples one after another, w(0), and the whitened samples if finite."""
    if samples_of(system) is None:
        spiked = system.spiked
        frame = Frame(spiked, np.eye(spiked.rank), 1 / np.sqrt(1 + spiked.beta), sample=False)
        y, take = np.empty((0, spiked.rank)), spiked.whitened(stream)
    else:
        prepared = prepared_of(system, stream)
        frame, y = prepared.frame, prepared.y
        take = cyclic(y)
    w = estimate.starts(frame, 1, first_overlap(system), stream)[0]
    return frame, take, w, y


def _result(frame: Frame, path: Array, why: str, save: Save) -> PointResult:
    values = {"overlap": frame.along(path)}
    if "w_path" in save.extra:
        values["w_path"] = frame.coordinates(path)
    return PointResult(values, why)


def _stream(system: SubspaceICA, name: str, seed: int | None) -> Stream:
    return streams_of(content_of(system, OF_FASTICA), name)(seed or 0)


def _sgd(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    eta, last = system.eta or 0.0, float(times[-1])
    if last / eta > MOST_WHOLE:
        raise HdicaError(
            f"eta = {eta:g} is not allowed with times up to {last:g} (time/eta <= 2**53 steps)"
        )
    with one_thread():
        frame, take, w, y = _begun(system, _stream(system, SGD.name, seed))
        batch = len(y) if system.batch == "all" else int(system.batch)
        rate = eta * sign_of(system)
        path, why = descend(take, w, contrast(system), rate, batch, times, eta)
    return _result(frame, path, why, save)


def _flow(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    with one_thread():
        frame, _, w, y = _begun(system, _stream(system, FLOW.name, seed))
        path = flow(y, w, contrast(system), sign_of(system), times)
    return _result(frame, path, "", save)


def _sample_seconds(system: SubspaceICA) -> float:
    if samples_of(system) is None:
        return 0.0
    exact = kind_of_space(system) == "principal"
    return rotated_seconds(system) if exact else drawing_seconds(system)


def _sgd_seconds(system: SubspaceICA, n: int | None, last: float) -> float:
    count, d = samples_of(system) or 0, size_of_space(system)
    batch = count if system.batch == "all" else float(system.batch)
    fresh = 3e-8 * d if samples_of(system) is None else 0.0
    steps = last / (system.eta or 1.0)
    return 1e-3 + _sample_seconds(system) + steps * batch * (1.2e-8 + 2e-9 * d + fresh)


def _flow_seconds(system: SubspaceICA, n: int | None, last: float) -> float:
    count, d = samples_of(system) or 0, size_of_space(system)
    return 1e-2 + _sample_seconds(system) + (300 + 5 * last) * count * (1e-8 + 1.5e-9 * d)


SGD = replace(
    FASTICA,
    name="projected_sgd",
    rank=3,
    about=About(
        text="projected gradient steps on batches, of fresh samples or of n, until eta k = t",
        accuracy="exact in law",
        equations=f"{PAPER}, (B.5); fresh samples are those of the reduced model (4)",
        engines=(*AT_FINITE, AVERAGES, f"{HOME}.limit"),
    ),
    outputs=Outputs(_OUTPUTS, extras=_EXTRAS),
    cost=Cost(
        seconds=_sgd_seconds,
        memory=lambda system, n: (samples_of(system) or 0) * size_of_space(system),
    ),
    scope=replace(FASTICA.scope, refuses=refusal(_check_sgd), ignores=OF_FASTICA),
    run=_sgd,
)
FLOW = replace(
    SGD,
    name="batch_flow",
    rank=4,
    about=replace(
        SGD.about,
        text="gradient flow on the loss of n whitened samples",
        equations=f"{PAPER}, (B.5) for eta to 0 with all samples in a batch",
    ),
    cost=replace(SGD.cost, seconds=_flow_seconds),
    scope=replace(SGD.scope, refuses=refusal(_check_flow), ignores=OF_FASTICA | {"eta", "batch"}),
    run=_flow,
)

METHODS = (SGD, FLOW)
