"""The rule of Li and Jordan 2021 on many seeds side by side: its source, start and samples.

Samples Z are d independent numbers a step, the same for every kernel. Signs take one bit each of
the raw words of the generator, from the highest to the lowest, and a step begins with a new word;
uniform and Laplace numbers take one word each. Every other source samples for itself, in blocks of
steps that are aligned to t = 0, so that neither output times nor the size of a request change a
number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream, side_by_side
from hdica.finite.record import Values, aligned_zeros, fill_step_sizes, not_finite, steps_of
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source, make_source
from hdica.limits.averages.expectations import cumulants
from hdica.process.progress import check_deadline

HIGHEST = 8  # order of the highest moment: E y^6 Z^2 of the noise
_NEEDED = {
    4: "the drift, of rate |mu4 - 3|",
    6: "the fluctuations E y^6 of a step",
    8: "the noise E y^6 Z^2 within the support of a critical point",
}
_GAUSSIAN = 1e-9


@dataclass(frozen=True)
class Moments:
    """What drift and noise need of a standardised source Z; infinite where it is not finite."""

    mu3: float  # E Z^3
    mu4: float
    mu6: float
    cumulants: tuple[float, ...]  # kappa_0 = 0 to kappa_8, nan where a moment is infinite
    symmetric: bool  # whether -Z has the same law

    @property
    def beta(self) -> float:
        """|mu4 - 3|, the rate of the drift per step size."""
        return abs(self.mu4 - 3.0)

    @property
    def sign(self) -> float:
        """sign(mu4 - 3), with which the rule multiplies its step."""
        return math.copysign(1.0, self.mu4 - 3.0)


def moments_of(source: Source, order: int = HIGHEST) -> Moments:
    """Moments of a source; refused if mu4 = 3, or one up to ``order`` (4, 6, 8) is not finite."""
    moments = [source.moment(k) for k in range(HIGHEST + 1)]
    for k in range(order + 1):
        if not math.isfinite(moments[k]):
            need = min(one for one in _NEEDED if one >= k)
            raise HdicaError(
                f"source: {source.label} has no finite moment of order {k}, which {_NEEDED[need]} "
                "of the tensorial rule needs"
            )
    if abs(moments[4] - 3.0) < _GAUSSIAN:
        raise HdicaError(
            f"source: {source.label} with a fourth moment of 3 is not allowed (as of a Gaussian: "
            "the drift |mu4 - 3| of the tensorial rule vanishes)"
        )
    finite = next((k for k, m in enumerate(moments) if not math.isfinite(m)), HIGHEST + 1) - 1
    kappa = np.full(HIGHEST + 1, math.nan)
    kappa[: finite + 1] = cumulants(source, finite)
    table = tuple(float(k) for k in kappa)
    return Moments(moments[3], moments[4], moments[6], table, source.symmetric)


@dataclass(frozen=True, eq=False)
class TensorialRule:
    """v' = Pi{v + eta sgn y^3 Z}, y = v.Z, in the coordinates v = A'u of the components.

    Pi makes a vector of length one; the data are X = A Z with orthonormal A, so that u follows the
    same rule on X. One unit of time is one step.
    """

    dimension: int  # d
    source: Source  # law of the independent Z_k
    sign: float | None  # sgn; None for the sign of the mean of y^4 - 3 so far
    schedule: Schedule  # eta of step k at t = k
    start: Callable[[np.random.Generator], Array]  # v(0) of the stream "start", of length one

    @property
    def alike(self) -> Hashable:
        """What paths in one call must have in common."""
        return self.dimension, self.source


def sentence(step: int) -> str:
    """Why a path stopped."""
    return f"{not_finite()} at step {step} (t = {step:.6g})"


def nearest_axis(v: Array) -> tuple[float, int]:
    """Squared tangent of the angle to the nearest axis, from the other squares; its index."""
    m = int(np.argmax(np.abs(v)))
    squares = v**2
    largest = squares[m]
    squares[m] = 0.0
    return float(np.sum(squares)) / largest, m


def unit(w: Array) -> Array:
    """A vector over its length; refused if that is zero or not finite."""
    size = math.sqrt(np.sum(w * w))
    if not 0 < size < math.inf:
        raise HdicaError(f"start of length {size} is not allowed (a direction: finite, not zero)")
    return w / size


Draw = Callable[[int], Array]
_STEPS, _NUMBERS = 1024, 2**14  # most steps of a block, and numbers, if it has more than one step
_WORDS_AT_ONCE = 2**16


def block_of(dimension: int) -> int:
    """Steps of a block of a source that samples for itself."""
    return max(1, min(_STEPS, _NUMBERS // dimension))


def kind_of(source: Source) -> int:
    """How the kernels draw from a source: see :mod:`.kernels`."""
    from hdica.systems.tensorial_ica import kernels

    # A source of the same label that is another object may have another sampler.
    compiled = source.label in ("rademacher", "uniform", "laplace")
    if compiled and make_source(source.label) is source:
        return int(getattr(kernels, source.label.upper()))
    return kernels.FROM_ARRAY


def draws(source: Source, dimension: int, generator: np.random.Generator) -> Draw:
    """The samples that the kernels draw from a generator, which is used up by it.

    ``next(count)``: the next ``count`` samples, shape (count, d), bit for bit those of the kernels,
    if the generator, the stream ``"source"`` of a point, has drawn nothing yet.
    """
    from hdica.systems.tensorial_ica import kernels

    kind = kind_of(source)
    if kind == kernels.RADEMACHER:
        return lambda count: _signs(generator, count, dimension)
    if kind != kernels.FROM_ARRAY:
        return lambda count: _numbers(kind, generator, count, dimension)
    steps, left = block_of(dimension), np.zeros((0, dimension))

    def take(count: int) -> Array:
        nonlocal left
        parts, missing = [left], count - len(left)
        for _ in range(-(-missing // steps)):
            numbers = np.asarray(source.sample(generator, steps * dimension), dtype=float)
            parts.append(numbers.reshape(steps, dimension))
        whole = np.concatenate(parts)
        left = whole[count:]
        return whole[:count]

    return take


def _signs(generator: np.random.Generator, count: int, dimension: int) -> Array:
    """Signs from the bits of words; those left over of a step's last word are thrown away."""
    words = -(-dimension // 64)
    raw = generator.bit_generator.random_raw(count * words)
    octets = np.asarray(raw, dtype=">u8").view(np.uint8).reshape(count, 8 * words)
    bits = np.unpackbits(octets, axis=1)[:, :dimension]
    return np.asarray(1.0 - 2.0 * bits, dtype=float)


def _numbers(kind: int, generator: np.random.Generator, count: int, dimension: int) -> Array:
    """Numbers of one word each."""
    from hdica.systems.tensorial_ica.kernels import numbers_of

    drawn = np.empty(count * dimension)
    for low in range(0, drawn.size, _WORDS_AT_ONCE):
        size = min(_WORDS_AT_ONCE, drawn.size - low)
        words = np.zeros(size + -size % LANES, dtype=np.uint64)
        words[:size] = generator.bit_generator.random_raw(size)
        numbers = np.empty(words.size)
        numbers_of(kind, words, numbers)
        drawn[low : low + size] = numbers[:size]
    return drawn.reshape(count, dimension)


WINDOW = 4096  # steps for which a schedule is evaluated at once
_COORDINATES = 2**22
"""Coordinates of a lane that are moved in one call of the kernel: some hundredths of a second."""


class Lanes:
    """Arrays that the kernel of eight paths updates, as at t = 0; lanes left over stand still.

    They are ``x``, v times a number near one, shape (d, LANES), and ``law``, the rows of the
    kernel's state, shape (4, LANES); ``z`` is room for a sample, and behind it for the samples of a
    window if they are given, and ``words`` for the signs of a sample.
    """

    def __init__(self, rules: Sequence[TensorialRule], streams: Sequence[Stream]) -> None:
        from hdica.systems.tensorial_ica import kernels

        d, self.kind = rules[0].dimension, kind_of(rules[0].source)
        self.x, self.law = aligned_zeros(d, LANES), aligned_zeros(4, LANES)
        self.x[0], self.law[kernels.NORM] = 1.0, 1.0
        for lane, (rule, stream) in enumerate(zip(rules, streams, strict=True)):
            # Adding zero leaves no -0, which a step would turn into 0.
            self.x[:, lane] = rule.start(stream("start")) + 0.0
            self.law[kernels.NORM, lane] = dot(self.x[:, lane], self.x[:, lane])
            self.law[kernels.SIGN, lane] = rule.sign or 0.0
            self.law[kernels.ADAPTIVE, lane] = rule.sign is None
        behind = block_of(d) * d * LANES if self.kind == kernels.FROM_ARRAY else 0
        self.z = aligned_zeros(d * LANES + behind)
        self.words = aligned_zeros(-(-d // kernels.BITS) * LANES).view(np.uint64)
        self.generators = side_by_side([stream("source") for stream in streams])
        assert np.all(self.generators[3 * LANES :] == self.generators[-1])

    def advance(self, eta: Array, done: int, steps: int, at: int = 0) -> NDArray[np.int64]:
        """Steps from ``done`` on, with the given samples from row ``at`` on; those made, by lane.

        ``eta`` has a row for every step, or one for all of them.
        """
        from hdica.systems.tensorial_ica.kernels import tensorial_steps

        made = np.empty(LANES, dtype=np.int64)
        # The sample before is no longer needed when a call begins: its place is the room.
        z = self.z[at * self.x.size :]
        arrays = (self.generators, self.x, z, self.words, self.law, eta)
        tensorial_steps(self.kind, *arrays, (done, steps), made)
        return made


class Window:
    """Step sizes, and samples if the kernel draws none, of a window of steps aligned to t = 0."""

    def __init__(self, rules: Sequence[TensorialRule], streams: Sequence[Stream]) -> None:
        from hdica.systems.tensorial_ica.kernels import FROM_ARRAY

        rule, self.low, self.high = rules[0], 0, 0
        own = {id(rule.schedule): rule.schedule for rule in rules}
        self.schedules = list(own.values()) if len(own) == 1 else [r.schedule for r in rules]
        self.fixed = all(schedule.constant is not None for schedule in self.schedules)
        self.draws: list[Draw] = []
        self.length = max(1, _COORDINATES // rule.dimension)
        if kind_of(rule.source) == FROM_ARRAY:
            self.draws = [draws(rule.source, rule.dimension, s("source")) for s in streams]
            self.length = block_of(rule.dimension)
        elif not self.fixed:
            self.length = min(self.length, WINDOW)
        columns = 1 if len(self.schedules) == 1 else LANES
        self.eta = np.zeros((1 if self.fixed else self.length, columns))

    def reach(self, step: int, lanes: Lanes) -> None:
        """Go on to the window that a step is in, if it is not the present one."""
        if step < self.high:
            return
        if not (self.fixed and self.high):
            when = step + np.arange(len(self.eta), dtype=float)
            fill_step_sizes(self.eta, self.schedules, when)
        self.low, self.high = step, step + self.length
        for lane, draw in enumerate(self.draws):
            behind = lanes.z[lanes.x.size :].reshape(self.length, -1, LANES)
            behind[:, :, lane] = draw(self.length)

    def part(self, step: int, stop: int) -> Array:
        """Step sizes of these steps, a row each or one for all."""
        return self.eta if self.fixed else self.eta[step - self.low : stop - self.low]


def run_together(
    rules: Sequence[TensorialRule],
    times: Array,
    streams: Sequence[Stream],
    keep: frozenset[str] = frozenset(),
) -> list[Values]:
    """Trajectories of at most eight points with equal :attr:`TensorialRule.alike`.

    A point's numbers depend neither on other points nor on the output times, in steps and
    increasing, shape (T,). Of each point it returns arrays of shape (T,), NaN after a divergence,
    and at which step it diverged, or "": ``tan2`` = (1 - v_m^2)/v_m^2, ``nearest`` = m = argmax
    abs(v_k), ``update_sign``, 0 where none was estimated yet, and if ``keep`` has it ``v``, shape
    (T, d).
    """
    from hdica.systems.tensorial_ica.kernels import TOTAL, nearest

    lanes, window = Lanes(rules, streams), Window(rules, streams)
    paths = [blank(rule, times, keep) for rule in rules]
    why, done = [""] * len(rules), 0
    tangent, component = np.empty(LANES), np.empty(LANES)
    for index, target in enumerate(steps_of(times, 1).tolist()):
        while done < target and not all(why):
            check_deadline()
            window.reach(done, lanes)
            stop, at = min(target, window.high), done - window.low if window.draws else 0
            made = lanes.advance(window.part(done, stop), done, stop - done, at)
            for lane in range(len(rules)):
                if made[lane] < stop - done and not why[lane]:
                    why[lane] = sentence(done + int(made[lane]))
            done = stop
        nearest(lanes.x, tangent, component)
        for lane, (rule, path) in enumerate(zip(rules, paths, strict=True)):
            if why[lane]:
                continue
            sign, x = rule.sign, lanes.x[:, lane]
            if sign is None:
                sign = np.copysign(1.0, lanes.law[TOTAL, lane]) if target else 0.0
            path["tan2"][index], path["nearest"][index] = tangent[lane], component[lane]
            path["update_sign"][index] = sign
            if "v" in path:
                path["v"][index] = x / np.sqrt(dot(x, x))
    return list(zip(paths, why, strict=True))


def blank(rule: TensorialRule, times: Array, keep: frozenset[str]) -> dict[str, Array]:
    """Room for a trajectory, and for the vectors that are kept of it: v, or u of the data."""
    vectors = {name: (rule.dimension,) for name in ("v", "u") if name in keep}
    shapes = {"tan2": (), "nearest": (), "update_sign": ()} | vectors
    return {name: np.full((times.size, *shape), np.nan) for name, shape in shapes.items()}
