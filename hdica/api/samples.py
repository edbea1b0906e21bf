"""How many samples a rule needs to learn a feature, and with which step sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from hdica.api.limit import auto
from hdica.api.mean_field import field_maker
from hdica.api.request import Request
from hdica.errors import HdicaError
from hdica.limits.bands.schedule import fastest as along_density
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fastest import Fastest, Moments, arrival, fastest
from hdica.limits.passage.samples import fewest
from hdica.process.progress import USUAL, limited, shown
from hdica.systems import fields
from hdica.systems.arguments import finite, whole
from hdica.systems.labelled import applicable, described
from hdica.systems.parameters import Parameters
from hdica.systems.system import record_of, systems

LEVEL = 0.8
"""Overlap at which a random start has left Q = 0, if the goal is beyond."""
RANDOM = "random"
_SKEWED = 1.0
"""Skewness of the time of a passage from which on its expansion is none."""


@shown
@limited
def optimal_schedule(
    system: Parameters,
    start: object = None,
    goal: float = 0.9,
    *,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """The step sizes tau(t) that bring the limit to an overlap soonest.

    Where the overlap alone closes the limit, dQ/dt = tau D1(Q) + tau^2 D2(Q), the largest rate at
    every overlap is best: tau = -D1/(2 D2), half of the step size at which Q would stay. For x^3
    of online ICA that is k q (1 - q)/(15 - 15 k q^2 + k6 q^3) with q = Q^2, for Oja's method omega
    (1 - q)/(1 + omega q). Where a density evolves, as with beta*sign(x), the best constant step
    size is improved by sweeps forward along the density and back along its adjoint, until what
    another schedule could still save is next to nothing.

    Parameters
    ----------
    system
        Online ICA or sparse PCA, with a signal that is constant and a feature that stays. Its own
        step size does not matter, but where a density evolves the search begins at it.
    start
        In place of the system's: an overlap, or what a field ``start`` may be.
    goal
        Size of the overlap to be reached, below 1.
    timeout, progress
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        ``tau(time)`` and the overlap, ``Q(time)``, from the start to the goal; ``t``, the time that
        takes, in updates per dimension, and ``t_error``; ``best_constant_tau``, the constant step
        size that takes least, and ``best_constant_t``, its time. Of a density each ``tau`` holds
        from its time to the next, and ``t_error`` has in it what the best schedule may save.

    Raises
    ------
    HdicaError
        If the signal varies or the feature moves, the start has no overlap, or no step size leads
        to the goal.

    Examples
    --------
    >>> import hdica
    >>> ica = hdica.OnlineICA(tau=0.02, source="uniform", start={"overlap": 0.5})
    >>> best = hdica.optimal_schedule(ica, goal=0.9**0.5)
    >>> float(best["t"].round(4)), float(best["best_constant_t"].round(4))
    (222.0997, 230.6437)
    """
    system, target = _beginning(system, start), share(goal, "goal")
    make = _able(system)
    if fields.closed_refusal(system):  # type: ignore[arg-type]
        path = _along_density(system, target)
    else:
        path = _path(make(system).drift, system, target)
    overlap = record_of(system).order_parameters[0].name
    data = xr.Dataset(
        {
            "tau": ("time", path.tau, {"long_name": "step size"}),
            overlap: ("time", path.q, {"long_name": "overlap"}),
            "t": ((), path.time[-1], {"long_name": "time to the goal"}),
            "t_error": ((), path.error, {"long_name": "error of the time to the goal"}),
            "best_constant_tau": (
                (), path.constant, {"long_name": "constant step size that takes least"},
            ),
            "best_constant_t": ((), path.constant_time, {"long_name": "time that it takes"}),
        },
        {"time": ("time", path.time, _time(system)), "goal": target},
    )  # fmt: skip
    return described(data, system)


@shown
@limited
def samples_to_overlap(
    system: Parameters,
    n: int,
    overlap: float = 0.9,
    probability: float = 0.95,
    start: object = None,
    *,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """The samples that a rule needs to reach an overlap with a probability, at the best step sizes.

    From an informative start they are n times the time of :func:`optimal_schedule` and a multiple
    of n^(1/2), by the fluctuations about the limit. Online ICA leaves a random start after a number
    of the order of n^3, at a constant step size of the order of 1/n; Oja's method, which drifts
    away from Q = 0, after one of the order of n log n. From there on, growth takes a number of the
    order of n.

    Parameters
    ----------
    system
        As for :func:`optimal_schedule`; a random start is for online ICA and Oja's method.
    n
        Dimension, from 3.
    overlap
        Size of the overlap to be reached, below 1.
    probability
        That it is reached with these samples.
    start
        In place of the system's: ``"random"``, an overlap, or what a field ``start`` may be.
    timeout, progress
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        ``samples``, their error ``samples_error``, and their parts: ``escape``, until abs(Q) is
        0.8 or the goal, at the constant step size ``tau``, and ``growth``, from there to the goal
        with ``schedule(time)``, the time in updates per dimension. ``probability_half`` and
        ``probability_double`` are those with half and with twice the samples. The law of a random
        start's escape is exact up to n = 200 (100 for Oja's method); beyond, it is that of n as n
        -> infinity with what n = 100 adds to it, which falls as 1/n. Without an escape ``tau`` is
        NaN, without growth there is no schedule.

    Raises
    ------
    HdicaError
        As :func:`optimal_schedule`, or if nothing leads away from a random start.

    Examples
    --------
    >>> import hdica
    >>> oja = hdica.SparsePCA(tau=0.1, omega=1.0, start={"overlap": 0.1, "exact": True})
    >>> found = hdica.samples_to_overlap(oja, n=10_000, overlap=0.9**0.5)
    >>> round(float(found["samples"]), -3)
    256000.0
    """
    n, target = whole(n, "n", "a whole number from 3", 3), share(overlap, "overlap")
    chance = share(probability, "probability")
    if isinstance(start, str) and start == RANDOM:
        need = _from_random(system, n, target, chance)
    else:
        system = _beginning(system, start)
        need = _informed(system, n, target, chance)
    words = {
        "samples": "samples to the overlap",
        "samples_error": "error of the samples",
        "escape": "samples to leave Q = 0",
        "growth": "samples from there to the overlap",
        "tau": "constant step size of the escape",
        "probability_half": "probability to have reached the overlap with half the samples",
        "probability_double": "probability to have reached it with twice the samples",
    }
    values = need._asdict()
    data = xr.Dataset({name: ((), values[name], {"long_name": w}) for name, w in words.items()})
    if need.path is not None:
        path, about = need.path, _time(system)
        data["schedule"] = ("time", path.tau, {"long_name": "step size of the growth"})
        data = data.assign_coords(time=("time", path.time, about))
    return described(data.assign_coords(n=n, overlap=target, probability=chance), system)


class _Need(NamedTuple):
    """What is needed, by the names of the results, and the path of the growth."""

    samples: float
    samples_error: float
    escape: float
    growth: float
    tau: float
    probability_half: float
    probability_double: float
    path: Fastest | None


def _from_random(system: Parameters, n: int, goal: float, share: float) -> _Need:
    record = record_of(system)
    if record.leaving is None:
        able = ", ".join(one.name for one in systems().values() if one.leaving)
        raise HdicaError(
            f"start = 'random' is not allowed for {record.name} (its escape from Q = 0 is known of "
            f"{able}: give an overlap)"
        )
    _able(system)
    one = fewest(record.leaving(system), n, share, min(goal, LEVEL))
    path = fastest(moments_of(system).drift, LEVEL, goal) if goal > LEVEL else None
    growth = 0.0 if path is None else n * float(path.time[-1])
    error = one.samples * one.error + (0.0 if path is None else n * path.error)
    samples = one.samples + growth
    half, double = (one.within(part * samples - growth) for part in (0.5, 2.0))
    return _Need(samples, error, one.samples, growth, one.tau, half, double, path)


def _informed(system: Parameters, n: int, goal: float, share: float) -> _Need:
    """From a start with an overlap, by cumulants of the time at which runs arrive."""
    from scipy.stats import norm

    moments = moments_of(system)
    if moments.drift.noise is None:
        raise HdicaError(
            "the fluctuations of the overlap are infinite, and no probability is known (the time "
            "of the limit is: hdica.optimal_schedule)"
        )
    path, begin = _path(moments.drift, system, goal), fields.start(system)  # type: ignore[arg-type]
    prior = fields.prior(system)  # type: ignore[arg-type]
    # What n leaves of the mean of a start is not known of every law.
    shifted = begin.bias(prior)
    when = arrival(moments, path, begin.spread(prior), shifted if math.isfinite(shifted) else 0.0)
    variance = when.variance + when.lacking / n
    skewness = when.third / when.variance**1.5 / math.sqrt(n)
    excess = when.fourth / when.variance**2 / n
    if not (abs(skewness) < _SKEWED and variance > 0):
        least = max(n * (skewness / _SKEWED) ** 2, -when.lacking / when.variance)
        raise HdicaError(
            f"n = {n} is not allowed from this start (its fluctuations are as large as what is "
            f"learned: n from {math.floor(least) + 1} on, or a larger overlap to begin with)"
        )
    mean, deviation = path.time[-1] + when.mean / n, math.sqrt(variance / n)
    z = float(norm.ppf(share))
    # Cornish and Fisher; the last order is the error, beside what is not known of the variance.
    second = excess * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    time = mean + deviation * (z + skewness * (z * z - 1) / 6 + second)

    def within(time: float) -> float:
        x = (time - mean) / deviation
        chance = norm.cdf(x) - skewness * (x * x - 1) * norm.pdf(x) / 6
        return float(np.clip(chance, 0.0, 1.0))

    left = abs(second) + abs(z * when.lacking) / when.variance / n + skewness**2
    many = n * fields.batch(system)  # samples in a unit of time
    error = many * (path.error + deviation * left)
    half, double = within(time / 2), within(2 * time)
    return _Need(many * time, error, 0.0, many * time, math.nan, half, double, path)


def moments_of(system: Parameters) -> Moments:
    """Drift and fluctuation of the overlap, where it closes the limit by itself."""
    return _able(system)(system)


def _able(system: Parameters) -> Callable[[Parameters], Moments]:
    """How a system gives its drift, if it has one and its feature stays."""
    record = record_of(system)
    if record.overlap is None:
        able = ", ".join(one.name for one in systems().values() if one.overlap)
        raise HdicaError(
            f"system = {record.name} is not allowed (the overlap alone closes the limit of {able})"
        )
    why = fields.resting_refusal(system, "the closed limit of the overlap")  # type: ignore[arg-type]
    if why:
        raise HdicaError(why)
    return record.overlap


def _path(drift: Drift, system: Parameters, goal: float) -> Fastest:
    return fastest(drift, _overlap_below(system, goal), goal)


def _along_density(system: Parameters, goal: float) -> Fastest:
    applicable(system, "optimal_schedule", auto(Request()))
    record, field = record_of(system), field_maker(system)(system)
    if field.follows:
        raise HdicaError("a signal that varies is not allowed for schedules (a constant one)")
    _overlap_below(system, goal)
    return along_density(field, goal, record.horizon)


def _overlap_below(system: Parameters, goal: float) -> float:
    """The overlap of the start, which lies between 0 and the goal."""
    begin = fields.start(system).overlap(fields.prior(system))  # type: ignore[arg-type]
    if not 0 < abs(begin) < goal:
        raise HdicaError(
            f"start: an overlap of {begin:g} is not allowed (0 < its size < {goal:g}, the goal; or "
            "'random', for samples)"
        )
    return begin


def _beginning(system: Parameters, start: object) -> Parameters:
    """The system with another start."""
    if start is None:
        return system
    spec = start if isinstance(start, Mapping) else {"overlap": finite(start, "start")}
    return system.model_copy(update={"start": dict(spec)})


def share(value: object, name: str) -> float:
    """A number between 0 and 1."""
    number = finite(value, name)
    if not 0 < number < 1:
        raise HdicaError(f"{name} = {number:g} is not allowed (0 < {name} < 1)")
    return number


def _time(system: Parameters) -> dict[str, str]:
    units = record_of(system).clock.units
    if fields.batch(system) > 1:
        units = "updates per dimension"
    return {"long_name": "time", "units": units}
