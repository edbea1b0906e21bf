"""The step sizes that bring a density to an overlap soonest.

Rates b and B are of first order in the step size, and g is of second: with v(t), the adjoint of the
overlap at the end, tau(t) changes that overlap by

    dQ(T)/dtau(t) = h1 + 2 tau h2,    h1 = v . A1 p,  h2 = v . A2 p,

so that tau = -h1/(2 h2) is best along the density and the adjoint as they are (Pontryagin). These
are then solved for anew, until what such a change would add to Q(T) is next to nothing: to second
order it is the sum of (h1 + 2 tau h2)^2/(4 |h2|) over time, and over dQ/dt the time that is left to
save. Where the overlap alone closes the limit v cancels, and tau is what
:mod:`hdica.limits.overlap.fastest` has.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.schedules import Schedule, make_schedule
from hdica.limits.bands import sweep
from hdica.limits.bands.solve import Change, gradient_level, problem_of
from hdica.limits.mean_field.density.solve import coarse, solve
from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.overlap.fastest import Fastest
from hdica.process.progress import tell

PIECES, SWEEPS, HALVINGS = 32, 10, 3
"""Pieces of constant step size, sweeps at most, and how often a change that saves nothing is
halved."""
LEFT = 1e-4  # share of the time that may be left to save
TOLERANCE = 1e-7  # of the densities that only lead to the schedule
STEP = 1e-4  # relative change of rates whose effect is asked for
LARGEST = 4.0  # factor by which one sweep changes a step size at most
LADDER = 12  # times that a step size is halved or doubled
LONGEST, STILL = 256.0, 1e-3
"""How many times the horizon a constant step size may take, and the part of what is missing by
which an overlap grows in the last quarter of a time if it goes on."""
CLOSE = 5e-3  # distance in ln(tau) to which the best constant step size is sought
AROUND = np.linspace(0.97, 1.03, 7)
"""Times, as shares of the one that is expected, from which the time to the goal is interpolated."""
AHEAD = 1.1  # share of the time of the best so far up to which another schedule is followed


class Course(NamedTuple):
    """A coarse density under a schedule: when it has the goal, how fast Q grows then, and Q(t)."""

    when: float  # infinite if it does not
    slope: float
    times: Array
    q: Array


def _under(field: MeanField, edges: Array, tau: Array) -> MeanField:
    """The limit under step sizes that hold from each of the edges, the first 0, to the next."""
    if tau.size == 1:
        return replace(field, schedule=make_schedule(float(tau[0])))
    steps = {"times": edges[1:].tolist(), "values": tau.tolist()}
    return replace(field, schedule=make_schedule({"steps": steps}))


def _course(field: MeanField, goal: float, side: float, last: float) -> Course:
    from scipy.interpolate import CubicSpline
    from scipy.optimize import brentq

    _, seen = coarse(problem_of(field), np.array([last]), TOLERANCE)
    times, q = seen.times, side * seen.rows[:, 1]
    reached = np.flatnonzero(q >= goal)
    if not reached.size:
        return Course(math.inf, math.nan, times, q)
    k = int(reached[0])
    near = slice(max(k - 3, 0), k + 3)
    curve = CubicSpline(times[near], q[near] - goal)
    when = float(brentq(curve, times[k - 1], times[k]))
    return Course(when, float(curve(when, 1)), times, q)


def _rises(course: Course, goal: float) -> bool:
    """Whether an overlap that has not reached the goal goes on towards it."""
    late = float(np.interp(0.75 * course.times[-1], course.times, course.q))
    return float(course.q[-1]) - late > STILL * (goal - float(course.q[-1]))


def _best_constant(
    field: MeanField, goal: float, side: float, horizon: float
) -> tuple[float, Course]:
    """The constant step size that takes least, sought from that of the field, and its course."""
    from scipy.optimize import minimize_scalar

    begin, courses = field.schedule.at(0.0), dict[float, Course]()

    def followed(log: float, last: float) -> Course:
        tau = math.exp(log)
        tell(f"constant step size {tau:.4g}")
        return _course(_under(field, np.zeros(1), np.array([tau])), goal, side, last)

    one, last = Course(math.inf, math.nan, np.zeros(1), np.zeros(1)), horizon
    for tried in range(2 * LADDER):
        # The step size itself, its half, its double, a quarter, and so on.
        middle = math.log(begin) + (-1) ** tried * ((tried + 1) // 2) * math.log(2)
        with suppress(HdicaError):  # a density that is too narrow for any grid
            one, last = followed(middle, horizon), horizon
            while not math.isfinite(one.when) and _rises(one, goal) and last < LONGEST * horizon:
                last *= LARGEST
                one = followed(middle, last)
        if math.isfinite(one.when):
            break
    else:
        least, most = (begin * 2.0**k for k in (-LADDER, LADDER - 1))
        raise HdicaError(
            f"goal = {goal:g} is not reached with any constant step size that was tried, from "
            f"{least:.3g} to {most:.3g} (a goal below it, or another tau to begin with)"
        )
    longest = LARGEST * one.when

    def lasting(log: float) -> float:
        """Time to the goal; beyond the longest one more, the farther from the goal it ends."""
        try:
            courses[log] = course = followed(log, longest)
        except HdicaError:  # too narrow for any grid
            return 3 * longest
        return min(course.when, longest * (2 - float(course.q.max()) / goal))

    least = lasting(middle)
    ends = []
    for sign in (1.0, -1.0):
        for _ in range(LADDER):
            beyond = lasting(middle + sign * math.log(2))
            if beyond >= least:
                break
            middle, least = middle + sign * math.log(2), beyond
        ends.append(middle + sign * math.log(2))
    found = minimize_scalar(
        lasting, bounds=sorted(ends), method="bounded", options={"xatol": CLOSE}
    )
    best = float(found.x) if found.fun < least else middle
    return math.exp(best), courses[best]


def _scaled(schedule: Schedule, factor: float) -> Schedule:
    constant = None if schedule.constant is None else factor * schedule.constant
    return Schedule(lambda t: factor * schedule.value(t), constant, schedule.breaks)


class _Weights(NamedTuple):
    """Ends of steps, 0 first, and of each step tau, tau (h1 + 2 tau h2) and tau^2 h2 over it."""

    times: Array
    tau: Array
    slope: Array
    curve: Array

    @property
    def gain(self) -> float:
        """What the best step size at every step would add to the overlap, to second order."""
        below = self.curve < 0
        return float(np.sum(self.slope[below] ** 2 / (-4 * self.curve[below])))

    def better(self, edges: Array) -> Array:
        """The best step size of each piece between the edges, of which the first is 0."""
        middle = (self.times[1:] + self.times[:-1]) / 2
        # Pieces are of steps: one without any takes those on both sides.
        sums = [
            np.interp(edges, self.times, np.append(0.0, np.cumsum(part)))
            for part in (self.slope / self.tau, self.curve / self.tau**2, np.diff(self.times))
        ]
        slope, curve, length = (np.diff(part) for part in sums)
        before = np.exp(np.interp((edges[1:] + edges[:-1]) / 2, middle, np.log(self.tau)))
        first = slope - 2 * curve * before
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(curve < 0, -first / (2 * curve), np.where(slope > 0, np.inf, 0.0))
        best = np.where(length > 0, best, before)
        return np.clip(best, before / LARGEST, before * LARGEST)


def _weights(field: MeanField, when: float, side: float) -> _Weights:
    """One sweep back from the goal: what step sizes and their noise do to the overlap there."""

    def toward(xi: Array, x: Array) -> Array:
        return side * xi * x

    def noisier(factor: float) -> MeanField:
        noise = field.diffusion
        if isinstance(noise, Scaled):
            return replace(field, diffusion=noise.times(factor))
        return replace(field, diffusion=lambda q, tau: factor * noise(q, tau))

    up, down = 1 + STEP, 1 - STEP
    larger, smaller = (replace(field, schedule=_scaled(field.schedule, k)) for k in (up, down))
    sides = (larger, smaller), (noisier(up), noisier(down))
    changes = [Change(*pair, STEP, (toward, toward)) for pair in sides]
    problem, times = problem_of(field), np.array([when])
    plan = sweep.graded(coarse(problem, times, TOLERANCE)[0], times)
    _, _, ends, rate = gradient_level(problem, sweep.means(when, [toward]), changes, plan, 2)
    rows = rate * np.diff(ends)[:, None]
    return _Weights(ends, field.schedule.value((ends[1:] + ends[:-1]) / 2), *rows.T)


def _edges(course: Course) -> Array:
    """Ends of pieces of the same length, half in time and half in overlap."""
    there = course.times <= course.when
    times = np.append(course.times[there], course.when)
    q = np.maximum.accumulate(np.append(course.q[there], course.q[there].max()))
    passed = times / times[-1] + (q - q[0]) / max(float(q[-1] - q[0]), 1e-12)
    return np.interp(np.linspace(0, passed[-1], PIECES + 1), passed, times)


class Timed(NamedTuple):
    """A time to the goal, its error, and overlaps on the way."""

    when: float
    error: float
    q: Array


def _arrival(field: MeanField, begins: Array, goal: float, side: float, when: float) -> Timed:
    """When a density has the goal, with its error, and the overlaps at some times before."""
    from scipy.interpolate import CubicSpline

    for _ in range(3):
        around = when * AROUND
        times = np.unique(np.concatenate([begins, around]))
        path = solve(field, times)
        if path.stopped:
            raise HdicaError(path.stopped)
        at = np.searchsorted(times, around)
        q, error = side * path.q[at], float(path.q_error[at].max())
        curve = CubicSpline(around, q - goal)
        # The root inside, or that of the line on which it lies.
        inside = q[0] < goal <= q[-1]
        slope = float((q[-1] - q[0]) / (around[-1] - around[0]))
        roots = curve.roots(extrapolate=False) if inside else np.empty(0)
        when = float(roots[0]) if inside else when + (goal - float(q[3])) / slope
        if inside:
            rough = CubicSpline(around[::2], q[::2] - goal).roots(extrapolate=False)
            of_curve = abs(float(rough[0]) - when)
            before = path.q[np.searchsorted(times, begins)]
            return Timed(when, error / slope + of_curve, before)
    raise HdicaError("the time to the goal could not be resolved (another goal)")


def fastest(field: MeanField, goal: float, horizon: float) -> Fastest:
    """The schedule of a density from its start to an overlap of size ``goal`` on the same side.

    The search begins at the step size of the field, and halves and doubles it until one reaches the
    goal, at some hundred times the time ``horizon`` at most. Step sizes hold from each of the times
    of the result to the next; the error of the last time has in it what is left to save.

    Raises
    ------
    HdicaError
        If no constant step size that is tried reaches the goal.
    """
    side = math.copysign(1.0, field.q0)
    constant, course = _best_constant(field, goal, side, horizon)
    edges, tau = np.array([0.0, course.when]), np.array([constant])
    one = _under(field, edges[:1], tau)
    of_constant = _arrival(one, np.zeros(1), goal, side, course.when)
    best, best_edges, best_tau, left = course, edges, tau, math.inf
    for number in range(SWEEPS):
        tell(f"schedule: sweep {number + 1} of at most {SWEEPS}")
        weights = _weights(_under(field, best_edges[:-1], best_tau), best.when, side)
        left = weights.gain / best.slope
        if left <= LEFT * best.when:
            break
        edges = _edges(best)
        tau = weights.better(edges)
        before = best_tau[np.searchsorted(best_edges[1:-1], (edges[1:] + edges[:-1]) / 2)]
        for _ in range(HALVINGS):
            course = _course(_under(field, edges[:-1], tau), goal, side, AHEAD * best.when)
            if course.when < best.when:
                break
            tau = np.sqrt(tau * before)
        else:
            break
        best, best_edges, best_tau = course, edges, tau
    begins = best_edges[:-1][best_edges[:-1] < best.when]
    values = best_tau[: begins.size]
    timed = _arrival(_under(field, begins, values), begins, goal, side, best.when)
    return Fastest(
        time=np.append(begins, timed.when),
        q=np.append(timed.q, side * goal),
        tau=np.append(values, values[-1]),
        error=timed.error + left,
        constant=constant,
        constant_time=of_constant.when,
    )
