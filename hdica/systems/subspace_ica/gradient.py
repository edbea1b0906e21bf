"""Gradient steps on the sphere, and their flow, on whitened samples: Reduce and Conquer 2025 (B.5).

w <- w + eta s P mean(g(w.y) y) with P = I - w w', then over its length; the sign s is 1 for ascent
of the mean of the contrast G, g = G', and -1 for descent.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError, speaking_of
from hdica.finite.fastica.iteration import accumulate
from hdica.finite.random.streams import streams_of
from hdica.finite.record import steps_of
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.save import Save
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems.arguments import MOST_WHOLE
from hdica.systems.method import AVERAGES, About, Array, Cost, Output, Outputs, PointResult, refusal
from hdica.systems.subspace_ica import fastica
from hdica.systems.subspace_ica import system as model
from hdica.systems.subspace_ica.fastica import AT_FINITE, FASTICA
from hdica.systems.subspace_ica.loss import direction_of
from hdica.systems.subspace_ica.samples import Frame, Take
from hdica.systems.subspace_ica.system import OF_FASTICA, PAPER, SubspaceICA
from hdica.systems.trials import content_of

_AT = ("time",)
_NUMBERS = 2**20  # numbers of samples that are taken at once, if a batch is not more


def cyclic(y: Array) -> Take:
    """Samples in order, beginning again when they are used up: ``take(count)``, (count, d)."""
    first = 0

    def take(count: int) -> Array:
        nonlocal first
        start, first = first, (first + count) % len(y)
        if start + count <= len(y):
            return y[start : start + count]
        return np.take(y, np.arange(start, start + count), axis=0, mode="wrap")

    return take


def descend(
    take: Take, w: Array, contrast: Contrast, rate: float, batch: int, times: Array, unit: float
) -> tuple[Array, str]:
    """W at the output times, shape (T, d), from a unit vector; and why it diverged, or nothing.

    Each step of the time ``unit`` takes ``batch`` samples; ``rate`` is the step size eta, with the
    sign of the direction.
    """
    from hdica.finite.fastica.functions import FORMULA, KINDS
    from hdica.finite.fastica.kernels import projected_steps

    code = KINDS.get(contrast.name, FORMULA)
    address = contrast.formula.derivative.compiled.address if code == FORMULA else 0
    w, path, now = w.copy(), np.full((times.size, w.size), np.nan), 0
    at_once = max(1, _NUMBERS // (batch * w.size))
    for place, end in enumerate(steps_of(times / unit, 1).tolist()):
        while now < end:
            check_deadline()
            steps = min(at_once, end - now)
            y = np.ascontiguousarray(take(steps * batch))
            done = projected_steps(w, y, batch, rate, code, address)
            now += done
            if done < steps:
                return path, f"w was no longer finite at step {now} (time {now * unit:g})"
        path[place] = w
    return path, ""


def flow(y: Array, w: Array, contrast: Contrast, sign: int, times: Array) -> Array:
    """w(t) of dw/dt = s P mean(g(w.y) y), shape (T, d), by Runge-Kutta steps of order 8.

    The mean is over the samples y, (n, d). The length of w, which the flow keeps, is restored
    where the errors of the steps (1e-9 of w) change it.

    Refused if the integration fails.
    """
    from scipy.integrate import solve_ivp

    y = np.ascontiguousarray(y)

    def rate(t: float, at: Array) -> Array:
        check_deadline()
        u = at / math.sqrt(np.sum(at * at))
        push = accumulate(y, u[None], contrast)[0][0] / len(y)
        return sign * (push - np.sum(push * u) * u)

    solution = solve_ivp(
        rate,
        (0.0, max(float(times[-1]), 1e-300)),
        w,
        method="DOP853",
        t_eval=times,
        rtol=1e-9,
        atol=1e-12,
    )
    if not solution.success:
        raise HdicaError(f"the gradient flow was not solved ({solution.message})")
    path = solution.y.T
    return path / np.sqrt(np.sum(path * path, axis=1, keepdims=True))


def sign_of(system: SubspaceICA) -> int:
    """1 if the mean of the contrast is made larger, else -1; refused if 'auto' finds neither."""
    if system.direction != "auto":
        return 1 if system.direction == "ascent" else -1
    with speaking_of("direction", "contrast", "latent"):
        return direction_of(*model.law(system))


def _check_limits(system: SubspaceICA) -> None:
    """Refuse more whitened samples, or dimensions of a covariance, than can be computed."""
    if model.samples_of(system) is not None:
        fastica.check_size(system)
        if model.kind_of_space(system) == "ambient":
            fastica.check_dimension(system)


def _check_sgd(system: SubspaceICA) -> None:
    model.only(system, "projected gradient steps", "sgd")
    _check_limits(system)
    if model.samples_of(system) is None and model.kind_of_space(system) == "ambient":
        raise HdicaError(
            "space = 'ambient' is not allowed with infinitely many samples (allowed: 'principal' "
            "or 'known', which are the same then)",
            ["space", "samples_per_dimension", "samples"],
        )
    if model.samples_of(system) is None and model.size_of_space(system) != system.rank:
        raise HdicaError(
            f"space = {system.space!r} is not allowed with infinitely many samples (as many "
            f"dimensions as spikes: {system.rank})",
            ["space", "samples_per_dimension", "samples"],
        )
    sign_of(system)


def _check_flow(system: SubspaceICA) -> None:
    # A refusal of all simulations shows the sentence of the last one: let it say what is amiss.
    if system.algorithm == "fastica":
        fastica.check_any(system)
    elif system.algorithm == "sgd":
        _check_sgd(system)
    model.only(system, "a gradient flow", "flow")
    _check_limits(system)
    fastica.check_size(system)
    sign_of(system)


def _begun(system: SubspaceICA, name: str, seed: int | None) -> tuple[Frame, Take, Array, Array]:
    """Coordinates, the samples one after another, w(0), and the whitened samples if finite.

    On principal components of many samples the scores are drawn without these.
    """
    stream = streams_of(content_of(system, OF_FASTICA), name)(seed or 0)
    count, principal = model.samples_of(system), model.kind_of_space(system) == "principal"
    if count is None:
        spiked = system.spiked
        frame = Frame(spiked, np.eye(spiked.rank), 1 / np.sqrt(1 + spiked.beta), sample=False)
        y, take = np.empty((0, spiked.rank)), spiked.whitened(stream)
    else:
        exact = principal and count >= system.rank + 2
        prepared = (fastica.without_samples if exact else fastica.of_samples)(system, stream)
        frame, y = prepared.frame, prepared.y
        take = cyclic(y)
    return frame, take, fastica.starts(frame, 1, model.first_overlap(system), stream)[0], y


def _result(frame: Frame, path: Array, why: str, save: Save) -> PointResult:
    values = {"overlap": frame.along(path)}
    if "w_path" in save.extra:
        values["w_path"] = frame.coordinates(path)
    return PointResult(values, why)


def _sgd(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    eta, last = system.eta or 0.0, float(times[-1])
    if last / eta > MOST_WHOLE:
        raise HdicaError(
            f"eta = {eta:g} is not allowed with times up to {last:g} (time/eta <= 2**53 steps)"
        )
    with one_thread():
        frame, take, w, y = _begun(system, SGD.name, seed)
        batch = len(y) if system.batch == "all" else int(system.batch)
        rate = eta * sign_of(system)
        path, why = descend(take, w, model.contrast(system), rate, batch, times, eta)
    return _result(frame, path, why, save)


def _flow(
    system: SubspaceICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    with one_thread():
        frame, _, w, y = _begun(system, FLOW.name, seed)
        path = flow(y, w, model.contrast(system), sign_of(system), times)
    return _result(frame, path, "", save)


def _sample_seconds(system: SubspaceICA) -> float:
    if model.samples_of(system) is None:
        return 0.0
    exact = model.kind_of_space(system) == "principal"
    return fastica.rotated_seconds(system) if exact else fastica.drawing_seconds(system)


def _sgd_seconds(system: SubspaceICA, n: int | None, last: float) -> float:
    count, d = model.samples_of(system) or 0, model.size_of_space(system)
    batch = count if system.batch == "all" else float(system.batch)
    fresh = 3e-8 * d if model.samples_of(system) is None else 0.0
    steps = last / (system.eta or 1.0)
    return 1e-3 + _sample_seconds(system) + steps * batch * (1.2e-8 + 2e-9 * d + fresh)


def _flow_seconds(system: SubspaceICA, n: int | None, last: float) -> float:
    count, d = model.samples_of(system) or 0, model.size_of_space(system)
    return 1e-2 + _sample_seconds(system) + (300 + 5 * last) * count * (1e-8 + 1.5e-9 * d)


SGD = replace(
    FASTICA,
    name="projected_sgd",
    rank=3,
    about=About(
        text="projected gradient steps on batches, of fresh samples or of n, until eta k = t",
        accuracy="exact in law",
        equations=f"{PAPER}, (B.5); fresh samples are those of the reduced model (4)",
        engines=(*AT_FINITE, AVERAGES),
    ),
    outputs=Outputs(
        (Output("overlap", _AT, "overlap of the estimate with the signal in whitened samples"),),
        extras=(Output("w_path", (*_AT, "component"), "whitened estimate along the spikes u"),),
    ),
    cost=Cost(
        seconds=_sgd_seconds,
        memory=lambda system, *_: (model.samples_of(system) or 0) * model.size_of_space(system),
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
