"""McKean-Vlasov particles: the mean-field limit by simulation, without any grid in x.

The density of :class:`hdica.limits.mean_field.family.MeanField` is the law of

    dZ = [b xi - B phi(Z) - 2 h Z] dt + sqrt(2 g) dW,

the stochastic differential equation below (15) in Wang and Lu 2017. With Q and R taken from the
particles themselves it solves the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy
from numpy.random import Generator

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, Indices, Scalar
from hdica.ingredients.prior import normalised
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.limits.mean_field.family import OVERLAP, PENALTY, MeanField
from hdica.process.progress import check_deadline

VERSION = 4


class Lots(NamedTuple):
    """Lots of particles in an exchange, and their order, each of shape (count,).

    A particle takes part in exchanges of a share above its lot, so that a later one holds an
    earlier one.
    """

    lots: Array
    order: Indices

    def exchanged(self, z: Array, share: float) -> Array:
        """Each particle that takes part goes to the feature's entry of the next one."""
        chosen = self.order[self.lots[self.order] < share]
        moved = z.copy()
        moved[chosen] = z[np.roll(chosen, 1)]
        return moved


def drawn(rng: Generator, count: int) -> Lots:
    """New lots."""
    return Lots(rng.random(count), rng.permutation(count))


_STABLE = 0.5
_NEAR = 1e-12


class Cloud(NamedTuple):
    """Particles z at one time, phi(z), and the means q and r of xi z and of z phi(z)."""

    z: Array
    phi: Array
    q: float
    r: float

    @property
    def finite(self) -> bool:
        """Whether the order parameters are numbers."""
        return math.isfinite(self.q) and math.isfinite(self.r)


def cloud(field: MeanField, xi: Array, z: Array) -> Cloud:
    """The particles ``z`` with what the coefficients need of them."""
    phi = field.phi.value(z)
    return Cloud(z, phi, dot(xi, z) / z.size, dot(z, phi) / z.size)


def matched(w: Array, xi: Array, z: Array) -> Array:
    """Normal numbers made orthogonal to xi and z, with mean square one.

    With independent numbers, Q and E[Z^2] of the particles carry a martingale of order
    count^-1/2, and its square biases them by O(1/count). Here both are free of it. What is
    taken from each number is O(count^-1/2), so that the limit is the same.
    """
    w = w - xi * (dot(xi, w) / dot(xi, xi))
    rest = z - xi * (dot(xi, z) / dot(xi, xi))
    size = dot(rest, rest)
    # Where z is parallel to xi the rest is rounding, which is no direction.
    if size > _NEAR * z.size:
        w = w - rest * (dot(rest, w) / size)
    return normalised(w)


def velocity(
    field: MeanField, xi: Array, now: Cloud, order: tuple[float, float], tau: float
) -> Array:
    """The drift of each particle at the order parameters (Q, R)."""
    check_deadline()
    q, r = order
    pull, curvature = field.pull(q, tau), field.curvature(q, r, tau)
    return pull * xi - field.strength(tau) * now.phi - curvature * now.z


