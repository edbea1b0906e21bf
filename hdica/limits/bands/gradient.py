"""Derivatives of a mean at one time by parameters of the rates, and by the step size at any time.

The columns of a sweep backwards are the weight of what changes the density on the way:

    d<h>_T / d theta = int v(s) . (dA/dtheta) p(s) ds + v(0) . dp(0)/dtheta,

here of the march itself, stage by stage, so that it is the derivative of what a limit computes on
the same cells, and not of a limit on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.bands.graded import graded
from hdica.limits.bands.path import Step, remembered
from hdica.limits.bands.sweep import Target, sweep
from hdica.limits.bands.targets import Function
from hdica.limits.mean_field.density.grid import make_mesh
from hdica.limits.mean_field.density.layout import GAMMA
from hdica.limits.mean_field.density.march import Plan
from hdica.limits.mean_field.density.problem import NO_WEIGHT, Problem
from hdica.limits.mean_field.density.solve import planned
from hdica.limits.mean_field.density.state import start_masses
from hdica.limits.mean_field.family import MeanField

Array = NDArray[np.float64]
_CLOSE, _LEVELS = 1e-6, 4


@dataclass(frozen=True, eq=False)
class Change:
    """A parameter a little larger and a little smaller, by ``step`` each.

    ``functions`` are h(xi, x) on either side.
    """

    up: MeanField
    down: MeanField
    step: float
    functions: tuple[Function, Function]


@dataclass(frozen=True, eq=False)
class Gradient:
    """The mean, its derivatives of shape (changes,) with their errors, and how they came about.

    ``rate``, shape (steps, changes), is the derivative by the parameter between ``times``, shape
    (steps + 1,), a unit of time long.
    """

    value: float
    gradient: Array
    error: Array
    times: Array
    rate: Array


@dataclass(eq=False)
class _Summed:
    """What both sides of every change make of the rates, weighed by the columns of a sweep."""

    changes: Sequence[Change]
    plan: Plan
    refine: int
    parts: list[Array]
    ends: list[float]

    def __post_init__(self) -> None:
        self.tables: dict[int, Array] = {}

    def _table(self, step: Step, field: MeanField) -> Array:
        """The table of the mesh with the regularizer of a field."""
        key = id(field)
        if key not in self.tables or self.tables[key].shape != step.cells.mesh.table.shape:
            phi, reach = field.phi.value, self.plan.reach
            self.tables[key] = make_mesh(self.plan.lattice, reach, self.refine, phi).table
        return self.tables[key]

    def see(self, step: Step, first: Array, second: Array) -> None:
        """Of one step: how much each change moves the mean by it."""
        c = GAMMA * step.length
        begin = step.end - step.length
        stages = (
            (begin + c, step.met[0], step.met[1], step.middle, first),
            (step.end, step.met[2], step.met[3], step.after, second),
        )
        found = np.zeros(len(self.changes))
        for k, change in enumerate(self.changes):
            for t, q, h2, mass, columns in stages:
                moved = np.zeros(mass.size)
                for field, sign in ((change.up, 1.0), (change.down, -1.0)):
                    self._add(moved, step, field, t, q, h2, mass, c, sign / (2 * change.step))
                found[k] += float(np.sum(step.cells.weights * moved * columns[:, 0]))
        self.parts.append(found)
        self.ends.append(step.end)

    def _add(
        self,
        moved: Array,
        step: Step,
        field: MeanField,
        t: float,
        q: float,
        h2: float,
        mass: Array,
        c: float,
        factor: float,
    ) -> None:
        from hdica.limits.bands.kernels import changed

        margin = 1e-12 * max(1.0, step.end)
        tau = float(field.schedule.value(np.array(min(t, step.end - margin))))
        _, *rest = step.cells.compiled
        mesh = (self._table(step, field), *rest)
        b, g, big = field.pull(q, tau), field.diffusion(q, tau), field.strength(tau)
        changed(moved, mass, b, g, big, h2, c, factor, mesh, np.empty((3, mass.size)))


def _started(problem: Problem, step: Step, change: Change) -> Array:
    """The derivative of the masses at t = 0."""
    sides = [Problem(field, problem.xi, problem.weights) for field in (change.up, change.down)]
    up, down = (start_masses(side, step.cells.mesh) for side in sides)
    return np.asarray((up - down) / (2 * change.step))


def _level(
    problem: Problem, target: Target, changes: Sequence[Change], plan: Plan, refine: int
) -> tuple[float, Array, Array, Array]:
    """The mean, its derivatives, the ends of the steps and the rate, on one level."""
    steps = list(remembered(problem, plan, refine))
    summed = _Summed(changes, plan, refine, [], [])
    swept = sweep(steps, [target], None, summed.see)
    weights = swept.cells.weights
    start = [np.sum(weights * _started(problem, steps[0], c) * swept.values[:, 0]) for c in changes]
    last, cells = steps[-1], steps[-1].cells
    weighed = cells.weights * last.after
    value = np.sum(weighed * target.values(cells)[:, 0])
    for k, change in enumerate(changes):
        up, down = (one(cells.xi, cells.x) for one in change.functions)
        start[k] += np.sum(weighed * (up - down)) / (2 * change.step)
    parts, ends = np.array(summed.parts[::-1]), np.array([0.0, *summed.ends[::-1]])
    total = parts.sum(axis=0) + np.array(start)
    return float(value), total, ends, parts / np.diff(ends)[:, None]


def gradient(field: MeanField, target: Target, changes: Sequence[Change]) -> Gradient:
    """The mean of a target's one function, and its derivatives.

    Cells and steps are halved and the results extrapolated; the error is the last correction.

    Raises
    ------
    HdicaError
        If the feature moves, or a kink of the regularizer does with a parameter.
    """
    if field.motion.moves:
        raise HdicaError("motion is not allowed for sensitivities (a feature that stays)")
    for change in changes:
        if change.up.phi.kinks != change.down.phi.kinks:
            raise HdicaError(
                "sensitivities by a parameter that moves a kink of the regularizer are not known "
                f"(kinks at {change.down.phi.kinks} and {change.up.phi.kinks})"
            )
    nodes = field.prior.nodes
    kept = nodes.weights >= NO_WEIGHT
    xi, weights = (np.ascontiguousarray(v[kept]) for v in (nodes.points, nodes.weights))
    problem = Problem(field, xi, weights)
    times = np.array([target.time])
    plan = graded(planned(problem, times, _CLOSE), times)
    levels: list[Any] = [_level(problem, target, changes, plan, 2**k) for k in range(_LEVELS)]
    values = np.array([np.append(one[1], one[0]) for one in levels])
    # Of order two, then four: errors have an expansion in the squares of cells and steps.
    once = values[1:] + np.diff(values, axis=0) / 3
    twice = once[1:] + np.diff(once, axis=0) / 15
    error = np.abs(twice[-1] - twice[-2])
    best = twice[-1]
    return Gradient(float(best[-1]), best[:-1], error[:-1], levels[-1][2], levels[-1][3])
