"""Bias of order 1/n of the overlaps about the limit (17): the mean of runs is R + m/n.

With Q = W'W = I + Delta/n, the polar part A = Q^(-1/2) R of the weights does not feel alpha at all:
it moves as that of a rule which makes W'W = I after every step. With psi = mu Sigma phi(v), v = U'x
for orthonormal weights U, and G = v psi' + psi v' + psi psi', a step of A is J/n + J2/n^2,

    J = psi s' - G A/2,    J2 = - G psi s'/2 + 3 G^2 A/8 - psi psi' (|s|^2 + |g|^2 - M - K) A/2,

g being the normal parts of v. Delta is forgotten in some steps, Delta' = (1 - 2 alpha) Delta + G,
so that its mean <G>/(2 alpha) counts: in the argument of phi and in what a step adds, by a change
of psi by 1/n times

    psi' = mu Sigma phi'(v) o (<Delta> v)/2 - (1/2 - alpha) <Delta> psi,

and in R = (I + Delta/(2n)) A. With the Jacobian and second derivatives of (17) and S = n Cov R,

    dm/dt = D'm + D''[S]/2 + <J2> + <J at psi'> - (dD/dt)/2,    n (E R - R) = m + <Delta> A/2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.solvers import integrate
from hdica.systems.hebbian_ica.limit.equation_17 import (
    Array,
    Field,
    as_matrix,
    jacobian,
    product_of,
)
from hdica.systems.hebbian_ica.limit.fluctuations import (
    check_noise,
    noise,
    one_step_rules,
    root,
    rows_times,
)
from hdica.systems.hebbian_ica.limit.nodes import product

_BESIDE = 3e-3
"""Distance over which the field is differentiated twice; its square is the error."""
_STEPS = 1e-7


class _Samples:
    """Nodes of one sample: sources, normal parts of v, and weights."""

    def __init__(self, field: Field, tolerance: float) -> None:
        check_noise(field.phi, field.sources)
        sources, normal = one_step_rules(field, tolerance)
        k = field.shape[0]
        points, self.weights = product([*sources, *[normal] * k], most=400_000)
        self.s, self.g = points[:, : len(sources)], points[:, len(sources) :]
        self.field, self.slope = field, field.phi.derivative

    def mean(self, values: Array) -> Array:
        """The mean of arrays over samples."""
        shaped = self.weights.reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(np.sum(shaped * values, axis=0))

    def at(self, r: Array, mu: float, alpha: float) -> tuple[Array, Array]:
        """What a step adds at order 1/n^2, <J2> + <J at psi'>, and <Delta>."""
        field, s = self.field, self.s
        v = rows_times(s, r.T) + rows_times(self.g, root(r))
        psi = mu * field.sigma * field.phi.value(v)
        gain = _grown(v, psi) + _outer(psi, psi)
        delta = self.mean(gain) / (2 * alpha)
        longer = np.sum(s**2, axis=1) + np.sum(self.g**2, axis=1) - s.shape[1] - v.shape[1]
        twice = 3 / 8 * _inner(gain, gain) - longer[:, None, None] / 2 * _outer(psi, psi)
        second = product_of(self.mean(twice), r) - self.mean(_outer(_by(gain, psi), s)) / 2
        tilt = mu * field.sigma * self.slope.value(v) * rows_times(v, delta) / 2
        change = tilt - _shift(psi, delta, alpha)
        longer_by = _grown(v, change) + _outer(change, psi) + _outer(psi, change)
        shifted = self.mean(_outer(change, s)) - product_of(self.mean(longer_by), r) / 2
        return second + shifted, delta


def _shift(psi: Array, delta: Array, alpha: float) -> Array:
    """What the weights' own length takes from a change of their directions."""
    return (0.5 - alpha) * rows_times(psi, delta)


def _outer(one: Array, other: Array) -> Array:
    return np.asarray(one[:, :, None] * other[:, None, :])


def _grown(one: Array, other: Array) -> Array:
    both = _outer(one, other)
    return np.asarray(both + both.transpose(0, 2, 1))


def _inner(one: Array, other: Array) -> Array:
    return np.asarray(np.sum(one[:, :, :, None] * other[:, None], axis=2))


def _by(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.sum(matrices * vectors[:, None, :], axis=2))


def _bent(field: Field, r: Array, mu: float, spread: Array) -> Array:
    """D''[S]: second derivatives along the axes of S."""
    values, axes = np.linalg.eigh((spread + spread.T) / 2)
    here, total = field.at(r, mu), np.zeros(r.shape)
    for size, axis in zip(values, axes.T, strict=True):
        step = _BESIDE * axis.reshape(r.shape)
        ends = field.at(r + step, mu) + field.at(r - step, mu)
        total += max(float(size), 0.0) * np.asarray(ends - 2 * here) / _BESIDE**2
    return total


def solve_bias(
    field: Field,
    schedule: Schedule,
    alpha: float,
    r0: Array,
    times: Array,
    covariance0: Array | None = None,
) -> Array:
    """N (E R - limit) as n -> infinity at increasing times, shape (T, K, M).

    From R of shape (K, M) with W'W = I and, as :func:`.fluctuations.solve_fluctuations` takes it, n
    Cov R. At t = 0 it is that right after the first steps, when Q has relaxed.

    Raises
    ------
    HdicaError
        If the step size jumps, alpha is not below 1, or the noise is infinite.
    """
    if schedule.breaks or not 0 < alpha < 1:
        what = "a step size that jumps" if schedule.breaks else f"alpha = {alpha:g}"
        raise HdicaError(
            f"bias = True is not allowed with {what} (the term of order 1/n is known for a step "
            "size without jumps and alpha in (0, 1))"
        )
    size, samples, drive = r0.size, _Samples(field, 1e-4), noise(field)
    first = np.zeros((size, size)) if covariance0 is None else as_matrix(covariance0)
    # M + D/2 in place of m: no derivative of the step size is left.
    tau0 = float(schedule.value(np.array(0.0)))
    half = np.asarray(field.at(r0, tau0)).reshape(1, size) / 2
    state = np.concatenate([r0.reshape(1, size), half, first])
    rate = _rate(field, r0.shape, samples, drive, alpha)
    states = integrate(rate, schedule, state, times, _STEPS).states
    found = []
    for now, mu in zip(states, np.broadcast_to(schedule.value(times), times.shape), strict=True):
        r = now[0].reshape(r0.shape)
        _, delta = samples.at(r, float(mu), alpha)
        m = now[1].reshape(r0.shape) - np.asarray(field.at(r, float(mu))) / 2
        found.append(m + product_of(delta, r) / 2)
    return np.array(found)


def _rate(
    field: Field,
    shape: tuple[int, ...],
    samples: _Samples,
    drive: Callable[[Array, float], Array],
    alpha: float,
) -> Callable[[Array, float], Array]:
    """Rate of a state of R, m + D/2 and S."""

    def rate(now: Array, mu: float) -> Array:
        r, m, s = now[0].reshape(shape), now[1], now[2:]
        flow = np.asarray(field.at(r, mu)).reshape(-1)
        slopes = as_matrix(jacobian(field, r, mu, rough=True))
        added, _ = samples.at(r, mu, alpha)
        bent = _bent(field, r, mu, s)
        shifted = np.sum(slopes * (m - flow / 2), axis=1) + (bent / 2 + added).reshape(-1)
        moved = rows_times(s, slopes.T)
        return np.concatenate([flow[None], shifted[None], moved + moved.T + drive(r, mu)])

    return rate
