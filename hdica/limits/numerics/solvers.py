"""Solvers: differential equations, extrapolation, zeros, and the work that one call may do.

Differential equations are solved by Dormand and Prince's method, whose steps cannot be longer than
what the fastest rate allows, even where nothing moves any more. Where it would take more
evaluations than are allowed, which are counted and so depend on no machine, the equation is stiff,
and LSODA solves it instead. Where large rates that nearly cancel leave a noise of rounding, it
follows no closer than that.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.schedules import Schedule
from hdica.process.progress import check_deadline, tell

Flow = Callable[[float, Array], Array]
Span = tuple[float, float, Array]
"""Two times, and those between them at which states are wanted."""
MOST = 1_000_000
"""Evaluations of the rate between two jumps that the explicit method is allowed: twelve seconds."""
FASTEST = 1e60
"""A rate beyond which no method makes a step: its powers are no numbers."""
LOOKS = 50_000
"""Evaluations after which their number to the end is foretold, from the pace of the last ones."""
MOST_STIFF = 50_000
"""Evaluations that LSODA is allowed; it needs a thousand where rounding lets it take its steps."""
LOOSER, LOOSEST = 100.0, 1e-6
"""By how much its tolerance grows where it needs more, and how far."""
TRUST = 4
"""How many times that number must be too large where the step size varies, and the pace with it."""
CHECKS = 16
"""Evaluations between two checks of the deadline."""
_ONE_AT_A_TIME = threading.Lock()
"""SciPy's LSODA refuses to solve two problems in turns."""


class Integrated(NamedTuple):
    """States at the output times, and the largest tolerance that they needed."""

    states: Array
    tolerance: float


class _Slow(Exception):
    """More evaluations are needed than are allowed; its argument is the time reached."""


def stretches(breaks: Iterable[float], times: Array) -> Iterator[tuple[float, float]]:
    """Ends of the stretches between breaks, from 0 to the last of some times."""
    last = float(times[-1])
    edges = [0.0, *(t for t in breaks if 0 < t < last), last]
    return ((low, high) for low, high in pairwise(edges) if low < high)


def integrate(
    rate: Callable[[Array, float], Array],
    schedule: Schedule,
    state: Array,
    times: Array,
    tolerance: float,
) -> Integrated:
    """States at increasing ``times``, shape (T, *state.shape), by Dormand and Prince's order 8.

    ``rate(state, step_size)`` is of the shape of the state; the method starts again at jumps of the
    step size. The tolerance is relative and absolute, a step; what is returned says if it had to be
    larger.
    """
    shape, now, used = state.shape, state.ravel(), tolerance
    result = np.empty((times.size, now.size))
    result[times <= 0.0] = now
    trust = TRUST if schedule.constant is None else 1
    for low, high in stretches(schedule.breaks, times):
        # Inside a piece the step size is that of the open interval, also at its ends.
        def flow(t: float, y: Array, low: float = low, high: float = high) -> Array:
            size = schedule.at(min(max(t, low), high - 1e-12 * max(1.0, high)))
            return rate(y.reshape(shape), size).ravel()

        inside = (times > low) & (times <= high)
        span = (low, high, times[inside])
        with np.errstate(all="ignore"):
            fastest = float(np.max(np.abs(flow(low, now)), initial=0.0))
        if not fastest < FASTEST:
            size = f"{fastest:.3g}" if np.isfinite(fastest) else "no number"
            raise HdicaError(
                f"the limit could not be followed from t = {low:.6g} on: its rate there is {size} "
                "(choose a smaller step size or a weaker signal)"
            )
        try:
            result[inside], now = _solved("DOP853", flow, now, span, tolerance, MOST, trust)
        except _Slow:
            result[inside], now, looser = _stiff(flow, now, span, tolerance)
            used = max(used, looser)
    return Integrated(result.reshape(times.size, *shape), used)


