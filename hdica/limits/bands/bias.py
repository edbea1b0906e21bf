"""Bias: n times what the mean of runs is beyond the limit, for means over the entries.

The mean of <h> over runs is <h> + m[h]/n at step k = t n. With the columns v of a sweep backwards
from h at time T, G = <L v> the rate of <v> at Q and R of the density, and the covariances of the
central limit theorem,

    m[h] = m_0[v(0)] + int_0^T Cov(Q, dG/dQ) + Cov(R, dG/dR) + (d^2G/dQ^2) Var(Q)/2
                               + D1[v] - (d^2 p/dt^2 . v)/2 ds,

where derivatives of G by Q and R are taken of the rates alone, D1 is what a step adds at order
1/n^2 (:mod:`.step_bias`), and the last term is there because steps have the length 1/n: by parts it
is the integral of dp/dt . dv/dt / 2, less half of what dp/dt . v has gained from 0 to T, which is
nothing where the step size stays. Covariances at every time s come from one more sweep, of Q, R and
those derivatives at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.priors import Prior
from hdica.ingredients.starts import Start
from hdica.limits.averages.expectations import ProductsAt
from hdica.limits.bands.solve import posed_whole, spread_at_start
from hdica.limits.bands.step_bias import Pieces, Place, pieces_of, step_bias
from hdica.limits.bands.sweep import Cells, Noise, Step, Target, graded, remembered, sweep
from hdica.limits.mean_field.density.march import Plan
from hdica.limits.mean_field.density.solve import coarse
from hdica.limits.mean_field.density.state import Problem
from hdica.limits.mean_field.family import MeanField

_CLOSE, _SOON = 1e-5, 1e-3
_STEP = 1e-4
GOAL = 2e-2
"""Correction, relative to the largest of a target, above which there is a further level."""
LEVELS = 3


@dataclass(frozen=True)
class Rule:
    """A rule with phi, as far as it is not in its limit.

    ``products`` are the averages of its push for one sample a step, ``noise`` that of a sample
    which all entries share; ``moved`` says that phi acts on what the sample has moved already.
    ``unlike``, where not empty, says with what setting a step of order 1/n^2 is another.
    """

    products: ProductsAt
    noise: Noise
    moved: bool
    batch: int = 1
    unlike: str = ""


class _At(NamedTuple):
    """The columns at one time: on which cells, with which masses, at which Q and step size."""

    time: float
    cells: Cells
    mass: Array
    q: float
    tau: float
    values: Array


def _at(step: Step, side: int, values: Array) -> _At:
    """Columns before a step, at the side 0, or after it, at the side 1."""
    time, mass = (step.end, step.after) if side else (step.end - step.length, step.before)
    return _At(time, step.cells, mass, float(step.q[side]), float(step.taus[side]), values)


def refusal(field: MeanField, rule: Rule) -> str:
    """Empty if the bias of a mean field's means is known, else the sentence that says why not."""
    conditions = (
        (not field.motion.moves, "with motion", "a feature that stays"),
        (not field.follows, "where omega varies", "a constant one"),
        (not field.schedule.breaks, "where tau jumps", "one that does not"),
        (not field.prior.random, "where the feature is drawn", "values in exact numbers"),
        (not rule.unlike, f"with {rule.unlike}", "phi itself"),
        (field.start.length is None, "with start = a vector", "a start with a law"),
    )
    for there, what, needs in conditions:
        if not there:
            return (
                f"bias = True is not allowed {what} where phi is not 0 or beta*x (the term of "
                f"order 1/n of a density is known for {needs})"
            )
    return ""


