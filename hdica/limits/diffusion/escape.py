"""The law of the time at which an overlap escapes from zero: mean, second moment, survival.

Time is in n^3 steps throughout. As n tends to infinity r = sqrt(n) R escapes to infinity,
dr = (-r/2 + g r^3) du + dB in u = P nu^2 s; at finite n it escapes when |R| reaches a threshold,
by a diffusion with the moments of one step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.limits.averages.trap import Array, Trap, safe_exp
from hdica.limits.diffusion.densities import survival
from hdica.limits.diffusion.first_passage import Diffusion, PassageTime, Start, first_passage
from hdica.limits.numerics.series import interpolate, real_roots

SHOWN = 1e3
"""Factor on errors of averages, so that what they do stands out from rounding."""
Begin = float | Literal["zero", "random"]
_DEEP = 15.0
"""Exponent above which the law is exponential to 1e-6, and its rate too small to resolve."""
_CUT = 6.0
"""Beyond so many distances of the barrier noise no longer matters."""
_SURE = 1e-4
"""Survival below which the hazard is constant."""
_OCTAVES, _NODES = (-16, 6), 10
_OPTIMA = 0.03, 0.15
"""Range of g in which the best is sought."""


@dataclass(frozen=True)
class Range:
    """A diffusion of |r| and where it begins and ends."""

    diffusion: Diffusion  # of r, in the unit of time of ``rate``
    high: float  # where it has escaped
    start: Start
    summit: float  # the barrier
    rate: float  # units of time in n^3 steps
    doubt: float = 0.0  # relative error of the mean time by averages that are not in ``wrong``
    wrong: tuple[Diffusion, ...] = ()  # with averages off by SHOWN times their errors
    coarse: Diffusion | None = None  # with averages by fewer points


@dataclass(frozen=True, eq=False)
class EscapeLaw:
    """Law of an escape time, in n^3 steps; its survival is found when first asked for."""

    setting: Range
    passage: PassageTime  # in the unit of time of the setting

    @cached_property
    def _clock(self) -> tuple[Callable[[Array], Array], float]:
        """Cumulative hazard and error."""
        passage = self.passage
        if passage.barrier > _DEEP or not math.isfinite(passage.log_mean):
            return _two_moments(passage, self.setting.rate), math.exp(-_DEEP)
        times, hazard, error = _tabulated(self.setting, passage)
        cumulative = _interpolated(times / self.setting.rate, hazard)
        # The mean is known far better from its own equation: the clock is set by it.
        pace = _integral(cumulative, self.mean) / self.mean
        return lambda t: cumulative(t * pace), max(error, abs(pace - 1))

    def hazard(self, times: Array) -> Array:
        """Cumulative hazard, -log of the survival, at times in n^3 steps."""
        return self._clock[0](np.asarray(times, dtype=float))

    @property
    def error(self) -> float:
        """Estimated error of the survival: absolute, and of its integral, relative."""
        return self._clock[1]

    @cached_property
    def mean_error(self) -> float:
        """Relative error of the mean: of its equation, and of the averages that enter it."""
        one = self.setting
        moved = math.fsum(self._moved(diffusion) for diffusion in one.wrong) / SHOWN
        coarse = self._moved(one.coarse) if one.coarse is not None else 0.0
        return self.passage.error + one.doubt + moved + coarse

    def _moved(self, diffusion: Diffusion) -> float:
        """How far another diffusion moves the logarithm of the mean; 0 where there is none."""
        if not math.isfinite(self.passage.log_mean):
            return 0.0
        one = self.setting
        other = first_passage(diffusion, 0.0, one.high, one.start, scale=_scale(one))
        return abs(other.log_mean - self.passage.log_mean)

    @property
    def log_mean(self) -> float:
        """Logarithm of the mean, finite for any exponent."""
        return self.passage.log_mean - math.log(self.setting.rate)

    @property
    def mean(self) -> float:
        """The mean; infinite where a floating-point number cannot hold it."""
        return safe_exp(self.log_mean)

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return self.passage.cv * self.mean

    def survival(self, times: Array) -> Array:
        """Probability that the entry has not yet escaped."""
        return np.asarray(np.exp(-self.hazard(times)))

    @property
    def median(self) -> float:
        """Time by which it has escaped with probability one half."""
        from scipy.optimize import brentq

        if not math.isfinite(self.mean) or self.mean == 0.0:
            return self.mean

        def excess(log: float) -> float:
            return float(self.hazard(np.array([math.exp(log)]))[0]) - math.log(2)

        low, high = self.log_mean - 12, self.log_mean + 5
        return math.exp(brentq(excess, low, high, xtol=1e-12)) if excess(low) < 0 else 0.0


def scaled(depth: float | Array) -> Diffusion:
    """What remains of (24)-(25) in units of their noise: dr = (-r/2 + g r^3) du + dB.

    The depth g = C/(6 P nu) is below 0 where sigma does not let the entry escape, and an array of
    the shape of r for entries that differ.
    """
    return Diffusion(lambda r: r * (depth * r * r - 0.5), lambda r: np.ones_like(r))


def begin(start: Begin, n: int | None = None) -> Start:
    """Where |r| begins: a point, or the distribution function of a random direction."""
    from scipy.special import betainc, erf

    if start != "random":
        return 0.0 if start == "zero" else abs(float(start)) * (1.0 if n is None else math.sqrt(n))
    if n is None:
        return lambda r: np.asarray(erf(r / math.sqrt(2)))
    # The square of one coordinate of a random direction has a beta law.
    return lambda r: np.asarray(betainc(0.5, (n - 1) / 2, np.minimum(r * r / n, 1.0)))


def limit_range(trap: Trap, nu: float, start: Begin) -> Range:
    """The escape to infinity of r = sqrt(n) R as n tends to infinity."""
    g = trap.depth(nu)
    summit = 1 / math.sqrt(2 * g)
    off_power, off_pull = trap.errors
    # F(g) changes with g no faster than exp(1/(8 g)) does, and a power beside it.
    doubt = off_power + (1 + 1 / (8 * g)) * (off_power + off_pull)
    return Range(scaled(g), math.inf, begin(start), summit, trap.power * nu**2, doubt)


def summit_of(diffusion: Diffusion, high: float) -> float:
    """The last of 4096 places up to ``high`` at which the drift holds back; the first if none."""
    places = np.linspace(0.0, high, 4097)[1:]
    confined = places[diffusion.drift(places) < 0]
    return float(confined[-1] if confined.size else places[0])


def _scale(one: Range) -> float:
    return min(max(one.summit, 1e-3), one.high)


def escape_law(one: Range) -> EscapeLaw:
    """The law of the escape from a range."""
    return EscapeLaw(one, first_passage(one.diffusion, 0.0, one.high, one.start, scale=_scale(one)))


def _octaves(mean: float) -> Array:
    return np.asarray(mean * 2.0 ** np.arange(_OCTAVES[0], _OCTAVES[1] + 1))


def _integral(hazard: Callable[[Array], Array], mean: float) -> float:
    """The mean time by the survival."""
    times, weights = panel_nodes(np.concatenate([[0.0], _octaves(mean)]), _NODES)
    return dot(weights, np.exp(-hazard(times)))


def _two_moments(passage: PassageTime, rate: float) -> Callable[[Array], Array]:
    """Of p exp(-t/tau) with the right mean and second moment; p < 1 if some begin outside."""
    log_tau = passage.log_second - passage.log_mean - math.log(2)
    log_p = min(passage.log_mean - log_tau, 0.0) if math.isfinite(log_tau) else 0.0
    slope = rate * math.exp(-min(log_tau, 700.0)) if math.isfinite(log_tau) else math.inf
    return lambda t: np.asarray(t * slope - log_p)


def _tabulated(one: Range, passage: PassageTime) -> tuple[Array, Array, float]:
    """Times and cumulative hazards, in the units of the range, and the error of the survival."""
    cut = min(one.high, max(_CUT * one.summit, 8.0 if callable(one.start) else 2 * one.start))
    delay, scale = 0.0, _scale(one)
    if cut < one.high:
        delay = first_passage(one.diffusion, 0.0, one.high, cut, scale=scale).mean
    times, _ = panel_nodes(_octaves(passage.mean), _NODES)
    values, error = survival(one.diffusion, cut, one.start, times, scale=scale)
    # What has been carried past the cut arrives later by a time that hardly varies.
    hazard = -np.log(np.maximum(values, 1e-12))
    return times + delay, np.maximum.accumulate(hazard), float(error.max())


def _interpolated(times: Array, hazard: Array) -> Callable[[Array], Array]:
    """Cumulative hazard: a spline in log t, constant before, of constant slope after it."""
    from scipy.interpolate import CubicSpline

    last = int(np.searchsorted(hazard, -math.log(_SURE)))
    last = min(max(last, _NODES), times.size - 1)
    slope = float((hazard[last] - hazard[last - _NODES]) / (times[last] - times[last - _NODES]))
    spline: Any = CubicSpline(np.log(times[: last + 1]), hazard[: last + 1])

    def value(t: Array) -> Array:
        inside = np.clip(t, times[0], times[last])
        beyond = np.maximum(t - times[last], 0.0) * slope
        return np.asarray(np.maximum(spline(np.log(inside)), hazard[0]) + beyond)

    return value


@dataclass(frozen=True)
class Optimum:
    """The learning rate at which an entry escapes fastest."""

    depth: float  # g there: the same for all nonlinearities and sources
    value: float  # the least g^2 F(g), with the mean time F/(P nu^2)

    def nu(self, trap: Trap) -> float:
        """nu* = C/(6 P g)."""
        return trap.pull / (6 * trap.power * self.depth)

    def time(self, trap: Trap) -> float:
        """The least mean time, 36 P/C^2 times the value, in n^3 steps."""
        return 36 * trap.power / trap.pull**2 * self.value


def scaled_time(depth: float, start: Begin = "zero") -> PassageTime:
    """The time F(g) to infinity of dr = (-r/2 + g r^3) du + dB, for a depth g > 0."""
    scale = 1 / math.sqrt(2 * depth)
    return first_passage(scaled(depth), 0.0, math.inf, begin(start), scale=scale)


def least_over_depth(
    log_mean: Callable[[float], float], ends: tuple[float, float], degree: int
) -> list[tuple[float, float]]:
    """Depths d at which d^2 F(d) is stationary between two, each with its value.

    ``log_mean`` is the logarithm of F, interpolated in the logarithm of the depth.
    """
    low, high = (math.log(end) for end in ends)

    def log_depth(x: float) -> float:
        return (low + high + (high - low) * x) / 2

    def log_time(x: float) -> float:
        return log_mean(math.exp(log_depth(x))) + 2 * log_depth(x)

    series = interpolate(log_time, degree)
    stationary = [float(x) for x in real_roots(series.deriv())]
    return [(math.exp(log_depth(x)), math.exp(float(series(x)))) for x in stationary]


@lru_cache(maxsize=4)
def optimum(start: Begin = "zero") -> Optimum:
    """Where g^2 F(g) is least as n tends to infinity: below nu* the escape is slower again."""
    minima = least_over_depth(lambda g: scaled_time(g, start).log_mean, _OPTIMA, 24)
    if len(minima) != 1:
        raise HdicaError(
            f"start: {start!r} has no optimum with g from {_OPTIMA[0]} to {_OPTIMA[1]} "
            "(zero and random have one)"
        )
    return Optimum(*minima[0])
