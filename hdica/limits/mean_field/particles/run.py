"""McKean-Vlasov particles: the mean-field limit by simulation, without any grid in x.

The density of :class:`hdica.limits.mean_field.family.MeanField` is the law of

    dZ = [b xi - B phi(Z) - 2 h Z] dt + sqrt(2 g) dW,

the stochastic differential equation below (15) in Wang and Lu 2017. With Q and R taken from the
particles themselves it solves the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.mean_field.family import OVERLAP, PENALTY, MeanField
from hdica.limits.mean_field.particles.step import matched, on_sphere, steps
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Stream = Callable[[str], np.random.Generator]
Observe = Callable[[Array, Array, int], None]

STEP = 0.025
"""Time step in units of the fastest time scale: errors in Q of some 1e-4, as tested."""
MIN_COUNT = 10
MAX_STEPS = 1_000_000


def _begin(field: MeanField, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Feature and particles at t = 0, normal given xi by quantiles, Q and E[Z^2] matched."""
    xi = field.prior.stand_ins(rng, count)
    mean, variance = field.start.conditional(xi)
    groups, normal = field.prior.classify(xi), np.empty(count)
    for group in np.unique(groups):
        check_deadline()
        members = np.flatnonzero(groups == group)
        strata = rng.permutation(members.size) + rng.random(members.size)
        check_deadline()
        normal[members] = scipy.special.ndtri(strata / members.size)
    check_deadline()
    return xi, on_sphere(mean + math.sqrt(variance) * matched(normal, xi, mean))


def _within(time: float, end: float, field: MeanField) -> bool:
    """Whether a time is seen in a step to ``end``: at a jump of the feature the step before it."""
    return time < end or (time == end and end in field.motion.jumps)


def _not_finite(t: float) -> str:
    return f"the particles were not finite at t = {t:.6g}"


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
    bits of a path depend on the field, the count, the stream and ``step`` alone: steps end where
    the field says and at jumps of the step size, and output times in between are reached by a step
    of their own from the last one before them.

    Entries of xi take the shares of the prior, as in a feature of dimension ``count``;
    ``stream(part)`` is the generator of ``"start"`` and of ``"noise"``; the error of ``step``, a
    time step in units of the fastest time scale, is O(step^2) where phi is smooth; ``observe(xi, z,
    index)`` is called at each time. Returned are Q and R by name, each of the shape of the times,
    and why the particles stopped, or nothing; values from then on are NaN.

    Where the feature moves, particles change places; a jump comes just after the values at its
    time.

    At phi = 0 and a feature that stays the equation of Q is closed, and Q has neither noise nor
    bias at any count. Else, while it stays, both are small: ten times or more below the standard
    deviation, and some thirty times below the O(1/count) bias, of particles with independent
    numbers.
    """
    if isinstance(count, bool) or int(count) != count or count < MIN_COUNT:
        raise HdicaError(f"count = {count!r} is not allowed (a whole number >= {MIN_COUNT})")
    if not 0 < step <= 1:
        raise HdicaError(f"step = {step!r} is not allowed (0 < step <= 1)")
    xi, z = _begin(field, count, stream("start"))
    values = {name: np.full(times.size, np.nan) for name in (OVERLAP, PENALTY)}
    index = 0
    for made, one in enumerate(steps(field, xi, z, stream("noise"), step)):
        check_deadline()
        if made >= MAX_STEPS:
            return values, f"the particles needed {MAX_STEPS} steps to reach t = {one.t:.6g}"
        if not one.start.finite:
            return values, _not_finite(one.t)
        while index < times.size and _within(times[index], one.end, field):
            seen = one.at(float(times[index]))
            if not seen.finite:
                return values, _not_finite(float(times[index]))
            values[OVERLAP][index], values[PENALTY][index] = seen.q, seen.r
            if observe is not None:
                shown = seen.z.view()
                shown.flags.writeable = False
                observe(xi, shown, index)
            index += 1
        if index == times.size:
            break
    return values, ""
