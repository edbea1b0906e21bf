"""Near zero: whether an overlap is trapped there, how deep, and when it escapes.

With r = sqrt(n) R and nu = n^2 eta (or n tau) of order one, an overlap obeys in s = t/n^3
(Rattray 2002, (24)-(26))

    dr = -U'(r) ds + sqrt(P) nu dB,    U = P nu^2 r^2/4 - C nu r^4/24,

with P = <phi(z)^2> and C = |kappa4 <phi'''(z)>|, z standard normal, if the rule has the sign of
kappa4 <phi'''(z)>; with the other sign both terms of U confine.

Times of escapes are in n^3 steps throughout. As n tends to infinity r escapes to infinity,
dr = (-r/2 + g r^3) du + dB in u = P nu^2 s; at finite n it escapes when |R| reaches a threshold,
by a diffusion with the moments of one step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array, Function, Scalar
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import cumulants, mean_derivative, power_at
from hdica.limits.numerics.densities import survival
from hdica.limits.numerics.first_passage import (
    Diffusion,
    PassageTime,
    Start,
    first_passage,
    safe_exp,
)
from hdica.limits.numerics.series import interpolate, real_roots

VERSION = 4


_VANISHES = 1e-11
"""An average by quadrature below this, relative to its scale, counts as zero."""


class Trap(NamedTuple):
    """What a nonlinearity and a source mean to an overlap near zero."""

    power: float  # P = <phi(z)^2>
    kurtosis: float  # kappa4 of the source
    third: float  # <phi'''(z)>
    power_error: float = 0.0  # absolute, as third_error
    third_error: float = 0.0

    @property
    def product(self) -> float:
        """Kappa4 <phi'''(z)>, with its sign."""
        return self.kurtosis * self.third

    @property
    def pull(self) -> float:
        """C = |kappa4 <phi'''(z)>|."""
        return abs(self.product)

    @property
    def errors(self) -> tuple[float, float]:
        """Relative errors of P and C."""
        third = self.third_error / abs(self.third) if self.third else 0.0
        return self.power_error / self.power, third

    @property
    def sigma(self) -> int:
        """The sign that lets an entry escape, (23); 0 if kappa4 <phi'''(z)> vanishes."""
        return int(np.sign(self.product))

    def depth(self, nu: float) -> float:
        """The only parameter g = C/(6 P nu) of dr = (-r/2 + g r^3) ds + dB."""
        return self.pull / (6 * self.power * nu)

    def potential(self, nu: float, r: Array | float, escaping: bool = True) -> Array:
        """U(r), (26), for the sign of sigma that lets an entry escape, or for the other."""
        square = np.asarray(r, dtype=float) ** 2
        quartic = self.pull * nu * square**2 / 24
        return self.power * nu**2 * square / 4 + (-quartic if escaping else quartic)

    def summit(self, nu: float) -> float:
        """Where the barrier is: r with r^2 = 3 P nu/C."""
        return math.sqrt(3 * self.power * nu / self.pull) if self.pull else math.inf

    def barrier(self, nu: float) -> float:
        """Height of the barrier, 3 P^2 nu^3/(8 C)."""
        return 3 * self.power**2 * nu**3 / (8 * self.pull) if self.pull else math.inf

    def exponent(self, nu: float) -> float:
        """3 P nu/(4 C), the exponent of the escape time: (27) corrected.

        The noise in (25) has variance D = P nu^2 a unit of s, so that Kramers' exponent is
        2 Delta U/D; (27) has Delta U/D, half of it.
        """
        return 3 * self.power * nu / (4 * self.pull) if self.pull else math.inf

    def log_kramers(self, nu: float) -> float:
        """Logarithm of Kramers' escape time pi sqrt(2)/(P nu^2) exp(3 P nu/(4 C)), in n^3 steps.

        Both barriers count. Its relative error falls like the inverse of the exponent.
        """
        return math.log(math.pi * math.sqrt(2) / (self.power * nu**2)) + self.exponent(nu)

    def kramers(self, nu: float) -> float:
        """Kramers' escape time, in n^3 steps; infinite where a number cannot hold it."""
        return safe_exp(self.log_kramers(nu))


@lru_cache(maxsize=64)
def near_zero(phi: Formula, source: Source) -> Trap:
    """P, kappa4 and <phi'''(z)> of a nonlinearity and a source."""
    power, power_off = power_at(phi, source, 0.0)
    if power == 0.0:
        raise HdicaError(f"nonlinearity: {phi.text!r} is not allowed (it vanishes)")
    kappa = cumulants(source, 4)
    scale = math.sqrt(power)
    (second, _), (third, off) = (mean_derivative(phi, source, 0.0, k) for k in (2, 3))
    if abs(kappa[3] * second) > 1e-9 * scale:
        raise HdicaError(
            f"nonlinearity: {phi.text!r} with the skewed source {source.label} is not allowed "
            f"near R = 0 (kappa3 <phi''(z)> = {kappa[3] * second:.3g} must be 0, as for odd ones; "
            "else it escapes in n^2 steps: give nu2, where the system has it)"
        )
    third = 0.0 if abs(third) < _VANISHES * scale else third
    kurtosis = 0.0 if abs(kappa[4]) < _VANISHES else float(kappa[4])
    return Trap(power, kurtosis, third, power_off, off)


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


class Range(NamedTuple):
    """A diffusion of |r| and where it begins and ends."""

    diffusion: Diffusion  # of r, in the unit of time of ``rate``
    high: float  # where it has escaped
    start: Start
    summit: float  # the barrier
    rate: float  # units of time in n^3 steps
    doubt: float = 0.0  # relative error of the mean time by averages that are not in ``wrong``
    wrong: tuple[Diffusion, ...] = ()  # with averages off by SHOWN times their errors
    coarse: Diffusion | None = None  # with averages by fewer points

    @property
    def scale(self) -> float:
        """A length on which something happens."""
        return min(max(self.summit, 1e-3), self.high)

    def passage(self, diffusion: Diffusion) -> PassageTime:
        """The time of the escape by a diffusion."""
        return first_passage(diffusion, 0.0, self.high, self.start, scale=self.scale)


@dataclass(frozen=True, eq=False)
class EscapeLaw:
    """Law of an escape time, in n^3 steps; its survival is found when first asked for."""

    setting: Range
    passage: PassageTime  # in the unit of time of the setting

    @cached_property
    def _clock(self) -> tuple[Function, float]:
        """Cumulative hazard and error."""
        passage = self.passage
        if passage.barrier > _DEEP or not math.isfinite(passage.log_mean):
            return _two_moments(passage, self.setting.rate), math.exp(-_DEEP)
        times, hazard, error = _tabulated(self.setting, passage)
        cumulative = _interpolated(times / self.setting.rate, hazard)
        nodes, weights = panel_nodes(np.append(0.0, _octaves(self.mean)), _NODES)
        # The mean is known far better from its own equation: the clock is set by it.
        pace = dot(weights, np.exp(-cumulative(nodes))) / self.mean
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
        setting = self.setting
        moved = math.fsum(self._moved(diffusion) for diffusion in setting.wrong) / SHOWN
        coarse = self._moved(setting.coarse) if setting.coarse is not None else 0.0
        return self.passage.error + setting.doubt + moved + coarse

    def _moved(self, diffusion: Diffusion) -> float:
        """How far another diffusion moves the logarithm of the mean; 0 where there is none."""
        if not math.isfinite(self.passage.log_mean):
            return 0.0
        return abs(self.setting.passage(diffusion).log_mean - self.passage.log_mean)

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
        return np.exp(-self.hazard(times))

    @property
    def median(self) -> float:
        """Time by which it has escaped with probability one half."""
        return self.quantile(0.5)

    def quantile(self, probability: float) -> float:
        """Time by which it has escaped with a probability."""
        from scipy.optimize import brentq

        if not math.isfinite(self.mean) or self.mean == 0.0:
            return self.mean
        hazard = -math.log1p(-probability)

        def excess(log: float) -> float:
            return float(self.hazard(np.array([math.exp(log)]))[0]) - hazard

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
        return lambda r: erf(r / math.sqrt(2))
    # The square of one coordinate of a random direction has a beta law.
    return lambda r: betainc(0.5, (n - 1) / 2, np.minimum(r * r / n, 1.0))


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


def escape_law(setting: Range) -> EscapeLaw:
    """The law of the escape from a range."""
    return EscapeLaw(setting, setting.passage(setting.diffusion))


def _octaves(mean: float) -> Array:
    return np.asarray(mean * 2.0 ** np.arange(_OCTAVES[0], _OCTAVES[1] + 1))


def _two_moments(passage: PassageTime, rate: float) -> Function:
    """Of p exp(-t/tau) with the right mean and second moment; p < 1 if some begin outside."""
    log_tau = passage.log_second - passage.log_mean - math.log(2)
    log_p = min(passage.log_mean - log_tau, 0.0) if math.isfinite(log_tau) else 0.0
    slope = rate * math.exp(-min(log_tau, 700.0)) if math.isfinite(log_tau) else math.inf
    return lambda t: t * slope - log_p


def _tabulated(setting: Range, passage: PassageTime) -> tuple[Array, Array, float]:
    """Times and cumulative hazards, in the units of the range, and the error of the survival."""
    diffusion, start, scale, delay = setting.diffusion, setting.start, setting.scale, 0.0
    cut = min(setting.high, max(_CUT * setting.summit, 8.0 if callable(start) else 2 * start))
    if cut < setting.high:
        delay = first_passage(diffusion, 0.0, setting.high, cut, scale=scale).mean
    times, _ = panel_nodes(_octaves(passage.mean), _NODES)
    values, error = survival(diffusion, cut, start, times, scale=scale)
    # What has been carried past the cut arrives later by a time that hardly varies.
    hazard = -np.log(np.maximum(values, 1e-12))
    return times + delay, np.maximum.accumulate(hazard), float(error.max())


def _interpolated(times: Array, hazard: Array) -> Function:
    """Cumulative hazard: a spline in log t, constant before, of constant slope after it."""
    from scipy.interpolate import CubicSpline

    last = int(np.searchsorted(hazard, -math.log(_SURE)))
    last = min(max(last, _NODES), times.size - 1)
    slope = float((hazard[last] - hazard[last - _NODES]) / (times[last] - times[last - _NODES]))
    spline = CubicSpline(np.log(times[: last + 1]), hazard[: last + 1])

    def value(t: Array) -> Array:
        inside = np.clip(t, times[0], times[last])
        beyond = np.maximum(t - times[last], 0.0) * slope
        return np.maximum(spline(np.log(inside)), hazard[0]) + beyond

    return value


class Optimum(NamedTuple):
    """The learning rate at which an entry escapes fastest."""

    depth: float  # g there: the same for all nonlinearities and sources
    value: float  # the least g^2 F(g), with the mean time F/(P nu^2)

    def nu(self, trap: Trap) -> float:
        """nu* = C/(6 P g)."""
        return trap.depth(self.depth)

    def time(self, trap: Trap) -> float:
        """The least mean time, 36 P/C^2 times the value, in n^3 steps."""
        return 36 * trap.power / trap.pull**2 * self.value


def scaled_time(depth: float, start: Begin = "zero") -> PassageTime:
    """The time F(g) to infinity of dr = (-r/2 + g r^3) du + dB, for a depth g > 0."""
    scale = 1 / math.sqrt(2 * depth)
    return first_passage(scaled(depth), 0.0, math.inf, begin(start), scale=scale)


def least_over_depth(
    log_mean: Scalar, ends: tuple[float, float], degree: int
) -> list[tuple[float, float]]:
    """Depths d at which d^2 F(d) is stationary between two, each with its value.

    ``log_mean`` is the logarithm of F, interpolated in the logarithm of the depth.
    """
    low, high = map(math.log, ends)
    series, place = in_logarithm(lambda x: log_mean(math.exp(x)) + 2 * x, low, high, degree)
    stationary = real_roots(series.deriv()).tolist()
    return [(math.exp(place(x)), math.exp(series(x))) for x in stationary]


def in_logarithm(value: Scalar, low: float, high: float, degree: int) -> tuple[Chebyshev, Scalar]:
    """A function of a logarithm between two, interpolated on [-1, 1], and the logarithm there."""

    def place(x: float) -> float:
        return (low + high + (high - low) * x) / 2

    return interpolate(lambda x: value(place(x)), degree), place


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