def _stiff(flow: Flow, now: Array, span: Span, tolerance: float) -> tuple[Array, Array, float]:
    """The same by a method whose steps the fastest rate does not bound, and its tolerance."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        # What it warns of is in the sentence below.
        warnings.simplefilter("ignore", UserWarning)
        while True:
            try:
                solved = _solved("LSODA", flow, now, span, tolerance, MOST_STIFF, math.inf)
                return *solved, tolerance
            except _Slow as exc:
                tolerance *= LOOSER
                if tolerance > 1.5 * LOOSEST:
                    raise HdicaError(
                        f"the limit could not be followed to t = {span[1]:.6g}: its rates are so "
                        f"large that rounding hides where it goes, and {MOST_STIFF:,} evaluations "
                        f"by an implicit method led to t = {exc.args[0]:.3g} (choose a smaller "
                        "step size, a weaker signal or a source with lighter tails)"
                    ) from None


def _solved(
    method: str, flow: Flow, now: Array, span: Span, tolerance: float, most: int, trust: float
) -> tuple[Array, Array]:
    """States at times between two jumps of the step size, shape (T, states), and at the second.

    ``most`` evaluations are allowed; ``trust`` is how many times too many must be foretold.
    """
    from scipy.integrate import solve_ivp

    low, high, times = span
    made, seen = 0, low

    def counted(t: float, y: Array) -> Array:
        nonlocal made, seen
        made += 1
        if made % CHECKS == 0:
            check_deadline()
        if made % LOOKS == 0:
            left = LOOKS * max(0.0, high - t) / max(t - seen, 1e-300)
            seen = t
            if made >= most or made + left > trust * most:
                raise _Slow(t)
        return flow(t, y)

    close = {"rtol": tolerance, "atol": tolerance}
    solved = solve_ivp(counted, (low, high), now, method=method, dense_output=True, **close)
    if not solved.success:
        raise HdicaError(f"the limit could not be integrated beyond t = {solved.t[-1]:.6g}")
    return (solved.sol(times).T if times.size else np.empty((0, now.size))), solved.y[:, -1]


_COLUMNS = 3
"""Powers that are eliminated at most."""


def romberg(levels: Array) -> tuple[Array, Array]:
    """Best value and its error, from runs whose error is a h^2 + b h^3 + c h^4 + ...

    All powers from the second occur: those in the step in time because the method is of order two
    and not symmetric, the odd ones in the cells because a smooth start meets a kink. Levels, two at
    least, are of shape (levels, ...), coarsest first.

    The best is the last entry of the table, its error twice the larger of its differences to the
    entry before it in its row and, divided by eight, to the last entry of the row above. The first
    alone estimates the error of the entry before; the factor two is for other powers than these.
    """
    rows = [[levels[0]]]
    for value in levels[1:]:
        row = [value]
        for power, coarser in enumerate(rows[-1][:_COLUMNS], start=2):
            row.append(row[-1] + (row[-1] - coarser) / (2**power - 1))
        rows.append(row)
    best = rows[-1][-1]
    across = np.abs(best - rows[-1][-2])
    return best, 2 * np.maximum(across, np.abs(best - rows[-2][-1]) / 8)


Function = Callable[[Array], tuple[Array, Array]]
"""Values and slopes at an array of points."""
_GENERATIONS = 12
_ROUNDING = 1e-12


def _refined(function: Function, nodes: Array) -> tuple[Array, Array, Array]:
    """Nodes between which the cubic through values and slopes describes the function.

    Intervals are halved until the cubic predicts the value half-way to a small part of the
    smallest value nearby: then it has the zeros that the function has.
    """
    x = np.unique(nodes)
    f, s = function(x)
    open_ = np.ones(x.size - 1, dtype=bool)
    for _ in range(_GENERATIONS):
        left = np.flatnonzero(open_)
        if left.size == 0:
            break
        right, width = left + 1, np.diff(x)[left]
        middle = (x[left] + x[right]) / 2
        value, slope = function(middle)
        cubic = (f[left] + f[right]) / 2 + width * (s[left] - s[right]) / 8
        least = np.minimum(np.minimum(np.abs(f[left]), np.abs(f[right])), np.abs(value))
        rough = np.abs(value - cubic) > 0.02 * least + _ROUNDING
        rough &= width > 1e-9
        x = np.insert(x, right, middle)
        f, s = np.insert(f, right, value), np.insert(s, right, slope)
        open_ = np.zeros(x.size - 1, dtype=bool)
        # Every halved interval has moved to the right by the insertions before it.
        moved = left[rough] + np.flatnonzero(rough)
        open_[moved] = open_[moved + 1] = True
    return x, f, s


def _between(function: Function, a: float, b: float, which: int) -> float:
    """Zero of the value (0) or the slope (1) between two points of opposite sign.

    Evaluated alone, a point may have the other sign: then the value there is rounding.
    """
    if a == b:
        return a

    @cache  # the method begins with both ends again
    def at(x: float) -> float:
        return float(function(np.array([x]))[which][0])

    if at(a) * at(b) > 0:
        return a if abs(at(a)) < abs(at(b)) else b
    close = {"xtol": 1e-15, "rtol": 4 * np.finfo(float).eps, "maxiter": 200}
    return float(scipy.optimize.brentq(at, a, b, **close))


def find_zeros(function: Function, nodes: Array) -> Array:
    """Every zero between the first and the last node, by increasing position.

    ``function`` gives values and slopes, continuous between the nodes; its corners must be among
    them. Where it only touches zero to rounding, the point of contact is one.
    """
    x, f, s = _refined(function, nodes)
    zeros = list(x[f == 0.0])
    for i, j in pairwise(range(x.size)):
        if f[i] * f[j] < 0:
            zeros.append(_between(function, x[i], x[j], 0))
        elif f[i] * s[i] < 0 < f[j] * s[j]:
            touch = _between(function, x[i], x[j], 1)
            value = float(function(np.array([touch]))[0][0])
            if value * f[i] < 0:
                zeros.append(_between(function, x[i], touch, 0))
                zeros.append(_between(function, touch, x[j], 0))
            elif abs(value) < _ROUNDING:
                zeros.append(touch)
    return np.array(sorted(set(zeros)))


MOST_POINTS = 800_000_000
"""Points at which one call may evaluate Boltzmann densities: about a minute on a slow core."""
EACH = 20_000
"""Points that one evaluation costs whatever its size."""


@dataclass
class _Account:
    """What one call has spent."""

    what: str
    points: int = 0
    evaluations: int = 0


_ACCOUNT: ContextVar[_Account | None] = ContextVar("hdica_work", default=None)


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Count the work of ``what`` is done inside; a call inside another counts with it."""
    if _ACCOUNT.get() is not None:
        yield
        return
    token = _ACCOUNT.set(_Account(what))
    try:
        yield
    finally:
        _ACCOUNT.reset(token)


def spend(points: int, each: int = EACH) -> None:
    """Count one evaluation at some points."""
    account = _ACCOUNT.get()
    if account is None:
        return
    account.points += points + each
    account.evaluations += 1
    tell(lambda: f"{account.what}: {account.evaluations:,} evaluations")
    if account.points > MOST_POINTS:
        raise HdicaError(
            f"{account.what} were not found within the work that is allowed "
            f"({account.evaluations:,} evaluations of Boltzmann averages): give a narrower range "
            "(low, high), fewer values, a smoother or weaker regularizer, or a prior with fewer "
            "values"
        )
