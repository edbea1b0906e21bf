"""McKean-Vlasov particles: the mean-field limit by simulation, without any grid in x.

The density of :class:`hdica.limits.mean_field.family.MeanField` is the law of

    dZ = [b xi - B phi(Z) - 2 h Z] dt + sqrt(2 g) dW,

the stochastic differential equation below (15) in Wang and Lu 2017. With Q and R taken from the
particles themselves it solves the limit: :func:`run`. With Q and R given it is the decoupled
process (15): :func:`run_decoupled`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import dot
from hdica.limits.mean_field.family import OVERLAP, PENALTY, MeanField
from hdica.limits.mean_field.particles.step import Cloud, cloud, matched, on_sphere, steps, velocity

Array = NDArray[np.float64]
Stream = Callable[[str], np.random.Generator]
Observe = Callable[[Array, Array, int], None]
OrderParameters = Callable[[float], tuple[float, float]]

STEP = 0.025
"""Time step in units of the fastest time scale: errors in Q of some 1e-4, as tested."""
MIN_COUNT = 10
MAX_STEPS = 1_000_000


def _begin(field: MeanField, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Feature and particles at t = 0, normal given xi by quantiles, Q and E[Z^2] matched."""
    xi = field.prior.feature(rng, count)
    mean, variance = field.start.conditional(xi)
    groups, normal = field.prior.classify(xi), np.empty(count)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        strata = rng.permutation(members.size) + rng.random(members.size)
        normal[members] = ndtri(strata / members.size)
    return xi, on_sphere(mean + math.sqrt(variance) * matched(normal, xi, mean))


def _check(count: int, step: float) -> None:
    if isinstance(count, bool) or int(count) != count or count < MIN_COUNT:
        raise HdicaError(f"count = {count!r} is not allowed (a whole number >= {MIN_COUNT})")
    if not 0 < step <= 1:
        raise HdicaError(f"step = {step!r} is not allowed (0 < step <= 1)")


def _not_finite(t: float) -> str:
    return f"the particles were not finite at t = {t:.6g}"


def _show(observe: Observe | None, xi: Array, z: Array, index: int) -> None:
    if observe is not None:
        seen = z.view()
        seen.flags.writeable = False
        observe(xi, seen, index)


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

    A step is Heun's method with normal numbers made orthogonal to xi and z, then
    E[Z^2] = 1 again by rescaling; the multiplier 2 h alone would not hold it, as departures grow
    where h < 0. The bits of a path depend on the field, the count, the stream and ``step`` alone:
    steps end where the field says and at jumps of the step size, and output times in between are
    reached by a step of their own from the last one before them.

    Parameters
    ----------
    field
        The limit.
    times
        Shape (T,), increasing, in samples per dimension.
    count
        Particles; entries of xi take the shares of the prior, as in a feature of that dimension.
    stream
        ``stream(part)``: the generator of ``"start"`` and of ``"noise"``.
    step
        Time step in units of the fastest time scale; the error is O(step^2) where phi is smooth.
    observe
        ``observe(xi, z, index)`` is called at each time with arrays of shape (count,).

    Returns
    -------
    values
        ``Q`` = mean of xi z and ``R`` = mean of z phi(z), each of shape (T,).
    diverged
        Empty, or why the particles stopped; values from then on are NaN.

    Notes
    -----
    At phi = 0 the equation of Q is closed, and Q has neither noise nor bias at any count. Else
    both are small: ten times or more below the standard deviation, and some thirty times below
    the O(1/count) bias, of particles with independent numbers.
    """
    _check(count, step)
    xi, z = _begin(field, count, stream("start"))
    values = {name: np.full(times.size, np.nan) for name in (OVERLAP, PENALTY)}
    index = 0
    for made, one in enumerate(steps(field, xi, z, stream("noise"), step)):
        if made >= MAX_STEPS:
            return values, f"the particles needed {MAX_STEPS} steps to reach t = {one.t:.6g}"
        if not one.start.finite:
            return values, _not_finite(one.t)
        while index < times.size and times[index] < one.end:
            seen = one.at(float(times[index]))
            if not seen.finite:
                return values, _not_finite(float(times[index]))
            values[OVERLAP][index], values[PENALTY][index] = seen.q, seen.r
            _show(observe, xi, seen.z, index)
            index += 1
        if index == times.size:
            break
    return values, ""


@np.errstate(over="ignore", invalid="ignore")
def run_decoupled(
    field: MeanField,
    order_parameters: OrderParameters,
    times: Array,
    count: int,
    stream: Stream,
    n: int,
    *,
    observe: Observe | None = None,
) -> tuple[dict[str, Array], str]:
    """The decoupled process (15) of Wang and Lu 2017: Q and R are given, nothing interacts.

    z <- z + Gamma(z, xi, Q, R)/n + sqrt(Lambda(Q)/n) w, with Lambda = 2 g and Q, R at t = k/n.

    Parameters
    ----------
    field, times, count, stream, observe
        As in :func:`run`; here the particles are independent given xi.
    order_parameters
        ``order_parameters(t)``: Q and R of the limit.
    n
        Steps per unit of time; time t is step floor(t n).

    Returns
    -------
    values
        ``Q``, ``R`` and ``norm``, the means of xi z, z phi(z) and z^2, each of shape (T,). They
        reproduce those given, and 1, up to O(1/n) and count^-1/2 where h > 0.
    diverged
        As in :func:`run`.
    """
    _check(count, STEP)
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise HdicaError(f"n = {n!r} is not allowed (a whole number >= 1)")
    rng = stream("start")
    xi = field.prior.feature(rng, count)
    mean, variance = field.start.conditional(xi)
    now = cloud(field, xi, mean + math.sqrt(variance) * rng.standard_normal(count))
    rng, made = stream("noise"), 0
    values = {name: np.full(times.size, np.nan) for name in (OVERLAP, PENALTY, "norm")}
    # Decimal times such as 0.3 must not lose a step to rounding.
    for index, target in enumerate(np.floor(times * n * (1 + 1e-12) + 1e-9).astype(int)):
        while made < target:
            now = _euler(field, xi, now, order_parameters(made / n), made / n, 1 / n, rng)
            made += 1
        if not now.finite:
            return values, _not_finite(made / n)
        found = {OVERLAP: now.q, PENALTY: now.r, "norm": dot(now.z, now.z) / count}
        for name, value in found.items():
            values[name][index] = value
        _show(observe, xi, now.z, index)
    return values, ""


def _euler(
    field: MeanField,
    xi: Array,
    now: Cloud,
    order: tuple[float, float],
    t: float,
    dt: float,
    rng: np.random.Generator,
) -> Cloud:
    tau = field.schedule.constant or float(field.schedule.value(np.array(t)))
    move = dt * velocity(field, xi, now, order, tau)
    spread = math.sqrt(2 * field.diffusion(order[0], tau) * dt)
    return cloud(field, xi, now.z + move + spread * rng.standard_normal(xi.size))
