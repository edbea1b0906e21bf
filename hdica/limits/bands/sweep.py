"""One sweep backwards along a remembered run, for any functions of the entries at any times.

A function v with v = h at time T and -dv/ds = J'v, J the limit's linearised operator, tells what a
small change of the density at any time does to <h> at T. With the noise of a step (:mod:`.noise`),

    n Var<h>_T = v_0' Sigma_0 v_0 + int_0^T 2g <v'^2> + s N s' ds,        s = (alpha, beta, gamma).

The first integral is never found from v'^2, which is singular where h jumps. It is

    <h^2>_T - <v^2>_0 + what Q and R add to <v^2> on the way,

here exactly so for the march itself, whose adjoint is taken step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.limits.bands.path import Cells, Step, restored
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
TOGETHER = 64
"""Columns of a block: as many as a processor's cache holds."""


@dataclass(frozen=True, eq=False)
class Target:
    """Functions h of the entries whose means at one time are asked for.

    ``values(cells)`` are their means over cells, shape (cells, functions), ``squares(cells, mass)``
    the means <h^2> at that time, shape (functions,), of ``count`` functions. Where it ``leads``, a
    solver refines until its variances are known.
    """

    time: float
    count: int
    values: Callable[[Cells], Array]
    squares: Callable[[Cells, Array], Array]
    leads: bool = True


Noise = Callable[[Array, Array], Array]
Seen = Callable[[Step, Array, Array], None]


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep leaves at t = 0: the columns there, and what the noise on the way adds.

    ``values`` of shape (cells, functions) are in the order of the targets, as ``way``, which is n
    Var<h> less what the start itself adds, and ``squares``, which is <h^2>.
    """

    cells: Cells
    values: Array
    way: Array
    squares: Array


def on_sphere(values: Array, squares: Array, mass: Array, cells: Cells) -> tuple[Array, Array]:
    """Functions less the multiple of x^2 that leaves <h' x> = 0, and their mean squares.

    E[x^2] does not fluctuate, so that their variance is the same; a step backwards would take it
    away at once.
    """
    radial, square = _shared_of(values, mass, cells)[1] / 2, cells.x[:, None] ** 2
    weighed = (cells.weights * mass)[:, None]
    cross, fourth = np.sum(weighed * values * square, axis=0), np.sum(weighed * square**2)
    return values - radial * square, squares - 2 * radial * cross + radial**2 * fourth


class _Stepped(NamedTuple):
    """A block of columns before a step, at both stages, and what the mean field adds."""

    values: Array
    first: Array
    second: Array
    gained: Array


def _stepped(step: Step, blocks: Sequence[Array]) -> list[_Stepped]:
    """One step backwards, block by block: what all columns share is found once."""
    from hdica.limits.bands.kernels import stages, step_back

    cells = step.cells
    known = stages(
        step.middle, step.after, step.met, step.rows, step.length, cells.compiled, step.law,
        cells.weights,
    )  # fmt: skip
    ends = step.before, step.after
    return [
        _Stepped(*step_back(one, *ends, *known, cells.compiled, cells.weights)) for one in blocks
    ]


def _shared_of(values: Array, mass: Array, cells: Cells) -> Array:
    from hdica.limits.bands.kernels import shared

    found = np.empty((3, values.shape[1]))
    shared(found, np.ascontiguousarray(values), mass, cells.compiled, cells.weights)
    return found


def _all_shared(blocks: Sequence[Array], mass: Array, cells: Cells) -> Array:
    return _joined([_shared_of(one, mass, cells) for one in blocks])


def _form(noise: Array, slopes: Array) -> Array:
    return np.asarray(np.einsum("ik,ij,jk->k", slopes, noise, slopes))


def _before(ends: Array, blocks: list[Array]) -> list[Array]:
    """Columns before all others, in blocks that a processor's cache holds."""
    if blocks and ends.shape[1] + blocks[0].shape[1] <= TOGETHER:
        return [np.concatenate([ends, blocks[0]], axis=1), *blocks[1:]]
    starts = range(0, ends.shape[1], TOGETHER)
    return [np.ascontiguousarray(ends[:, k : k + TOGETHER]) for k in starts] + blocks


def _joined(blocks: Sequence[Array]) -> Array:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=-1)


def sweep(
    steps: Sequence[Step],
    targets: Sequence[Target],
    noise: Noise | None,
    seen: Seen | None = None,
    passed: Seen | None = None,
) -> Swept:
    """Backwards along all steps, from the last target to t = 0.

    Without ``noise`` nothing is added up. ``seen(step, first, second)`` is told of the columns at
    both stages of every step, the weight of what changes the rates there, and ``passed(step, end,
    start)`` of those at both ends of it. Targets are in order of increasing time, none of them at
    t = 0.
    """
    left, cells = list(targets), steps[-1].cells
    blocks: list[Array] = []
    way, squares, late = np.empty(0), np.empty(0), np.empty((3, 0))
    noises = () if noise is None else _noises(steps, noise)
    for number, step in reversed(list(enumerate(steps))):
        check_deadline()
        if step.cells is not cells:
            blocks = [restored(one, cells, step.cells) for one in blocks]
            cells = step.cells
            if blocks and noise is not None:
                late = _all_shared(blocks, step.after, cells)
        while left and left[-1].time == step.end:
            # Targets of earlier times come first, as they do in the order that is asked for.
            one = left.pop()
            known = one.squares(cells, step.after)
            ends, moved = on_sphere(one.values(cells), known, step.after, cells)
            blocks = _before(ends, blocks)
            way, squares = np.concatenate([moved, way]), np.concatenate([known, squares])
            if noise is not None:
                late = np.concatenate([_shared_of(ends, step.after, cells), late], axis=1)
        if not blocks:
            continue
        later, found = blocks, _stepped(step, blocks)
        blocks = [one.values for one in found]
        if seen is not None:
            seen(
                step, _joined([one.first for one in found]), _joined([one.second for one in found])
            )
        if passed is not None:
            passed(step, _joined(later), _joined(blocks))
        if noise is not None:
            early = _all_shared(blocks, step.before, cells)
            way = way + _joined([one.gained for one in found])
            ends = noises[number]
            way = way + step.length / 2 * (_form(ends[0], early) + _form(ends[1], late))
            late = early
    begin = steps[0]
    weighed = (cells.weights * begin.before)[:, None]
    values = _joined(blocks)
    return Swept(cells, values, way - np.sum(weighed * values**2, axis=0), squares)


def _noises(steps: Sequence[Step], noise: Noise) -> Array:
    """The noise at both ends of every step, shape (steps, 2, 3, 3)."""
    q, taus = (np.concatenate(one) for one in zip(*((s.q, s.taus) for s in steps), strict=True))
    return np.asarray(noise(q, taus)).reshape(len(steps), 2, 3, 3)