def _columns(field: MeanField, target: Target, steps: list[Step]) -> tuple[list[_At], Array]:
    """The columns at all ends of steps, by increasing time, and what the length of steps adds."""
    places: list[_At] = []
    lag: list[Array] = []
    gain: list[Array] = []
    varies = field.schedule.constant is None

    def passed(step: Step, later: Array, earlier: Array) -> None:
        moved = step.cells.weights * (step.after - step.before) / step.length
        lag.append((moved @ (later - earlier)) / 2)
        if varies:
            gain.append((moved @ (later + earlier)) / 2)
        places.append(_at(step, 1, later))
        if step is steps[0]:
            places.append(_at(step, 0, earlier))

    sweep(steps, [target], None, passed=passed)
    longer = np.sum(lag, axis=0)
    if varies:
        # Less half of what the columns, by the middles of steps, gain between the ends.
        middles = np.array([step.end - step.length / 2 for step in steps])
        values = np.array(gain[::-1])

        def at(t: float, first: int, second: int) -> Array:
            share = (t - middles[first]) / (middles[second] - middles[first])
            return values[first] + share * (values[second] - values[first])

        grown = at(steps[-1].end, -2, -1) - at(steps[0].end - steps[0].length, 0, 1)
        longer = longer - grown / 2
    return places[::-1], longer


def _rates(field: MeanField, q: float, tau: float) -> Array:
    """B, H and g of L v = B xi v' - (H - B_phi R) x v' - B_phi phi v' + g v'', by Q: (3, 3)."""
    at = q + _STEP * np.array([-1.0, 0.0, 1.0])
    pull, noise = field.rates(at, tau)
    rows = np.array([pull, pull * at + noise, noise])
    slope = (rows[:, 2] - rows[:, 0]) / (2 * _STEP)
    bend = (rows[:, 2] - 2 * rows[:, 1] + rows[:, 0]) / _STEP**2
    return np.array([rows[:, 1], slope, bend]).T


class _Met(NamedTuple):
    """Columns whose variances give the covariances at one time, and what these are for."""

    at: _At
    place: Place
    rates: Array
    first: Array
    second: Array
    columns: Array
    sizes: tuple[float, float, Array, Array]


def _met(field: MeanField, rule: Rule, at: _At, pieces: Pieces) -> _Met:
    cells = at.cells
    phi, strength = field.phi.value(cells.x), field.strength(at.tau)
    place = Place(
        cells, pieces, at.mass, at.q, at.tau, rule.products(np.array(at.q)), -strength * phi,
        rule.moved, rule.batch,
    )  # fmt: skip
    first, second = pieces.slopes(at.values)
    rates = _rates(field, at.q, at.tau)
    (_, pull, _), (_, radial, _), (_, noise, _) = rates
    by_q = (pull * cells.xi - radial * cells.x)[:, None] * first + noise * second
    by_r = strength * cells.x[:, None] * first
    parts = (cells.xi * cells.x)[:, None], (cells.x * phi)[:, None], by_q, by_r
    # Of mean square 1 each: then sums and differences tell a covariance with the least rounding.
    sizes = [np.sqrt(place.mean(part**2)) + 1e-300 for part in parts]
    q, r, by_q, by_r = (part / size for part, size in zip(parts, sizes, strict=True))
    columns = np.concatenate([q, q + by_q, q - by_q, r + by_r, r - by_r], axis=1)
    scales = float(sizes[0][0]), float(sizes[1][0]), sizes[2], sizes[3]
    return _Met(at, place, rates, first, second, columns, scales)


def _pushed(met: _Met, variances: Array) -> Array:
    """The integrand at one time, but for what the length of steps adds."""
    count = met.first.shape[1]
    q, *parts = np.split(variances, [1 + k * count for k in range(4)])
    q_size, r_size, by_q, by_r = met.sizes
    with_q = (parts[0] - parts[1]) / 4 * q_size * by_q
    with_r = (parts[2] - parts[3]) / 4 * r_size * by_r
    place, cells = met.place, met.place.cells
    bends = met.rates[:, 2]
    twice = (bends[0] * cells.xi - bends[1] * cells.x)[:, None] * met.first
    twice = place.mean(twice + bends[2] * met.second)
    spread = float(q[0]) * q_size**2
    return with_q + with_r + twice * spread / 2 + step_bias(place, met.at.values)


