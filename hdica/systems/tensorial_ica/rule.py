"""The rule of Li and Jordan 2021 on many seeds side by side, its start and its samples.

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
from hdica.finite.random.streams import Stream
from hdica.finite.record import (
    Values,
    aligned_zeros,
    contiguous,
    fill_step_sizes,
    not_finite,
    steps_of,
)
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source, make_source
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]


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
    start: Callable[[np.random.Generator], Array]  # v(0), shape (d,), of length one

    @property
    def alike(self) -> Hashable:
        """What paths in one call must have in common."""
        return self.dimension, self.source


def first(rule: TensorialRule, stream: Stream) -> Array:
    """v(0), shape (d,), from the stream ``"start"``."""
    v = np.asarray(rule.start(stream("start")), dtype=float)
    if v.shape != (rule.dimension,) or not abs(dot(v, v) - 1) < 1e-9:
        raise HdicaError(
            f"start: a vector of shape {v.shape} and length {np.sqrt(np.sum(v * v)):.9g} is not "
            f"allowed (shape ({rule.dimension},) and length 1)"
        )
    return v


def sizes(schedule: Schedule, when: Array) -> Array:
    """Step sizes of steps that begin at these times."""
    if schedule.constant is not None:
        return np.full(when.shape, schedule.constant)
    return contiguous(schedule.value(when))


def sentence(step: int) -> str:
    """Why a path stopped."""
    return f"{not_finite()} at step {step} (t = {step:.6g})"


def nearest_axis(v: Array) -> tuple[float, int]:
    """Squared tangent of the angle to the nearest axis, and the index of that axis.

    The other squares are summed: 1 - v_m^2 would have no digits near the axis.
    """
    m = int(np.argmax(np.abs(v)))
    squares = v**2
    largest = float(squares[m])
    squares[m] = 0.0
    return float(np.sum(squares)) / largest, m


def unit(w: Array) -> Array:
    """A vector over its length.

    Raises
    ------
    HdicaError
        If it is zero or not finite.
    """
    size = math.sqrt(float(np.sum(w * w)))
    if not 0 < size < math.inf:
        raise HdicaError(f"start of length {size} is not allowed (a direction: finite, not zero)")
    return np.asarray(w / size)


Draw = Callable[[int], Array]
_STEPS = 1024
"""Most steps of a block."""
_NUMBERS = 2**14
"""Numbers of a block, if it has more than one step."""
_WORDS_AT_ONCE = 2**16


def block_of(dimension: int) -> int:
    """Steps of a block of a source that samples for itself."""
    return max(1, min(_STEPS, _NUMBERS // dimension))


def kind_of(source: Source) -> int:
    """How the kernels draw from a source: see :mod:`.kernels`."""
    from hdica.systems.tensorial_ica import kernels

    compiled = {
        "rademacher": kernels.RADEMACHER,
        "uniform": kernels.UNIFORM,
        "laplace": kernels.LAPLACE,
    }
    # A source of the same label that is another object may have another sampler.
    if source.label in compiled and make_source(source.label) is source:
        return compiled[source.label]
    return kernels.GIVEN


def draws(source: Source, dimension: int, generator: np.random.Generator) -> Draw:
    """The samples that the kernels draw from a generator, which is used up by it.

    Parameters
    ----------
    source
        Law of the d components of a sample.
    dimension
        d.
    generator
        The stream ``"source"`` of a point; it must have drawn nothing yet.

    Returns
    -------
    Callable
        ``next(count)``: the next ``count`` samples, shape (count, d), bit for bit those of
        the kernels.
    """
    from hdica.systems.tensorial_ica import kernels

    kind = kind_of(source)
    if kind == kernels.RADEMACHER:
        return lambda count: _signs(generator, count, dimension)
    if kind != kernels.GIVEN:
        return lambda count: _numbers(kind, generator, count, dimension)
    return _Blocks(source, dimension, generator).take


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


class _Blocks:
    """Samples of a source in blocks of steps, handed out in any portions."""

    def __init__(self, source: Source, dimension: int, generator: np.random.Generator) -> None:
        self.source, self.dimension, self.generator = source, dimension, generator
        self.left = np.zeros((0, dimension))

    def block(self) -> Array:
        """The next block, shape (steps, d)."""
        steps = block_of(self.dimension)
        numbers = self.source.sample(self.generator, steps * self.dimension)
        return np.asarray(numbers, dtype=float).reshape(steps, self.dimension)

    def take(self, count: int) -> Array:
        """The next ``count`` samples, shape (count, d)."""
        parts, missing = [self.left[:count]], count - len(self.left)
        self.left = self.left[count:]
        while missing > 0:
            block = self.block()
            parts.append(block[:missing])
            self.left = block[missing:]
            missing -= len(block)
        return np.concatenate(parts)


WINDOW = 4096
"""Steps for which a schedule is evaluated at once."""
_COORDINATES = 2**22
"""Coordinates of a lane that are moved in one call of the kernel: some hundredths of a second."""


@dataclass(eq=False)
class Lanes:
    """Arrays that the kernel of eight paths updates; lanes left over stand still."""

    kind: int  # of the samples, see kernels
    x: Array  # v times a number near one, shape (d, LANES)
    law: Array  # rows of the kernel's state, shape (4, LANES)
    z: Array  # room for a sample, and behind it the samples of a window if they are given
    words: NDArray[np.uint64]  # signs of a sample
    generators: NDArray[np.uint64]  # state of the lanes

    @classmethod
    def begin(cls, rules: Sequence[TensorialRule], streams: Sequence[Stream]) -> Lanes:
        """The state at t = 0."""
        from hdica.finite.random.gaussian import side_by_side
        from hdica.systems.tensorial_ica import kernels

        d, kind = rules[0].dimension, kind_of(rules[0].source)
        x, law = aligned_zeros(d, LANES), aligned_zeros(4, LANES)
        x[0], law[kernels.NORM] = 1.0, 1.0
        for lane, (rule, stream) in enumerate(zip(rules, streams, strict=True)):
            # Adding zero leaves no -0, which a step would turn into 0.
            x[:, lane] = first(rule, stream) + 0.0
            law[kernels.NORM, lane] = dot(x[:, lane], x[:, lane])
            law[kernels.SIGN, lane] = rule.sign or 0.0
            law[kernels.ADAPTIVE, lane] = rule.sign is None
        behind = block_of(d) * d * LANES if kind == kernels.GIVEN else 0
        words = aligned_zeros(-(-d // kernels.BITS) * LANES).view(np.uint64)
        generators = side_by_side([stream("source") for stream in streams])
        assert np.all(generators[3 * LANES :] == generators[-1])
        return cls(kind, x, law, aligned_zeros(d * LANES + behind), words, generators)

    def advance(self, eta: Array, done: int, steps: int, at: int = 0) -> NDArray[np.int64]:
        """Steps from ``done`` on, with the given samples from row ``at`` on; those made, by lane.

        ``eta`` has a row for every step, or one for all of them.
        """
        from hdica.systems.tensorial_ica.kernels import tensorial_steps

        made = np.empty(LANES, dtype=np.int64)
        # The sample before is no longer needed when a call begins: its place is the room.
        given = self.z[at * self.x.size :]
        tensorial_steps(
            self.kind,
            self.generators,
            self.x,
            given,
            self.words,
            self.law,
            eta,
            (done, steps),
            made,
        )
        return made


class Window:
    """Step sizes, and samples if the kernel draws none, of a window of steps aligned to t = 0."""

    def __init__(self, rules: Sequence[TensorialRule], streams: Sequence[Stream]) -> None:
        from hdica.systems.tensorial_ica.kernels import GIVEN

        rule, self.low, self.high = rules[0], 0, 0
        self.schedules = [rule.schedule for rule in rules]
        if len({id(schedule) for schedule in self.schedules}) == 1:
            self.schedules = self.schedules[:1]
        self.fixed = all(schedule.constant is not None for schedule in self.schedules)
        self.draws: list[Draw] = []
        if kind_of(rule.source) == GIVEN:
            self.draws = [draws(rule.source, rule.dimension, s("source")) for s in streams]
        self.length = max(1, _COORDINATES // rule.dimension)
        if self.draws:
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
        d = lanes.x.shape[0]
        for lane, draw in enumerate(self.draws):
            behind = lanes.z[lanes.x.size :].reshape(self.length, d, LANES)
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

    A point's numbers do not depend on the points beside it, nor on the output times.

    Parameters
    ----------
    rules, streams
        One of each a point; the streams ``"start"`` and ``"source"`` are used.
    times
        Output times in steps, shape (T,), increasing.
    keep
        ``{"v"}`` for the vectors.

    Returns
    -------
    list
        Of each point a dictionary of arrays of shape (T,), NaN after a divergence, and the sentence
        that says at which step it diverged, or "": ``tan2`` = (1 - v_m^2)/v_m^2, ``nearest`` =
        m = argmax abs(v_k), ``sign``, 0 where none was estimated yet, and on request ``v``, shape
        (T, d).
    """
    lanes, window = Lanes.begin(rules, streams), Window(rules, streams)
    paths = [_room(rule, times, keep) for rule in rules]
    why, done = [""] * len(rules), 0
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
        _see(lanes, rules, why, paths, index, target)
    return list(zip(paths, why, strict=True))


def _room(rule: TensorialRule, times: Array, keep: frozenset[str]) -> dict[str, Array]:
    shapes = {"tan2": (), "nearest": (), "update_sign": (), "v": (rule.dimension,)}
    names = [name for name in shapes if name != "v" or name in keep]
    return {name: np.full((times.size, *shapes[name]), np.nan) for name in names}


def _see(
    lanes: Lanes,
    rules: Sequence[TensorialRule],
    why: Sequence[str],
    paths: Sequence[dict[str, Array]],
    index: int,
    step: int,
) -> None:
    """Record the present state of the points that go on."""
    from hdica.systems.tensorial_ica.kernels import TOTAL, nearest

    tangent, component = np.empty(LANES), np.empty(LANES)
    nearest(lanes.x, tangent, component)
    for lane, rule in enumerate(rules):
        if why[lane]:
            continue
        values = paths[lane]
        values["tan2"][index], values["nearest"][index] = tangent[lane], component[lane]
        sign = rule.sign
        if sign is None:
            sign = float(np.copysign(1.0, lanes.law[TOTAL, lane])) if step else 0.0
        values["update_sign"][index] = sign
        if "v" in values:
            x = lanes.x[:, lane]
            values["v"][index] = x / np.sqrt(dot(x, x))
