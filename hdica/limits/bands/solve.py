"""Bands, sqrt(n) times the standard deviation of any mean over the entries, and its derivatives.

Over a step x~ = x + n^-1/2 F y, y = xi c/sqrt(n) + a, back to |x|^2 = n, the mean <h> moves by
zeta/n with

    zeta = F (A + c <h' xi>) - (u F + F^2/2) <h' x> + (F^2/2) <h''>,

A normal, of variance <h'^2> - <h' xi>^2 for a orthogonal to xi, and with the covariance
w = (<h' x> - Q <h' xi>)/sqrt(1 - Q^2) with the entry e of a along x. So n Var<h> gains

    Var zeta = <F^2> <h'^2> + (alpha, beta, gamma) N (alpha, beta, gamma)'

per unit of time, with alpha = <h' xi>, beta = <h' x>, gamma = <h''>: noise of each entry's own, and
noise that all entries share. The second is as large as the first.

At t = 0 entries of the estimate are drawn one by one, given the feature, and |x|^2 = n is then
restored, which moves <v> by -(<x v'>/2)(|x|^2/n - 1): n Var<v> is the mean variance of v less that
part, given xi. A start with an exact overlap is orthogonal to what it has of the feature before it
gets its length. A feature that is drawn itself adds the variance of E[v | xi], less what |xi|^2 = n
takes away.

The columns of a sweep backwards are also the weight of what changes the density on the way:

    d<h>_T / d theta = int v(s) . (dA/dtheta) p(s) ds + v(0) . dp(0)/dtheta,

here of the march itself, stage by stage, so that it is the derivative of what a limit computes on
the same cells, and not of a limit on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import Nodes, dot
from hdica.ingredients.starts import Start
from hdica.limits.averages.expectations import Products
from hdica.limits.bands import sweep
from hdica.limits.bands.sweep import Cells, Step, Target
from hdica.limits.mean_field.density.grid import GAMMA, make_mesh
from hdica.limits.mean_field.density.march import Plan
from hdica.limits.mean_field.density.solve import coarse
from hdica.limits.mean_field.density.state import NO_WEIGHT, Problem, start_masses
from hdica.limits.mean_field.family import MeanField
from hdica.process.progress import tell

_LEAST = 1e-12


def common_noise(p: Products, q: Array, tau: Array, batch: int = 1) -> Array:
    """N of the noise that all entries share, shape (T, 3, 3), for step sizes tau of shape (T,).

    A step with the mean over a batch moves as m steps of size tau/m with one sample.
    """
    q, size = np.asarray(q, dtype=float), np.asarray(tau, dtype=float) / batch
    powers, means = (1, 1, 2), (p.c, p.u, p.gg)
    products = ((p.ggcc, p.ggcu, p.gggc), (p.ggcu, p.gguu, p.gggu), (p.gggc, p.gggu, p.gggg))
    covariance = np.empty((*np.shape(size), 3, 3))
    for i, j in np.ndindex(3, 3):
        scale = size ** (powers[i] + powers[j])
        covariance[..., i, j] = scale * (products[i][j] - means[i] * means[j])
    rest = np.maximum((1 - q) * (1 + q), _LEAST)
    # What is along xi and x is no noise of each entry's own.
    along = np.zeros((*q.shape, 3, 3))
    along[..., 0, 0], along[..., 1, 1] = 1 + q * q / rest, 1 / rest
    along[..., 0, 1] = along[..., 1, 0] = -q / rest
    # How F c, F u and F^2 enter, by alpha, beta and gamma: shape (T, 3, 3).
    enters = along.copy()
    enters[..., 1, 1] -= 1
    enters[..., 2, 1], enters[..., 2, 2] = -0.5, 0.5
    shared = np.einsum("...ki,...kl,...lj->...ij", enters, covariance, enters)
    power = size**2 * p.gg
    return batch * (shared - power[..., None, None] * along)


STRETCH = 1e-4
"""Share by which a feature is scaled to see what its length does."""


def spread_at_start(values: Array, mass: Array, cells: Cells, start: Start, prior: Prior) -> Array:
    """N Var<v> at t = 0 of every column v, shape (functions,).

    Atoms of the problem beyond those of the prior are its own, times 1 + STRETCH and 1 - STRETCH.
    """
    along, radial, _ = sweep.shared_of(values, mass, cells)
    # Without what the length of x, and an exact overlap, take from the columns.
    if start.exact:
        # x = Q0 xi + r z with z orthogonal to xi and of length sqrt(n).
        overlap = start.overlap(prior)
        rest, size = (cells.x - overlap * cells.xi)[:, None], max(1 - overlap**2, 1e-300)
        own = radial - overlap * along
        left = values - along * cells.xi[:, None] * rest - own / (2 * size) * (rest**2 - size)
    else:
        left = values - radial / 2 * (cells.x[:, None] ** 2 - 1)
    atoms = int(cells.atom[-1]) + 1
    weights = np.array([cells.weights[cells.atom == a][0] for a in range(atoms)])
    means = _by_atom(left, mass, cells, atoms)
    inside = _by_atom(left**2, mass, cells, atoms) - means**2
    variance = np.sum(weights[:, None] * inside, axis=0)
    if prior.random:
        variance = variance + _of_feature(means, prior)
    return np.maximum(variance, 0.0)


def _by_atom(values: Array, mass: Array, cells: Cells, atoms: int) -> Array:
    sums = np.zeros((atoms, values.shape[1]))
    np.add.at(sums, cells.atom, mass[:, None] * values)
    return sums


def _of_feature(means: Array, prior: Prior) -> Array:
    """Variance of E[v | xi] over features that are drawn, with |xi|^2 = n."""
    nodes, count = prior.nodes, prior.nodes.points.size
    own, up, down = means[:count], means[count : 2 * count], means[2 * count :]
    weights = nodes.weights[:, None]
    longer = np.sum(weights * (up - down), axis=0) / (2 * STRETCH)
    moved = own - longer / 2 * (nodes.points[:, None] ** 2 - 1)
    variance = np.zeros(own.shape[1])
    for part in prior.strata:
        share = np.sum(weights[part])
        first = np.sum(weights[part] * moved[part], axis=0) / share
        variance += np.sum(weights[part] * (moved[part] - first) ** 2, axis=0)
    return variance


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
    prior, few = field.prior, _nodes(field)
    counts, (xi, weights) = prior.nodes.weights >= NO_WEIGHT, few
    if prior.random:
        weights = np.concatenate([weights, np.zeros(2 * xi.size)])
        xi = np.concatenate([xi, xi * (1 + STRETCH), xi * (1 - STRETCH)])
    return Problem(field, xi, weights), replace(prior, nodes=few, groups=prior.groups[counts])


def _nodes(field: MeanField) -> Nodes:
    """The nodes of the prior that count."""
    counts = field.prior.nodes.weights >= NO_WEIGHT
    return Nodes(*(part[counts] for part in field.prior.nodes))


def problem_of(field: MeanField) -> Problem:
    """The density at each of the nodes that count."""
    return Problem(field, *_nodes(field))


Task = tuple[Problem, Prior, sweep.Noise]
"""A problem, the prior at its nodes, and the noise of its samples."""


def _level(task: Task, targets: Sequence[Target], plan: Plan, refine: int) -> tuple[Array, Array]:
    """N Var of every function, and <h^2>, on one level."""
    tell(lambda: f"fluctuations: refinement {refine.bit_length()} of at most {_MOST}")
    problem, prior, noise = task
    start, steps = problem.field.start, list(sweep.remembered(problem, plan, refine))
    mass, cells = steps[0].before, steps[0].cells
    parts = []
    for target in (target for target in targets if target.time <= 0):
        values, squares = target.values(cells), target.squares(cells, mass)
        on_cells = np.sum((cells.weights * mass)[:, None] * values**2, axis=0)
        spread = spread_at_start(values, mass, cells, start, prior)
        parts.append((spread + squares - on_cells, squares))
    later = [target for target in targets if target.time > 0]
    if later:
        swept = sweep.sweep(steps, later, noise)
        begin = spread_at_start(swept.values, mass, swept.cells, start, prior)
        parts.append((begin + swept.way, swept.squares))
    whole, all_squares = zip(*parts, strict=True)
    return np.concatenate(whole), np.concatenate(all_squares)


def _levels(task: Task, targets: Sequence[Target], plan: Plan) -> Spread:
    """Extrapolated over two levels, and over as many as it takes where a target leads."""
    levels = [_level(task, targets, plan, refine) for refine in (1, 2)]
    whole = _extrapolated(levels)
    leading = [target for target in targets if target.leads]
    leads = np.repeat([t.leads for t in targets], [t.count for t in targets])
    edges = np.cumsum([target.count for target in leading])[:-1]
    levels = [(spread[leads], squares[leads]) for spread, squares in levels]
    while True:
        refine, last = 2 ** len(levels), _extrapolated(levels)
        # Errors are compared with each value, and with a part of the largest of its target.
        parts = [np.abs(part) for part in np.split(levels[-1][0], edges)]
        sizes = [np.maximum(part, _SHARE * np.nanmax(part, initial=0.0)) for part in parts]
        near = not np.any(last.error > GOAL * np.concatenate(sizes))
        if near or len(levels) == _MOST or plan.cost * refine**2 > _NUMBERS:
            break
        levels.append(_level(task, leading, plan, refine))
    for part, leading_part in zip(whole, last, strict=True):
        part[leads] = leading_part
    return whole


def _extrapolated(levels: Sequence[tuple[Array, Array]]) -> Spread:
    """From the last two levels; the last correction is the error."""
    (before, coarse), (last, fine) = levels[-2:]
    change = (last - before) / 3
    return Spread(last + change, np.abs(change), fine + (fine - coarse) / 3)


def spreads(field: MeanField, noise: sweep.Noise, targets: Sequence[Target]) -> list[Spread]:
    """N Var<h> as n -> infinity for the functions of each target, in order of increasing time.

    ``noise(q, tau)`` is that of one sample which all entries share (:func:`common_noise`). Refused
    if the fluctuations are not known for a field that moves, or its density cannot be followed.
    """
    why = refusal(field)
    if why:
        raise HdicaError(why)
    problem, prior = posed_whole(field)
    times = np.array([target.time for target in targets])
    plan, _ = coarse(problem, np.unique(np.append(times, _SOON)), _CLOSE)
    if plan.cost > _NUMBERS:
        raise HdicaError(
            f"bands = True is not allowed here: {plan.cost:.1e} masses of the density would have "
            f"to be kept (at most {_NUMBERS:.0e}: choose an earlier last time)"
        )
    last = float(plan.runs[-1].ends[-1])
    reached = [target for target in targets if target.time <= last]
    graded = sweep.graded(plan, np.unique(times[times > 0]))
    whole = _levels((problem, prior, noise), reached, graded)
    edges = np.cumsum([0, *(target.count for target in reached)]).tolist()
    parts = [Spread(*(part[i:j] for part in whole)) for i, j in pairwise(edges)]
    lost = [np.full(target.count, np.nan) for target in targets[len(reached) :]]
    return parts + [Spread(nan, nan, nan) for nan in lost]


_GRADIENT_TOLERANCE, _GRADIENT_LEVELS = 1e-6, 4


class Change(NamedTuple):
    """A parameter a little larger and a little smaller, by ``step`` each.

    ``functions`` are h(xi, x) on either side.
    """

    up: MeanField
    down: MeanField
    step: float
    functions: tuple[sweep.Function, sweep.Function]


class Gradient(NamedTuple):
    """The mean, its derivatives of shape (changes,) with their errors, and how they came about.

    ``rate``, shape (steps, changes), is the derivative by the parameter between ``times``, shape
    (steps + 1,), a unit of time long.
    """

    value: float
    gradient: Array
    error: Array
    times: Array
    rate: Array


def gradient_level(
    problem: Problem, target: Target, changes: Sequence[Change], plan: Plan, refine: int
) -> tuple[float, Array, Array, Array]:
    """The mean, its derivatives, the ends of the steps and the rate, on one level."""
    from hdica.limits.bands.kernels import changed

    def table(field: MeanField) -> Array:
        return make_mesh(plan.lattice, plan.reach, refine, field.phi.value).table

    sides = [((c.up, table(c.up), 1.0), (c.down, table(c.down), -1.0)) for c in changes]
    parts: list[Array] = []
    ends: list[float] = []

    def see(step: Step, first: Array, second: Array) -> None:
        """How much each change moves the mean by one step."""
        c, margin = GAMMA * step.length, 1e-12 * max(1.0, step.end)
        stages = (
            (step.end - step.length + c, step.met[:2], step.middle, first),
            (step.end, step.met[2:], step.after, second),
        )
        row = np.zeros(len(changes))
        for k, change in enumerate(changes):
            for t, (q, h2), mass, columns in stages:
                moved = np.zeros(mass.size)
                for field, own, sign in sides[k]:
                    tau = field.schedule.at(min(t, step.end - margin))
                    b, g, big = field.pull(q, tau), field.diffusion(q, tau), field.strength(tau)
                    mesh, factor = (own, *step.cells.compiled[1:]), sign / (2 * change.step)
                    changed(moved, mass, b, g, big, h2, c, factor, mesh, np.empty((3, mass.size)))
                row[k] += dot(step.cells.weights * moved, columns[:, 0])
        parts.append(row)
        ends.append(step.end)

    steps = list(sweep.remembered(problem, plan, refine))
    swept = sweep.sweep(steps, [target], None, see)
    last, cells, mesh = steps[-1], steps[-1].cells, steps[0].cells.mesh
    weighed, start = cells.weights * last.after, np.zeros(len(changes))
    for k, change in enumerate(changes):
        both = (Problem(field, problem.xi, problem.weights) for field in (change.up, change.down))
        up, down = (start_masses(side, mesh) for side in both)
        rise = (up - down) / (2 * change.step)
        start[k] = np.sum(swept.cells.weights * rise * swept.values[:, 0])
        up, down = (function(cells.xi, cells.x) for function in change.functions)
        start[k] += np.sum(weighed * (up - down)) / (2 * change.step)
    value = np.sum(weighed * target.values(cells)[:, 0])
    rows, times = np.array(parts[::-1]), np.array([0.0, *ends[::-1]])
    return float(value), rows.sum(axis=0) + start, times, rows / np.diff(times)[:, None]


def gradient(field: MeanField, target: Target, changes: Sequence[Change]) -> Gradient:
    """The mean of a target's one function, and its derivatives.

    Cells and steps are halved and the results extrapolated; the error is the last correction.
    Refused if the feature moves, or a kink of the regularizer does with a parameter.
    """
    if field.motion.moves:
        raise HdicaError("motion is not allowed for sensitivities (a feature that stays)")
    for change in changes:
        if change.up.phi.kinks != change.down.phi.kinks:
            raise HdicaError(
                "sensitivities by a parameter that moves a kink of the regularizer are not known "
                f"(kinks at {change.down.phi.kinks} and {change.up.phi.kinks})"
            )
    problem = problem_of(field)
    times = np.array([target.time])
    plan = sweep.graded(coarse(problem, times, _GRADIENT_TOLERANCE)[0], times)
    levels = [gradient_level(problem, target, changes, plan, 2**k) for k in range(_GRADIENT_LEVELS)]
    values = np.array([np.append(slopes, mean) for mean, slopes, _, _ in levels])
    # Of order two, then four: errors have an expansion in the squares of cells and steps.
    once = values[1:] + np.diff(values, axis=0) / 3
    twice = once[1:] + np.diff(once, axis=0) / 15
    error = np.abs(twice[-1] - twice[-2])
    best = twice[-1]
    return Gradient(float(best[-1]), best[:-1], error[:-1], levels[-1][2], levels[-1][3])
