"""Trajectories of online tensorial ICA (Li and Jordan 2021): many seeds side by side, or one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import LANES, Stream
from hdica.finite.record import Values, aligned_zeros, fill_step_sizes, steps_of
from hdica.ingredients.quadrature import dot
from hdica.process.progress import check_deadline
from hdica.systems.tensorial_ica.finite.draws import Draw, block_of, draws, kind_of
from hdica.systems.tensorial_ica.finite.path import TensorialRule as TensorialRule
from hdica.systems.tensorial_ica.finite.path import first, sentence
from hdica.systems.tensorial_ica.finite.single import run_observed as run_observed
from hdica.systems.tensorial_ica.finite.single import run_vessel as run_vessel

Array = NDArray[np.float64]

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
        from hdica.systems.tensorial_ica.finite import kernels

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
        from hdica.systems.tensorial_ica.finite.kernels import tensorial_steps

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
        from hdica.systems.tensorial_ica.finite.kernels import GIVEN

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
    found = [_room(rule, times, keep) for rule in rules]
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
        _see(lanes, rules, why, found, index, target)
    return list(zip(found, why, strict=True))


def _room(rule: TensorialRule, times: Array, keep: frozenset[str]) -> dict[str, Array]:
    shapes = {"tan2": (), "nearest": (), "update_sign": (), "v": (rule.dimension,)}
    names = [name for name in shapes if name != "v" or name in keep]
    return {name: np.full((times.size, *shapes[name]), np.nan) for name in names}


def _see(
    lanes: Lanes,
    rules: Sequence[TensorialRule],
    why: Sequence[str],
    found: Sequence[dict[str, Array]],
    index: int,
    step: int,
) -> None:
    """Record the present state of the points that go on."""
    from hdica.systems.tensorial_ica.finite.kernels import TOTAL, nearest

    tangent, component = np.empty(LANES), np.empty(LANES)
    nearest(lanes.x, tangent, component)
    for lane, rule in enumerate(rules):
        if why[lane]:
            continue
        values = found[lane]
        values["tan2"][index], values["nearest"][index] = tangent[lane], component[lane]
        sign = rule.sign
        if sign is None:
            sign = float(np.copysign(1.0, lanes.law[TOTAL, lane])) if step else 0.0
        values["update_sign"][index] = sign
        if "v" in values:
            x = lanes.x[:, lane]
            values["v"][index] = x / np.sqrt(dot(x, x))
