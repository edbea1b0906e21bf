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

import numpy as np
from numpy.typing import NDArray

from hdica.limits.bands.path import Cells, Step, restored

Array = NDArray[np.float64]
_TOGETHER = 32


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


def _stepped(step: Step, values: Array) -> tuple[Array, Array, Array, Array]:
    """One step backwards, some columns at a time: as many as a processor's cache holds."""
    from hdica.limits.bands.kernels import step_back

    cells = step.cells
    parts = [
        step_back(
            np.ascontiguousarray(values[:, k : k + _TOGETHER]), step.before, step.middle,
            step.after, step.met, step.rows, step.length, cells.compiled, step.law, cells.weights,
        )
        for k in range(0, values.shape[1], _TOGETHER)
    ]  # fmt: skip
    if len(parts) == 1:
        found: tuple[Array, Array, Array, Array] = parts[0]
        return found
    first, second, third, fourth = zip(*parts, strict=True)
    columns = [np.concatenate(one, axis=1) for one in (first, second, third)]
    return columns[0], columns[1], columns[2], np.concatenate(fourth)


def _shared_of(values: Array, mass: Array, cells: Cells) -> Array:
    from hdica.limits.bands.kernels import shared

    found = np.empty((3, values.shape[1]))
    shared(found, np.ascontiguousarray(values), mass, cells.compiled, cells.weights)
    return found


def _form(noise: Array, slopes: Array) -> Array:
    return np.asarray(np.einsum("ik,ij,jk->k", slopes, noise, slopes))


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
    values, way, squares = np.empty((cells.x.size, 0)), np.empty(0), np.empty(0)
    for step in reversed(steps):
        if step.cells is not cells:
            values, cells = restored(values, cells, step.cells), step.cells
        while left and left[-1].time == step.end:
            # Targets of earlier times come first, as they do in the order that is asked for.
            one = left.pop()
            known = one.squares(cells, step.after)
            ends, moved = on_sphere(one.values(cells), known, step.after, cells)
            values = np.concatenate([ends, values], axis=1)
            way, squares = np.concatenate([moved, way]), np.concatenate([known, squares])
        if not values.shape[1]:
            continue
        late = None if noise is None else _shared_of(values, step.after, cells)
        later = values
        values, first, second, gained = _stepped(step, values)
        if seen is not None:
            seen(step, first, second)
        if passed is not None:
            passed(step, later, values)
        if noise is not None and late is not None:
            early = _shared_of(values, step.before, cells)
            ends = noise(step.q, step.taus)
            way = way + gained
            way = way + step.length / 2 * (_form(ends[0], early) + _form(ends[1], late))
    begin = steps[0]
    weighed = (cells.weights * begin.before)[:, None]
    return Swept(cells, values, way - np.sum(weighed * values**2, axis=0), squares)
