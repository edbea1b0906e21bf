"""What :func:`hdica.best` looks for: a number that the limit of a system gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hdica.api.limit import auto
from hdica.api.request import Request
from hdica.errors import HdicaError, shown, suggestion
from hdica.ingredients.save import NOTHING, Save
from hdica.systems.arguments import check_until, finite
from hdica.systems.labelled import applicable, with_role
from hdica.systems.method import Array, Method, PointResult, Role
from hdica.systems.parameters import Parameters
from hdica.systems.system import System, record_of

ALLOWED = (
    "'steady overlap', {'overlap at': t}, {'time to': overlap, 'within': t} or "
    "{'support errors': threshold, 'at': t}"
)
NAMES = ("steady overlap", "overlap at", "time to", "within", "support errors", "at")
LONGEST = 1e4  # time within which an overlap has to be reached, unless the goal says otherwise
_PIECES, _FINER = 64, 32
_STILL = 1e-12


@dataclass(frozen=True)
class Measured:
    """What one system gives: the number, its error, and the loss that the search makes small.

    The loss is infinite where there is no result, and graded where the goal is out of reach, so
    that a search finds the way to where it is not. ``note`` says what is missing.
    """

    value: float
    error: float
    loss: float
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """A goal in words, with the units of its number and ``measure(system)``."""

    words: str
    units: str
    measure: Callable[[Parameters], Measured]


def goal_of(given: object, record: System) -> Goal:
    """The goal that a call names, or a sentence why it is none."""
    if isinstance(given, str) and given == "steady overlap":
        words = "largest overlap of a stable state (maximised)"
        return Goal(words, "1", _steady_overlap)
    goal = given if isinstance(given, Mapping) else {}
    keys = set(goal)
    if keys == {"overlap at"}:
        t = _time(goal["overlap at"], "overlap at")
        return Goal(f"overlap at t = {t:g} (maximised)", "1", lambda one: _overlap_at(one, t))
    if keys == {"support errors", "at"}:
        theta = finite(goal["support errors"], "goal: support errors")
        if theta < 0:
            raise HdicaError(f"goal: support errors = {theta:g} is not allowed (a threshold >= 0)")
        t = _time(goal["at"], "at")
        words = f"share of entries on the wrong side of abs(x) = {theta:g} at t = {t:g} (minimised)"
        return Goal(words, "1", lambda one: _support_errors(one, theta, t))
    if keys in ({"time to"}, {"time to", "within"}):
        target = finite(goal["time to"], "goal: time to")
        if not 0 < target < 1:
            raise HdicaError(f"goal: time to = {target:g} is not allowed (0 < overlap < 1)")
        longest = _time(goal.get("within", LONGEST), "within")
        words = f"time until the overlap is {target:g} (minimised)"
        return Goal(words, record.clock.units, lambda one: _time_to(one, target, longest))
    raise HdicaError(f"goal = {shown(given)} is not known ({suggestion(given, NAMES, ALLOWED)})")


def _time(value: object, name: str) -> float:
    t = finite(value, f"goal: {name}")
    if not t > 0:
        raise HdicaError(f"goal: {name} = {t:g} is not allowed (a time > 0)")
    return t


def _overlap_of(record: System, method: Method) -> str:
    """The first order parameter of a method that is an overlap: at most 1."""
    given = {output.name for output in method.outputs.always}
    for one in record.order_parameters:
        if one.high <= 1 and one.name in given:
            return one.name
    raise HdicaError(
        f"goal: method {method.name!r} of {record.name} gives no overlap (its order parameters: "
        f"{', '.join(one.name for one in record.order_parameters)})"
    )


def _largest(values: Array, errors: Array | None) -> tuple[Array, Array]:
    """The largest absolute entry along the first axis, and its error; NaN where there is none."""
    flat = np.abs(values).reshape(len(values), -1)
    known = np.isfinite(flat)
    rows, where = np.arange(len(flat)), np.argmax(np.where(known, flat, -np.inf), axis=1)
    top = np.where(known.any(axis=1), flat[rows, where], np.nan)
    if errors is None:
        return top, np.full(len(flat), np.nan)
    off = errors.reshape(len(errors), -1)
    return top, off[rows, where] if off.shape == flat.shape else off[:, 0]


def _steady_overlap(system: Parameters) -> Measured:
    record, method = record_of(system), applicable(system, "best", with_role(Role.STEADY_STATES))
    states = method.run(system, np.empty(0), None, None, NOTHING).values
    overlap, error = _largest(states[_overlap_of(record, method)], states.get("error"))
    stable = (states["stable"] == 1) & np.isfinite(overlap)
    if not stable.any():
        return Measured(np.nan, np.nan, 0.0, "no stable state was found")
    best = int(np.argmax(np.where(stable, overlap, -np.inf)))
    return Measured(float(overlap[best]), float(error[best]), -float(overlap[best]))


def _path(system: Parameters, times: Array) -> tuple[Array, Array, PointResult]:
    """Overlap and its error at some times by the limit that ``auto`` takes, shape (T,) each."""
    method = applicable(system, "best", auto(Request()))
    name = _overlap_of(record_of(system), method)
    check_until(system, times)
    result = method.run(system, times, None, None, NOTHING)
    overlap, error = _largest(result.values[name], result.values.get(f"{name}_error"))
    return overlap, error, result


def _missing(result: PointResult) -> Measured:
    return Measured(np.nan, np.nan, np.inf, result.diverged or "the limit is no number there")


def _overlap_at(system: Parameters, t: float) -> Measured:
    overlap, error, result = _path(system, np.array([0.0, t]))
    if not np.isfinite(overlap[-1]):
        return _missing(result)
    return Measured(float(overlap[-1]), float(error[-1]), -float(overlap[-1]))


def _support_errors(system: Parameters, threshold: float, t: float) -> Measured:
    method = applicable(system, "best", auto(Request(snapshots=(t,), thresholds=(threshold,))))
    save = Save((t,), (), (threshold,))
    check_until(system, [t])
    result = method.run(system, np.array([0.0, t]), None, None, save)
    value = float(result.values["misclassified"][0, 0])
    return Measured(value, np.nan, value) if np.isfinite(value) else _missing(result)


def _time_to(system: Parameters, target: float, longest: float) -> Measured:
    """First time at which the overlap is ``target``, on a grid that is made finer where it is."""
    end = min(record_of(system).horizon, longest)
    while True:
        times = np.linspace(0.0, end, _PIECES + 1)
        overlap, _, result = _path(system, times)
        reached = np.flatnonzero(overlap >= target)
        still = np.ptp(overlap[-_PIECES // 4 :]) < _STILL
        if reached.size or end >= longest or still or not np.isfinite(overlap).all():
            break
        end = min(4 * end, longest)
    if reached.size:
        return _crossing(system, times, int(reached[0]), target)
    if not np.isfinite(overlap).all():
        return _missing(result)
    short = 1 - float(overlap[-1]) / target
    note = f"the overlap is {overlap[-1]:.4g} at t = {end:g}, not {target:g}"
    return Measured(np.inf, np.nan, longest * (1 + short), note)


def _crossing(system: Parameters, times: Array, index: int, target: float) -> Measured:
    """The time of a crossing between two output times."""
    from scipy.interpolate import CubicSpline
    from scipy.optimize import brentq

    if index == 0:
        return Measured(0.0, 0.0, 0.0)
    fine = np.linspace(times[index - 1], times[index], _FINER + 1)
    overlap, error, _ = _path(system, fine)
    k = int(np.argmax(overlap >= target))
    if k == 0:  # within the error of the coarse path
        return Measured(float(fine[0]), float(fine[1] - fine[0]), float(fine[0]))

    def root(step: int) -> float:
        curve = CubicSpline(fine[::step], overlap[::step] - target)
        after = -(-k // step) * step
        return float(brentq(curve, fine[after - step], fine[after], xtol=1e-14 * fine[-1]))

    t = root(1)
    slope = (overlap[k] - overlap[k - 1]) / (fine[k] - fine[k - 1])
    return Measured(t, float(error[k] / slope + abs(t - root(2))), t)
