"""Offline baselines: samples drawn, whitened and averaged over, a block at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import RUN
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems import method
from hdica.systems.fields import source
from hdica.systems.method import COMMON, Array, Output, PointResult
from hdica.systems.tensorial_ica import system as model
from hdica.systems.tensorial_ica.rule import draws, nearest_axis, unit
from hdica.systems.tensorial_ica.simulations import mixing, streams
from hdica.systems.tensorial_ica.system import AT_FINITE, HOME, PAPER, TAN2, TensorialICA
from hdica.systems.tensorial_ica.transient import ANY_SIGN

Blocks = Callable[[], Iterable[Array]]
"""``blocks()`` begins a pass over the samples: blocks of shape (block, d), always the same ones."""
IN_MEMORY = 20_000_000
"""Most numbers of samples, count times d, that are kept; more are drawn anew in every pass."""


def passes(
    begin: Callable[[], Callable[[int], Array]],
    dimension: int,
    count: int,
    mixing: Array | None = None,
) -> Blocks:
    """Passes over the first ``count`` samples of a stream, X = A Z with orthonormal ``mixing`` A.

    ``begin()(size)`` are the first samples Z of the stream, shape (size, d); A is the identity if
    None. Refused if there are fewer samples than dimensions.
    """
    if count <= dimension:
        raise HdicaError(
            f"samples = {count} is not allowed (more than the dimension {dimension}, "
            "else their covariance has no inverse)"
        )

    def draw() -> Iterator[Array]:
        take = begin()
        for begun in range(0, count, RUN):
            check_deadline()
            block = take(min(RUN, count - begun))
            yield block if mixing is None else block @ mixing.T

    if count * dimension > IN_MEMORY:
        return draw
    with one_thread():
        stored = list(draw())
    return lambda: stored


def whitening_of(blocks: Blocks) -> tuple[Array, Array]:
    """Mean c and K = C^-1/2 of samples, in one pass; refused if their covariance C is singular."""
    count, first, second = 0, np.zeros(()), np.zeros(())
    with one_thread():
        for block in blocks():
            check_deadline()
            count += len(block)
            first = first + np.sum(block, axis=0)
            second = second + block.T @ block
        centre = first / count
        values, vectors = np.linalg.eigh(second / count - np.outer(centre, centre))
        if not values[0] > 1e-12 * values[-1]:
            raise HdicaError(
                f"samples = {count} is not allowed with whitening (their covariance in "
                f"{centre.size} dimensions has no inverse)"
            )
        return centre, (vectors / np.sqrt(values)) @ vectors.T


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples x = K (X - c), as averages over them: they are never stored; x = X if None."""

    blocks: Blocks
    white: tuple[Array, Array] | None  # c and K

    def unmixing(self, w: Array) -> Array:
        """B with w.x = b.(X - c)."""
        return w if self.white is None else self.white[1] @ w

    def projections(self, *directions: Array) -> Iterator[tuple[Array, list[Array]]]:
        """Blocks of X - c, with w.x for every direction w."""
        ways = [self.unmixing(w) for w in directions]
        for block in self.blocks():
            centred = block if self.white is None else block - self.white[0]
            yield centred, [centred @ b for b in ways]

    def cubic(self, w: Array) -> tuple[Array, float, float]:
        """Averages of y^3 x, of y^2 and of y^4, with y = w.x."""
        push, square, fourth, count = np.zeros(w.size), 0.0, 0.0, 0
        for centred, (y,) in self.projections(w):
            y2 = y * y
            push += (y2 * y) @ centred
            square += np.sum(y2)
            fourth += np.sum(y2 * y2)
            count += len(y)
        return self.unmixing(push) / count, square / count, fourth / count

    def quartic(self, w: Array, direction: Array) -> Array:
        """Averages of C(4, j) y^(4-j) z^j for j = 0..4, with y = w.x and z = direction.x."""
        sums, count = np.zeros(5), 0
        for _, (y, z) in self.projections(w, direction):
            y2, yz, z2 = y * y, y * z, z * z
            products = (y2 * y2, 4 * y2 * yz, 6 * y2 * z2, 4 * yz * z2, z2 * z2)
            sums += [np.sum(p) for p in products]
            count += len(y)
        return sums / count


