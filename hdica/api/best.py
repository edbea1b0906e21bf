"""The parameters of a system with which its limit does best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from hdica.api.goals import Goal, Measured, goal_of
from hdica.api.request import Over, with_values
from hdica.errors import HdicaError, refused
from hdica.ingredients.plain import is_number
from hdica.process.progress import USUAL, named, tell, within
from hdica.process.progress import shown as showing
from hdica.systems.arguments import entries, finite
from hdica.systems.labelled import described, noted
from hdica.systems.method import Array
from hdica.systems.parameters import Parameters
from hdica.systems.space import Axis, address, check_conflicts, in_formulas, in_one_spelling
from hdica.systems.system import joined, record_of

Value = float | str
MOST_CHOICES = 100
_TAKEN = frozenset({"value", "error", "success", "trial"})
_VALUES = "a tuple (low, high), {'low': ..., 'high': ...}, or a list of numbers or texts to try"


@showing
def best(
    system: Parameters,
    over: Over,
    goal: str | Mapping[str, float],
    *,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """The parameters with which the limit n -> infinity does best.

    Every combination of choices is tried. In ranges a grid finds where the best may be, and
    every local best of it, the first two at most, is polished: by Brent's method in one range,
    else by that of Nelder and Mead. The result is the best of all that was tried; that there
    is none better between the points of the grid is not proved.

    Parameters
    ----------
    system
        The problem; its own values of the parameters that vary do not matter.
    over
        What may be chosen: fields, short names (``"rho"``), dotted paths or constants of the
        formulas. A tuple ``(low, high)``, or ``{"low": ..., "high": ...}``, is a range, of which
        there may be three; a list is choices, tried one by one, such as formulas. A constant that
        a choice of formulas does not use is left out with it. Ranges are looked at evenly in the
        logarithm if they are > 0, more closely near 0 if they begin there, else evenly.
    goal
        ``"steady overlap"``: the largest overlap of a stable state, whatever the start;
        ``{"overlap at": t}``: the overlap at a time, from the system's start;
        ``{"time to": overlap, "within": t}``: the time until the overlap is reached, which has to
        be within 10^4 unless ``within`` says otherwise; ``{"support errors": threshold, "at": t}``:
        the share of entries of the feature that lie on the wrong side of the threshold on abs(x).
        Overlaps are absolute, and of a matrix the largest entry counts.
    timeout, progress
        As in :func:`hdica.limit`, for all of it; None for no limit. Two ranges take about 150
        trials, three 300; where the limit is a density each may take a second.

    Returns
    -------
    xarray.Dataset
        Each parameter by its name (dots become ``_``) with its best value, ``value`` of the goal
        there, its ``error`` (that of the limit; NaN where the limit states none) and ``success``
        (whether the goal is reached and the polish converged). Over ``trial``, in the order in
        which they were tried: ``tried_`` with the name of each parameter, NaN or empty where it
        was left out, and ``tried_value``, infinite where an overlap is not reached and NaN where
        there is no limit. Attribute ``parameters`` is the best system as JSON; ``note`` says which
        parameter is best at an end of its range.

    Raises
    ------
    HdicaError
        If an argument is not allowed, or there is no limit at any of the points.

    Examples
    --------
    >>> import hdica
    >>> pca = hdica.SparsePCA(tau=0.5, omega=1.0, Q0=0.1)
    >>> found = hdica.best(pca, {"tau": (0.05, 2)}, {"time to": 0.9})
    >>> float(found.tau.round(3)), float(found.value.round(2)), bool(found.success)
    (0.185, 24.05, True)
    """
    record = record_of(system)
    wanted = goal_of(goal, record)
    spaces = spaces_of(system, over)
    return within(timeout, named("best", system), lambda: _best(spaces, wanted))


@dataclass(frozen=True)
class Space:
    """Systems with some choices (``fixed``, by key) made in their ``content``, and ranges left."""

    cls: type[Parameters]
    content: dict[str, Any]
    fixed: dict[str, Value]
    axes: tuple[Axis, ...]
    ranges: tuple[Range, ...]

    def values(self, point: tuple[float, ...]) -> dict[str, Value]:
        """Parameters at a point of the ranges, by key."""
        return self.fixed | {axis.key: x for axis, x in zip(self.axes, point, strict=True)}

    def system(self, point: tuple[float, ...]) -> Parameters:
        """The system at a point of the ranges."""
        return self.cls(**with_values(self.content, self.axes, point))


@dataclass(frozen=True)
class _Trial:
    """A point that was tried, and what it gave."""

    space: Space
    point: tuple[float, ...]
    measured: Measured


def _best(spaces: list[Space], goal: Goal) -> xr.Dataset:
    trials, refusals, converged = list[_Trial](), list[HdicaError](), dict[int, bool]()

    def loss(space: Space, point: tuple[float, ...]) -> float:
        number = len(trials) + 1
        tell(lambda: f"best: trial {number}")
        try:
            measured = goal.measure(space.system(point))
        except HdicaError as exc:
            refusals.append(exc)
            measured = Measured(np.nan, np.nan, np.inf, str(exc))
        trials.append(_Trial(space, point, measured))
        return measured.loss

    for space in spaces:
        converged[id(space)] = smallest(partial(loss, space), space.ranges)
    where = int(np.argmin([one.measured.loss for one in trials]))
    if np.isfinite(trials[where].measured.loss):
        return _labelled(trials, where, goal, converged[id(trials[where].space)])
    note = trials[0].measured.note
    none = HdicaError(f"best: no point has a limit (at the first of them {note})")
    raise next(iter(refusals), none)


def _labelled(trials: list[_Trial], where: int, goal: Goal, converged: bool) -> xr.Dataset:
    """The best of what was tried, as labelled data."""
    best, measured = trials[where], trials[where].measured
    tried = [one.space.values(one.point) for one in trials]
    data, table = dict[str, Any](), dict[str, Any]()
    for key in dict.fromkeys(key for values in tried for key in values):
        name, words = key.replace(".", "_"), any(isinstance(one.get(key), str) for one in tried)
        column = [one.get(key, "" if words else np.nan) for one in tried]
        array = np.array(column, dtype=object if words else float)
        data[name] = ((), array[where], {"long_name": f"best value of {key}"})
        table[f"tried_{name}"] = ("trial", array, {"long_name": f"{key} that was tried"})
    about = {"long_name": goal.words, "units": goal.units}
    success = bool(np.isfinite(measured.value) and converged)
    data["value"] = ((), measured.value, about)
    data["error"] = ((), measured.error, {"long_name": "error of the value", "units": goal.units})
    meaning = "whether the goal is reached and the search converged"
    data["success"] = ((), success, {"long_name": meaning})
    table["tried_value"] = ("trial", np.array([one.measured.value for one in trials]), about)
    result = xr.Dataset(data | table, {"trial": np.arange(len(trials))}, {"goal": goal.words})
    note = joined(measured.note, at_an_end(best.space, best.point))
    return described(noted(result, note), best.space.system(best.point))


def at_an_end(space: Space, point: tuple[float, ...]) -> str:
    """Which parameters are best at an end of their range; empty if none is."""
    notes = []
    for axis, one, value in zip(space.axes, space.ranges, point, strict=True):
        if end := one.end(value):
            notes.append(f"{axis.key} = {value:.6g} is at the {end} end of its range")
    return joined(*notes, "a wider range may have a better one") if notes else ""


def spaces_of(system: Parameters, over: object, name: str = "over") -> list[Space]:
    """The ranges left at every combination of choices; ``name`` is that of the argument."""
    if not isinstance(over, Mapping) or not over:
        raise refused(name, over, "at least one parameter with a range or choices")
    cls, content = type(system), system.model_dump(mode="python")
    own = {k: in_one_spelling(k, cls, content) if isinstance(k, str) else k for k in over}
    if len(set(own.values())) == len(own):
        over = {own[key]: values for key, values in over.items()}
    ranges, choices = _sorted(over, name)
    axes = tuple(Axis(k, address(k, cls, content, name), v) for k, v in choices.items())
    spaces = []
    for values in itertools.product(*choices.values()):
        changed = with_values(content, axes, values)
        used = {key: one for key, one in ranges.items() if _matters(key, cls, changed)}
        here = tuple(Axis(key, address(key, cls, changed, name), ()) for key in used)
        check_conflicts({}, (*axes, *here), name)
        fixed = dict(zip(choices, values, strict=True))
        spaces.append(Space(cls, changed, fixed, here, tuple(used.values())))
    for key in ranges:
        if not any(key == axis.key for space in spaces for axis in space.axes):
            address(key, cls, spaces[0].content, name)  # refuses what is no parameter
            raise HdicaError(f"{name}: {key} is not allowed (no formula uses it)")
    if len(spaces) > MOST_CHOICES:
        raise HdicaError(
            f"{name}: {len(spaces)} combinations of choices are not allowed (at most "
            f"{MOST_CHOICES})"
        )
    return spaces


def _matters(key: str, cls: type[Parameters], content: dict[str, Any]) -> bool:
    """Whether a key is a field, or a constant that a formula uses."""
    try:
        path = address(key, cls, content, "over")
    except HdicaError:
        return False
    return path[0] != "constants" or in_formulas(path[-1], cls, content)


def _sorted(
    over: Mapping[Any, Any], name: str
) -> tuple[dict[str, Range], dict[str, tuple[Value, ...]]]:
    """Ranges and choices by key, each as it is given in the argument of that name."""
    ranges: dict[str, Range] = {}
    choices: dict[str, tuple[Value, ...]] = {}
    for key, given in over.items():
        if not isinstance(key, str) or key.replace(".", "_") in _TAKEN:
            raise HdicaError(f"{name}: {key!r} is not allowed (it names a variable of the result)")
        if isinstance(given, tuple | Mapping):
            ranges[key] = _range(f"{name}: {key}", given)
        else:
            choices[key] = _choices(f"{name}: {key}", given, key)
    if len(ranges) > max(PER_RANGE):
        raise HdicaError(
            f"{name}: {len(ranges)} ranges ({', '.join(ranges)}) are not allowed (at most "
            f"{max(PER_RANGE)}; give the others a value)"
        )
    return ranges, choices


def _range(where: str, given: tuple[Any, ...] | Mapping[str, Any]) -> Range:
    if isinstance(given, Mapping):
        ends, allowed = (given.get("low"), given.get("high")), set(given) == {"low", "high"}
    else:
        ends, allowed = given, len(given) == 2
    if not allowed:
        raise refused(where, given, _VALUES)
    low, high = (finite(value, where) for value in ends)
    if not low < high:
        raise HdicaError(f"{where} = ({low:g}, {high:g}) is not allowed (low < high)")
    return Range(low, high)


def _choices(where: str, given: object, key: str) -> tuple[Value, ...]:
    if isinstance(given, str):
        raise refused(where, given, _VALUES)
    choices = entries(given, where, _VALUES, MOST_CHOICES)
    alike = all(map(is_number, choices)) or all(isinstance(value, str) for value in choices)
    if not choices or not alike or len(set(choices)) < len(choices):
        raise refused(where, choices, _VALUES)
    return tuple(value if isinstance(value, str) else finite(value, key) for value in choices)


Loss = Callable[[tuple[float, ...]], float]
PER_RANGE = {1: 25, 2: 7, 3: 5}  # points of the grid in each of so many ranges
_STARTS = 2
_CLOSE = 1e-7  # share of a range at which Brent's method ends
_SIDE, _LEVEL = 3e-4, 1e-7
"""Side of the simplex, and differences of the loss on it, at which Nelder and Mead's ends."""
_MOST = 120
_END = 1e-4


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, both included.

    On the way from 0 to 1 they are spaced evenly in the logarithm if both ends are > 0, as squares
    if the lower one is 0, which looks closer where a parameter is small, and else evenly.
    """

    low: float
    high: float

    def at(self, u: float) -> float:
        """The number at a share of the way."""
        if u <= 0:
            return self.low
        if u >= 1:
            return self.high
        if self.low > 0:
            return self.low * math.exp(u * math.log(self.high / self.low))
        return self.low + (self.high - self.low) * (u * u if self.low == 0 else u)

    def end(self, value: float) -> str:
        """Which end a number is at, for people; empty if it is inside."""
        inside = self.at(_END) < value < self.at(1 - _END)
        return "" if inside else ("lower" if value <= self.at(_END) else "upper")


def smallest(loss: Loss, ranges: tuple[Range, ...], per_range: int | None = None) -> bool:
    """Compute the loss on a grid and polish its lowest two minima; whether that converged."""

    def at(u: Array) -> float:
        return loss(tuple(r.at(float(x)) for r, x in zip(ranges, u, strict=True)))

    if not ranges:
        return bool(np.isfinite(at(np.empty(0))))
    count = per_range or PER_RANGE[len(ranges)]
    line = np.linspace(0.0, 1.0, count)
    shape = (count,) * len(ranges)
    grid = np.array([at(np.array(u)) for u in itertools.product(line, repeat=len(ranges))])
    polished = [_polished(at, line[list(i)], 1 / (count - 1)) for i in _minima(grid.reshape(shape))]
    return bool(polished) and all(polished)


def _minima(grid: Array) -> list[tuple[int, ...]]:
    """Where a grid is not above any neighbour: the lowest of these, and of equal ones the first."""
    from scipy.ndimage import maximum_filter, minimum_filter

    around = np.ones((3,) * grid.ndim, dtype=bool)
    around[(1,) * grid.ndim] = False
    least = minimum_filter(grid, footprint=around, mode="constant", cval=np.inf)
    most = maximum_filter(grid, footprint=around, mode="constant", cval=-np.inf)
    # On a plateau one point is enough.
    minima = np.argwhere(np.isfinite(grid) & (grid <= least) & (grid < most))
    if not len(minima) and np.isfinite(grid).any():
        minima = np.argwhere(grid == grid.min())[:1]
    return sorted(map(tuple, minima.tolist()), key=lambda place: (grid[place], place))[:_STARTS]


def _polished(at: Callable[[Array], float], u: Array, step: float) -> bool:
    """Search around a point of the grid until nothing changes; whether this was reached."""
    from scipy.optimize import minimize, minimize_scalar

    low, high = np.maximum(u - step, 0.0), np.minimum(u + step, 1.0)
    if u.size == 1:
        search = minimize_scalar(
            lambda x: at(np.array([x])),
            bounds=(float(low[0]), float(high[0])),
            method="bounded",
            options={"xatol": _CLOSE, "maxiter": _MOST},
        )
        return bool(search.success)
    # From the point into the box, whichever side has room.
    toward = np.where(u + step / 2 <= 1, step / 2, -step / 2)
    simplex = np.vstack([u, u + np.diag(toward)])
    value = at(u)
    options = {
        "initial_simplex": simplex,
        "xatol": _SIDE,
        "fatol": _LEVEL * max(1.0, abs(value)),
        "maxfev": _MOST * u.size,
    }
    bounds = [(0.0, 1.0)] * u.size
    search = minimize(at, u, method="Nelder-Mead", bounds=bounds, options=options)
    return bool(search.success)