def _at_start(at: _At, pieces: Pieces, start: Start, prior: Prior) -> Array:
    """M_0 of the columns at t = 0: what scaling x to |x|^2 = n leaves of their means."""
    cells, x = at.cells, at.cells.x
    first, second = pieces.slopes(at.values)
    weighed = cells.weights * at.mass

    def mean(values: Array) -> Array:
        return weighed @ values

    if start.exact:
        q0 = start.overlap(prior)
        rest = max(1 - q0**2, 1e-300) ** 0.5
        z = ((x - q0 * cells.xi) / rest)[:, None]
        square = (cells.xi**2)[:, None]
        drawn = -square * z - z * (z**2 - 1) / 2 + 1.25 * z
        return mean(rest * drawn * first + rest**2 * (square / 2 + z**2 / 4) * second)
    means_of = np.zeros(cells.atom[-1] + 1)
    np.add.at(means_of, cells.atom, at.mass * x**2)
    apart = (x**2 - means_of[cells.atom])[:, None]
    spread = float(mean(apart**2)[0])
    along = x[:, None] * first
    return (
        -mean(apart * along) / 2
        + 0.375 * spread * mean(along)
        + spread / 8 * mean(x[:, None] ** 2 * second)
    )


def _level(
    problem: Problem, prior: Prior, rule: Rule, target: Target, plan: Plan, refine: int
) -> Array:
    """M of every function on one level."""
    field, steps = problem.field, list(remembered(problem, plan, refine))
    places, lag = _columns(field, target, steps)
    by_cells = {id(at.cells): at.cells for at in places}
    pieces = {key: pieces_of(cells, field.phi.kinks) for key, cells in by_cells.items()}
    met = [_met(field, rule, at, pieces[id(at.cells)]) for at in places]
    targets = [_target(part) for part in met[1:]]
    swept = sweep(steps, targets, rule.noise)
    begin = steps[0].before
    later = swept.way + spread_at_start(swept.values, begin, swept.cells, field.start, prior)
    first = spread_at_start(met[0].columns, begin, met[0].at.cells, field.start, prior)
    sizes = np.cumsum([part.columns.shape[1] for part in met[1:]])[:-1]
    parts = [first, *np.split(later, sizes)]
    rows = np.array([_pushed(*pair) for pair in zip(met, parts, strict=True)])
    way = np.trapezoid(rows, np.array([at.time for at in places]), axis=0)
    begun = _at_start(places[0], pieces[id(places[0].cells)], field.start, prior)
    return begun + way + lag


def _target(met: _Met) -> Target:
    columns, place = met.columns, met.place
    return Target(
        met.at.time,
        columns.shape[1],
        lambda cells: columns,
        lambda cells, mass: place.mean(columns**2),
    )


def biases(field: MeanField, rule: Rule, target: Target) -> tuple[Array, Array]:
    """M of the means of the functions of a target, shape (functions,), and its error.

    Cells and steps are halved and the results extrapolated; the error is the last correction.
    Refused if the term of order 1/n is not known for the field, or its density cannot be followed.
    """
    why = refusal(field, rule)
    if why:
        raise HdicaError(why)
    problem, prior = posed_whole(field)
    task = problem, prior, rule, target
    at = np.array([target.time])
    plan, _ = coarse(problem, np.unique(np.append(at, _SOON)), _CLOSE)
    if target.time <= 0:
        # Only the start has made any.
        step = next(remembered(problem, plan, 4))
        at_start = _at(step, 0, target.values(step.cells))
        pieces = pieces_of(step.cells, field.phi.kinks)
        return _at_start(at_start, pieces, field.start, prior), np.zeros(target.count)
    if float(plan.runs[-1].ends[-1]) < target.time:
        return np.full(target.count, np.nan), np.full(target.count, np.nan)
    plan = graded(plan, at)
    levels = [_level(*task, plan, 1), _level(*task, plan, 2)]
    while True:
        last, change = levels[-1], (levels[-1] - levels[-2]) / 3
        settled = np.all(np.abs(change) <= GOAL * np.maximum(np.abs(last), np.abs(last).max()))
        if settled or len(levels) == LEVELS:
            return last + change, np.abs(change)
        levels.append(_level(*task, plan, 2 ** len(levels)))