TOLERANCE = 1e-14
"""Of 1 - abs(w'.w) of the last two iterates, below which they have converged: half of the squared
angle between them."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """One component of offline ICA."""

    vector: Array  # unit u, whose u.X is the estimate of a source up to scale, shape (d,)
    tan2: float  # squared tangent of the angle between u and the nearest column of A
    component: int  # index of that column
    iterations: int
    converged: bool


def batch_fastica(
    blocks: Blocks,
    start: Array,
    mixing: Array | None = None,
    *,
    whiten: bool = True,
    most: int = 200,
) -> Estimate:
    """One-unit FastICA with the cubic contrast: w <- Pi{mean(y^3 x) - 3 mean(y^2) w}.

    The first component of FastICA(algorithm="deflation", fun="cube") of scikit-learn, from passes
    over the samples X and the first w, shape (d,); the error is that to the true ``mixing`` A,
    shape (d, d), None for the identity. ``whiten`` makes the sample mean and covariance 0 and I, as
    the model has them in expectation. What has not converged after ``most`` iterations is given up.

    Refused if the start is no direction, or the sample covariance has no inverse.
    """

    def update(samples: Samples, w: Array) -> Array:
        push, square, _ = samples.cubic(w)
        return push - 3 * square * w

    return _iterate(update, blocks, start, mixing, whiten, most)


def batch_gradient(
    blocks: Blocks,
    start: Array,
    mixing: Array | None = None,
    *,
    sign: float | None = None,
    whiten: bool = True,
    most: int = 1000,
) -> Estimate:
    """Gradient ascent of sgn mean(y^4) on the sphere, with an exact line search.

    Along a great circle the objective is a quartic form in cosine and sine, whose highest point
    comes from a second pass. Parameters and errors are those of :func:`batch_fastica`, and
    ``sign``, sgn = sign(mu4 - 3), None for that of mean(y^4) - 3 mean(y^2)^2 of the first
    projection.
    """

    def update(samples: Samples, w: Array) -> Array:
        nonlocal sign
        push, square, fourth = samples.cubic(w)
        if sign is None:
            sign = math.copysign(1.0, fourth - 3 * square * square)
        along = push - np.sum(push * w) * w
        size = math.sqrt(np.sum(along * along))
        if size == 0:
            return w
        direction = sign * along / size
        angle = highest(sign * samples.quartic(w, direction))
        return math.cos(angle) * w + math.sin(angle) * direction

    return _iterate(update, blocks, start, mixing, whiten, most)


def highest(form: Array) -> float:
    """Angle in [-pi/2, pi/2] at which sum_j form_j cos^(4-j) sin^j is largest, shape (5,).

    With t = tan(angle) the form is P(t)/(1 + t^2)^2; where its derivative vanishes,
    P'(t) (1 + t^2) = 4 t P(t), of which the terms t^5 cancel.
    """
    a, b, c, d, e = form
    slopes = [-d, 4 * e - 2 * c, 3 * (d - b), 2 * c - 4 * a, b]
    with np.errstate(all="ignore"):
        roots = np.roots(slopes)
    # A double root may come out as a pair with imaginary parts of the root of the rounding.
    angles = np.append(np.arctan(roots.real[np.abs(roots.imag) < 1e-6 * (1 + abs(roots))]), 0.5)
    angles[-1] = math.pi / 2
    powers = np.arange(5)[:, None]
    terms = form[:, None] * np.cos(angles) ** (4 - powers) * np.sin(angles) ** powers
    return angles[np.argmax(np.sum(terms, axis=0))]


def _iterate(
    update: Callable[[Samples, Array], Array],
    blocks: Blocks,
    start: Array,
    mixing: Array | None,
    whiten: bool,
    most: int,
) -> Estimate:
    """Iterate w <- Pi update(w) until it stands still, up to its sign, and measure its error."""
    w = unit(start)
    converged, iterations = False, 0
    with one_thread():
        samples = Samples(blocks, whitening_of(blocks) if whiten else None)
        while iterations < most and not converged:
            check_deadline()
            new = unit(update(samples, w))
            converged = abs(abs(float(np.sum(new * w))) - 1) < TOLERANCE
            w, iterations = new, iterations + 1
        u = unit(samples.unmixing(w))
        tan2, component = nearest_axis(u if mixing is None else mixing.T @ u)
    return Estimate(u, tan2, component, iterations, converged)


def batch_level(source: Source, dimension: int, count: int, *, whiten: bool) -> float:
    """Mean tan^2 of both estimators over ``count`` = T samples, (d - 1) V/T to first order in 1/T.

    With w = e_1 + omega in the coordinates of the sources and D the error of the sample covariance,
    critical points of mean(y^4) on the sphere have, to first order for every k > 1,

        no whitening:  mean(Z_1^3 Z_k) + 3 omega_k = mu4 omega_k,
        whitening:     mean((Z_1^3 - mu3) Z_k) + 3 omega_k - (3 + mu4) D_1k/2 = mu4 omega_k,

    and unmix by u_k = omega_k, or by omega_k - D_1k/2. So V is mu6/(mu4 - 3)^2, that of the online
    rule with eta = 1/(beta t), and with whitening (mu6 - mu4^2 - mu3^2)/(mu4 - 3)^2 (Ollila 2010,
    IEEE Trans. Signal Process. 58), which is never more, and 0 for sources of two values.

    Refused if the source has no sixth moment, or a fourth moment of 3.
    """
    mu3, mu4, mu6 = (source.moment(k) for k in (3, 4, 6))
    if not (math.isfinite(mu6) and abs(mu4 - 3) > 1e-12):
        raise HdicaError(
            f"source {source.label} is not allowed (a finite sixth moment, and a fourth moment "
            f"other than 3; they are {mu6:g} and {mu4:g})"
        )
    variance = mu6 - mu4**2 - mu3**2 if whiten else mu6
    return (dimension - 1) * max(variance, 0.0) / ((mu4 - 3) ** 2 * count)


_AT = ("time",)
_NAMES = ("tan2", "nearest", "iterations", "converged")


def _estimates(
    algorithm: Callable[..., Estimate], signed: bool = False
) -> Callable[..., PointResult]:
    """The estimate of the samples until each time, and the start until they span d dimensions."""

    def run(
        system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
    ) -> PointResult:
        stream, d, law = streams(system)(seed or 0), system.dimension, source(system)
        sign = {"sign": model.moments(system).sign} if signed and system.sign == "known" else {}
        a, v0, rows = mixing(system, stream), model.rule(system).start(stream("start")), []
        with one_thread():
            start = v0 if a is None else a @ v0
        for count in steps_of(times, 1).tolist():
            try:
                # The samples that the rule sees, from the first on.
                blocks = passes(lambda: draws(law, d, stream("source")), d, count, a)
                fit = algorithm(blocks, start, a, **sign)
            except HdicaError:
                # Too few, or in one of the directions all alike, as those of discrete sources may
                # be: they cannot be whitened.
                fit = Estimate(start, *nearest_axis(v0), 0, False)
            rows.append((fit.tan2, fit.component, fit.iterations, fit.converged))
        columns = np.array(rows, dtype=float).reshape(-1, 4).T.copy()
        return PointResult(dict(zip(_NAMES, columns, strict=True)))

    return run


FASTICA = method.Simulation[TensorialICA](
    name="batch_fastica",
    role=method.Role.BASELINE,
    about=method.About(
        text="offline: whitening and one-unit FastICA (cubic) on the samples that `vector` sees",
        accuracy="exact",
        equations=(
            "Hyvarinen and Oja 1997, fixed-point iteration of the kurtosis of whitened samples"
        ),
        engines=AT_FINITE,
    ),
    outputs=method.Outputs(
        (
            TAN2,
            Output("nearest", _AT, "number of the nearest component"),
            Output("iterations", _AT, "iterations over all samples"),
            Output("converged", _AT, "1 if they converged, else 0"),
        )
    ),
    cost=method.Cost(
        # Some dozen passes over the samples, the first of which draws them, at a few output times.
        seconds=lambda system, n, last: (
            1e-3 + last * system.dimension * (1.5e-7 + 5e-10 * system.dimension)
        ),
        memory=lambda system, *_: system.dimension**2,
    ),
    scope=method.Scope(
        # Of all other fields, the step size too, the samples are drawn.
        ignores=frozenset({"bounds"}),
        n=method.Size.NONE,
    ),
    run=_estimates(batch_fastica),
)
GRADIENT = replace(
    FASTICA,
    name="batch_gradient",
    about=replace(
        FASTICA.about,
        text="offline: whitening and gradient ascent of the kurtosis on the same samples",
        equations=f"{PAPER}, offline procedure: whitening and gradient ascent of the kurtosis",
    ),
    run=_estimates(batch_gradient, signed=True),
)


def _level(system: TensorialICA, times: Array, *_: object) -> PointResult:
    counts = np.maximum(steps_of(times, 1), 1)
    law, d = source(system), system.dimension
    whitened, plain = (batch_level(law, d, 1, whiten=white) for white in (True, False))
    return PointResult({"tan2": whitened / counts, "unwhitened": plain / counts})


LEVEL = method.Limit[TensorialICA](
    name="batch_level",
    role=method.Role.OTHER,
    about=method.About(
        text="what both lead to for many samples, with and without whitening",
        accuracy="approximate",
        equations="Ollila 2010, deflation FastICA: law of the estimator for many samples",
        engines=("hdica.finite", *COMMON, HOME),
    ),
    cost=method.Cost(seconds=lambda system, n, last: 2e-3 + 1e-5 * system.dimension),
    outputs=method.Outputs(
        (
            Output("tan2", _AT, "mean of tan2 as the number of samples grows, to first order"),
            Output("unwhitened", _AT, "the same without whitening"),
        )
    ),
    scope=method.Scope(
        refuses=method.refusal(lambda system: batch_level(source(system), 2, 1, whiten=False)),
        ignores=ANY_SIGN | {"start", "eta", "schedule"},
    ),
    run=_level,
)
METHODS = (FASTICA, GRADIENT, LEVEL)
