"""Differential equations with a step size that may jump, by Dormand and Prince's method."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.schedules import Schedule

Array = NDArray[np.float64]


def integrate(
    rate: Callable[[Array, float], Array],
    schedule: Schedule,
    state: Array,
    times: Array,
    tolerance: float,
) -> Array:
    """States at ``times``, shape (T, *state.shape), by Dormand and Prince's method of order 8.

    Parameters
    ----------
    rate
        ``rate(state, step_size)``, of the shape of the state.
    schedule
        Step size as a function of time; the method starts again at its jumps.
    state
        At time 0.
    times
        Shape (T,), increasing.
    tolerance
        Relative and absolute, a step.

    Raises
    ------
    HdicaError
        If the steps become too small.
    """
    shape, now = state.shape, state.ravel()
    result = np.empty((times.size, now.size))
    result[times <= 0.0] = now
    end = float(times[-1])
    edges = [0.0, *(t for t in schedule.breaks if 0 < t < end), end]
    for low, high in pairwise(edges):
        if high <= low:
            continue
        flow = _vector_rate(rate, schedule, shape, low, high)
        inside = (times > low) & (times <= high)
        result[inside], now = _advance(flow, now, low, high, times[inside], tolerance)
    return result.reshape(times.size, *shape)


def _advance(
    flow: Callable[[float, Array], Array],
    now: Array,
    low: float,
    high: float,
    times: Array,
    tolerance: float,
) -> tuple[Array, Array]:
    """States at ``times`` between two jumps of mu, shape (T, states), and at the second jump."""
    from scipy.integrate import solve_ivp

    solved = solve_ivp(
        flow, (low, high), now, method="DOP853", rtol=tolerance, atol=tolerance, dense_output=True
    )
    if not solved.success:
        raise HdicaError(f"the limit could not be integrated beyond t = {solved.t[-1]:.6g}")
    return (solved.sol(times).T if times.size else np.empty((0, now.size))), solved.y[:, -1]


def _vector_rate(
    rate: Callable[[Array, float], Array],
    schedule: Schedule,
    shape: tuple[int, ...],
    low: float,
    high: float,
) -> Callable[[float, Array], Array]:
    # Inside a piece the step size is that of the open interval, also at its ends.
    margin = 1e-12 * max(1.0, high)

    def vector(t: float, y: Array) -> Array:
        inside = min(max(t, low), high - margin)
        size = schedule.constant or float(schedule.value(np.array(inside)))
        return rate(y.reshape(shape), size).ravel()

    return vector