class Step(NamedTuple):
    """One step of the particles from ``t`` to ``end``, which can be left at any time within.

    Where the feature moves, half of the exchanges come before and half after what is learned, by
    the ``lots`` of each half (Strang 1968). ``noise`` are normal numbers for it, of shape (count,)
    as the feature; ``tau(t)`` is the step size of the rule.
    """

    field: MeanField
    xi: Array
    start: Cloud
    noise: Array
    t: float
    end: float
    tau: Scalar
    lots: tuple[Lots, Lots] | None = None

    def at(self, later: float) -> Cloud:
        """The particles at ``later``: Heun's method, of weak order 2 as the noise is additive.

        Every ``later`` uses the same normal numbers: the law at each of them is right, and to
        look at one does not change the path.
        """
        if later <= self.t:
            return self.start
        if self.lots is None:
            return self._learned(self.start, self.noise, later)
        share = -math.expm1(-self.field.motion.rate * ((later - self.t) / 2))
        before, after = self.lots
        start = cloud(self.field, self.xi, before.exchanged(self.start.z, share))
        learned = self._learned(start, matched(self.noise, self.xi, start.z), later)
        return cloud(self.field, self.xi, after.exchanged(learned.z, share))

    def _learned(self, now: Cloud, noise: Array, later: float) -> Cloud:
        """What the step makes of particles whose feature stays."""
        field, xi, dt = self.field, self.xi, later - self.t
        tau, tau_later = self.tau(self.t), self.tau(later)
        g = field.diffusion(now.q, tau)
        slope = velocity(field, xi, now, (now.q, now.r), tau)
        ahead = cloud(field, xi, now.z + dt * slope + math.sqrt(2 * g * dt) * noise)
        # The predictor is on the sphere only up to O(dt^2).
        q = min(1.0, max(-1.0, ahead.q))
        slope = (slope + velocity(field, xi, ahead, (q, ahead.r), tau_later)) / 2
        spread = math.sqrt((g + field.diffusion(q, tau_later)) * dt)
        return cloud(field, xi, normalised(now.z + dt * slope + spread * noise))


def _rates(field: MeanField, now: Cloud, tau: float, jump: float) -> tuple[float, float]:
    """Fastest rate of the moments of the law, and of a single particle.

    A drift that jumps by 2 B ``jump`` is felt in a layer of width g/(B jump), which diffusion
    crosses within g/(B jump)^2.
    """
    strength, g = field.strength(tau), field.diffusion(now.q, tau)
    steepness = np.abs(field.phi.derivative.value(now.z))
    typical = math.sqrt(dot(steepness, steepness) / steepness.size)
    law = abs(field.pull(now.q, tau)) + g + strength * (abs(now.r) + typical)
    curvature = abs(field.curvature(now.q, now.r, tau))
    law += field.motion.rate
    return law + (strength * jump) ** 2 / g, curvature + strength * float(steepness.max())


def _length(
    field: MeanField,
    now: Cloud,
    t: float,
    tau: Scalar,
    step: float,
    jump: float,
    within: tuple[Scalar, ...],
) -> float:
    """Length of the next step: from the present state alone, not from the times asked for."""
    law, particle = _rates(field, now, tau(t), jump)
    length = 1 / max(law / step, particle / _STABLE)
    if field.schedule.constant is None:
        # A schedule may change faster than anything in the field.
        for size_at in within:
            size = step * size_at(t)
            while max(abs(size_at(t + s * length) - size_at(t)) for s in (0.5, 1.0)) > size:
                length /= 2
                if length <= _NEAR:
                    break
    return length


def _tau_within(schedule: Schedule, low: float, high: float) -> Scalar:
    """Step size between two jumps, and at each of them its limit from within."""
    first, last = low + _NEAR * max(1.0, low), high * (1 - _NEAR)
    return lambda t: schedule.at(min(max(t, first), last))


def steps(field: MeanField, xi: Array, z: Array, rng: Generator, step: float) -> Iterator[Step]:
    """The path from t = 0 on, without end; it ends a step at each jump of the step size.

    ``step`` is the time step in units of the fastest time scale.
    """
    now, t, motion, kinks = cloud(field, xi, z), 0.0, field.motion, np.array(field.phi.kinks)
    reach = 1e-9 * (1 + np.abs(kinks))
    jumps = np.abs(field.phi.value(kinks + reach) - field.phi.value(kinks - reach))
    jump = float(np.max(jumps, initial=0.0)) / 2
    for edge in (*sorted({*field.schedule.breaks, *motion.jumps}), math.inf):
        if t in motion.jumps:
            now = cloud(field, xi, drawn(rng, z.size).exchanged(now.z, motion.share))
        tau = _tau_within(field.schedule, t, edge)
        within = tuple(_tau_within(schedule, t, edge) for schedule in field.followed)
        while t < edge:
            length = _length(field, now, t, tau, step, jump, within)
            end = edge if t + length >= edge * (1 - _NEAR) else t + length
            noise, lots = rng.standard_normal(z.size), None
            if motion.rate > 0:
                lots = drawn(rng, z.size), drawn(rng, z.size)
            else:
                noise = matched(noise, xi, now.z)
            current = Step(field, xi, now, noise, t, end, tau, lots)
            yield current
            now, t = current.at(end), end


