"""From which n on a band of order n^-1/2 holds: where three of it do not reach an unstable state.

Near an unstable steady state runs part to either side of it, and near a fold they linger: there Q
is not normal at any n of a size that the distance sets. Above a fold, where two states have merged
and gone, they are roots off the real line, which count with their distance in the plane.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.series import trimmed
from hdica.limits.overlap.drift import Drift, followed
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.process.threads import one_thread

Array = NDArray[np.float64]
DEVIATIONS = 3.0
"""So many standard deviations must stay clear of an unstable state."""
_BETWEEN = 97
_REAL = 1e-7


def repelling(drift: Drift, tau: float) -> NDArray[np.complex128]:
    """Roots of the drift that runs do not settle at: unstable states, and those off the line."""
    states = find_fixed_points(drift, tau)
    real = states.q[~states.stable].astype(complex)
    if not (isinstance(drift.learning, Chebyshev) and isinstance(drift.loss, Chebyshev)):
        return real
    series = trimmed(drift.learning + tau * drift.loss)
    if series.coef.size < 2:
        return real
    with one_thread():
        found = np.asarray(cheb.chebroots(series.coef))
    off = (np.abs(found.imag) > _REAL) & (np.abs(found.real) <= 1)
    return np.concatenate([real, found[off]])


def holds_from(drift: Drift, schedule: Schedule, begin: tuple[float, float], times: Array) -> Array:
    """The n from which the central limit theorem holds up to each of ``times``, shape (T,).

    ``begin`` are Q and n Var(Q) at t = 0. The largest on the way of 9 n Var(Q) over the squared
    distance to what repels; NaN where the fluctuation is infinite, inf where runs start to
    fluctuate at an unstable state itself.
    """
    way = np.union1d(times, np.linspace(0.0, float(times[-1]), _BETWEEN))
    q, spread = followed(drift, schedule, *begin, way)
    known: dict[float, NDArray[np.complex128]] = {}
    least = np.empty(way.size)
    for k, tau in enumerate(np.broadcast_to(schedule.value(way), way.shape).tolist()):
        if tau not in known:
            known[tau] = repelling(drift, tau) if tau > 0 else np.empty(0, complex)
        away = float(np.min(np.abs(q[k] - known[tau]), initial=np.inf))
        sd = DEVIATIONS * float(spread[k])
        least[k] = (sd / away) ** 2 if away > 0 else np.inf if sd > 0 else 0.0
    return np.asarray(np.maximum.accumulate(least)[np.searchsorted(way, times)])
