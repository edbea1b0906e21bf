"""Bands: the limit of sqrt(n) times the standard deviation of any mean over the entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import Nodes
from hdica.limits.bands.graded import graded
from hdica.limits.bands.path import Cells, remembered
from hdica.limits.bands.start import BESIDE, spread_at_start
from hdica.limits.bands.sweep import Noise, Target, sweep
from hdica.limits.mean_field.density.march import Plan
from hdica.limits.mean_field.density.problem import NO_WEIGHT, Problem
from hdica.limits.mean_field.density.solve import planned
from hdica.limits.mean_field.family import MeanField
from hdica.process.progress import tell

Array = NDArray[np.float64]
GOAL = 1e-2
"""Relative error of a variance above which there is a further level."""
_CLOSE, _MOST = 1e-5, 4
_NUMBERS = 2e7
"""Masses of a run that are kept at most."""
_SOON = 1e-3
_SHARE = 0.02


class Spread(NamedTuple):
    """N times the variance of some means, its error, and <h^2>, which is a part of it.

    NaN where not reached.
    """

    value: Array
    error: Array
    squares: Array


def refusal(field: MeanField) -> str:
    """Empty if the fluctuations of a mean field are known, else the sentence that says why not."""
    if field.motion.moves:
        return (
            "bands = True is not allowed with motion (the fluctuations of entries that change "
            "places are known of the overlap alone, by method 'ode' with phi = 0 or beta*x)"
        )
    return ""


def posed_whole(field: MeanField) -> tuple[Problem, Prior]:
    """The problem at all nodes that count, mirror images too, and its prior on these nodes.

    Where the feature itself is drawn every node stands again a little scaled, without a weight.
    """
    prior, nodes = field.prior, field.prior.nodes
    kept = nodes.weights >= NO_WEIGHT
    few = Nodes(np.ascontiguousarray(nodes.points[kept]), np.ascontiguousarray(nodes.weights[kept]))
    xi, weights = few.points, few.weights
    if prior.random:
        xi = np.concatenate([xi, xi * (1 + BESIDE), xi * (1 - BESIDE)])
        weights = np.concatenate([weights, np.zeros(2 * few.points.size)])
    return Problem(field, xi, weights), replace(prior, nodes=few, groups=prior.groups[kept])


@dataclass(frozen=True, eq=False)
class _Task:
    """What is asked of which problem, with the prior at its nodes and the noise of its samples."""

    problem: Problem
    prior: Prior
    noise: Noise
    targets: Sequence[Target]


def _level(task: _Task, plan: Plan, refine: int) -> tuple[Array, Array]:
    """N Var of every function, and <h^2>, on one level."""
    tell(lambda: f"fluctuations: refinement {refine.bit_length()} of at most {_MOST}")
    field, prior = task.problem.field, task.prior
    steps = list(remembered(task.problem, plan, refine))
    mass, cells = steps[0].before, steps[0].cells
    found = [_at_start(one, mass, cells, field, prior) for one in task.targets if one.time <= 0]
    later = [one for one in task.targets if one.time > 0]
    if later:
        swept = sweep(steps, later, task.noise)
        begin = spread_at_start(swept.values, mass, swept.cells, field.start, prior)
        found.append((begin + swept.way, swept.squares))
    spread, squares = zip(*found, strict=True)
    return np.concatenate(spread), np.concatenate(squares)


def _at_start(
    target: Target, mass: Array, cells: Cells, field: MeanField, prior: Prior
) -> tuple[Array, Array]:
    """N Var and <h^2> at t = 0, with the mean squares that the target says."""
    values = target.values(cells)
    seen = np.sum((cells.weights * mass)[:, None] * values**2, axis=0)
    spread = spread_at_start(values, mass, cells, field.start, prior)
    squares = target.squares(cells, mass)
    return spread + squares - seen, squares


def _levels(task: _Task, plan: Plan) -> Spread:
    """Extrapolated over two levels, and over as many as it takes where a target leads.

    The last correction is the error.
    """
    found = [_level(task, plan, 1), _level(task, plan, 2)]
    whole = _extrapolated(found)
    leading = replace(task, targets=[one for one in task.targets if one.leads])
    known = np.repeat([one.leads for one in task.targets], [one.count for one in task.targets])
    found = [(spread[known], squares[known]) for spread, squares in found]
    while True:
        refine, last = 2 ** len(found), _extrapolated(found)
        near = not np.any(last.error > GOAL * _sizes(leading.targets, found[-1][0]))
        if near or len(found) == _MOST or plan.cost * refine**2 > _NUMBERS:
            break
        found.append(_level(leading, plan, refine))
    for part, one in zip(whole, last, strict=True):
        part[known] = one
    return whole


def _extrapolated(levels: Sequence[tuple[Array, Array]]) -> Spread:
    """From the last two levels."""
    (before, one), (last, other) = levels[-2:]
    change = (last - before) / 3
    return Spread(last + change, np.abs(change), other + (other - one) / 3)


def _sizes(targets: Sequence[Target], values: Array) -> Array:
    """What errors are compared with: each value, and a part of the largest of its target."""
    edges = np.cumsum([one.count for one in targets])[:-1]
    parts = [np.abs(part) for part in np.split(values, edges)]
    return np.concatenate([np.maximum(one, _SHARE * np.nanmax(one, initial=0.0)) for one in parts])


def spreads(field: MeanField, noise: Noise, targets: Sequence[Target]) -> list[Spread]:
    """N Var<h> as n -> infinity for the functions of each target, in order of increasing time.

    ``noise(q, tau)`` is that of one sample which all entries share
    (:func:`hdica.limits.bands.noise.common_noise`).

    Raises
    ------
    HdicaError
        If the fluctuations are not known for a field that moves, or its density cannot be followed.
    """
    why = refusal(field)
    if why:
        raise HdicaError(why)
    problem, prior = posed_whole(field)
    times = np.array([one.time for one in targets])
    plan = planned(problem, np.unique(np.append(times, _SOON)), _CLOSE)
    if plan.cost > _NUMBERS:
        raise HdicaError(
            f"bands = True is not allowed here: {plan.cost:.1e} masses of the density would have "
            f"to be kept (at most {_NUMBERS:.0e}: choose an earlier last time)"
        )
    last = float(plan.runs[-1].ends[-1])
    kept = [one for one in targets if one.time <= last]
    task = _Task(problem, prior, noise, kept)
    found = _levels(task, graded(plan, np.unique(times[times > 0])))
    edges = np.cumsum([0, *(one.count for one in kept)]).tolist()
    parts = [Spread(*(one[i:j] for one in found)) for i, j in pairwise(edges)]
    lost = [np.full(one.count, np.nan) for one in targets[len(kept) :]]
    return parts + [Spread(one, one, one) for one in lost]