Stream = Callable[[str], Generator]
Observe = Callable[[Array, Array, int], None]

STEP = 0.025
"""Time step in units of the fastest time scale: errors in Q of some 1e-4, as tested."""
MIN_COUNT = 10
MAX_STEPS = 1_000_000
_NOT_FINITE = "the particles were not finite at t = {:.6g}"


def _begin(field: MeanField, count: int, rng: Generator) -> tuple[Array, Array]:
    """Feature and particles at t = 0, normal given xi by quantiles, Q and E[Z^2] matched."""
    xi = (field.prior.entries or field.prior.feature)(rng, count)
    mean, variance = field.start.conditional(xi)
    groups, normal = field.prior.classify(xi), np.empty(count)
    for group in np.unique(groups):
        check_deadline()
        members = np.flatnonzero(groups == group)
        strata = rng.permutation(members.size) + rng.random(members.size)
        check_deadline()
        normal[members] = scipy.special.ndtri(strata / members.size)
    check_deadline()
    return xi, normalised(mean + math.sqrt(variance) * matched(normal, xi, mean))


@np.errstate(over="ignore", invalid="ignore")
def run(
    field: MeanField,
    times: Array,
    count: int,
    stream: Stream,
    *,
    step: float = STEP,
    observe: Observe | None = None,
) -> tuple[dict[str, Array], str]:
    """Particles that interact through their own Q and R: the limit itself as count -> infinity.

    A step is Heun's method with normal numbers made orthogonal to xi and z, then E[Z^2] = 1 again
    by rescaling; the multiplier 2 h alone would not hold it, as departures grow where h < 0. The
    bits of a path depend on the field, the count, the stream and ``step`` alone: output times
    between the ends of steps are reached by a step of their own.

    Entries of xi take the shares of the prior, as in a feature of dimension ``count``;
    ``stream(part)`` is the generator of ``"start"`` and of ``"noise"``; the error of ``step``, a
    time step in units of the fastest time scale, is O(step^2) where phi is smooth; ``observe(xi, z,
    index)`` is called at each time. Returned are Q and R by name, each of the shape of the times,
    and why the particles stopped, or nothing; values from then on are NaN. A jump of the feature
    comes just after the values at its time.

    At phi = 0 and a feature that stays Q has neither noise nor bias at any count. Else both are
    small: ten times or more below the standard deviation, and some thirty times below the
    O(1/count) bias, of particles with independent numbers.
    """
    if isinstance(count, bool) or int(count) != count or count < MIN_COUNT:
        raise HdicaError(f"count = {count!r} is not allowed (a whole number >= {MIN_COUNT})")
    if not 0 < step <= 1:
        raise HdicaError(f"step = {step!r} is not allowed (0 < step <= 1)")
    xi, z = _begin(field, count, stream("start"))
    values = {name: np.full(times.size, np.nan) for name in (OVERLAP, PENALTY)}
    index = 0
    for made, current in enumerate(steps(field, xi, z, stream("noise"), step)):
        check_deadline()
        if made >= MAX_STEPS:
            return values, f"the particles needed {MAX_STEPS} steps to reach t = {current.t:.6g}"
        if not current.start.finite:
            return values, _NOT_FINITE.format(current.t)
        # A time at which the feature jumps belongs to the step before.
        jumps = current.end in field.motion.jumps
        last = math.nextafter(current.end, math.inf) if jumps else current.end
        while index < times.size and times[index] < last:
            seen = current.at(float(times[index]))
            if not seen.finite:
                return values, _NOT_FINITE.format(times[index])
            values[OVERLAP][index], values[PENALTY][index] = seen.q, seen.r
            if observe is not None:
                shown = seen.z.view()
                shown.flags.writeable = False
                observe(xi, shown, index)
            index += 1
        if index == times.size:
            break
    return values, ""
