"""Fluctuations of order n^-1/2 of the overlaps about the limit (17), and their bias of order 1/n.

A step changes R by xi/n, once the fast relaxation of Q = W'W has passed it on:

    xi = mu Sigma phi s' - [mu (Sigma phi y' + y phi' Sigma) + mu^2 Sigma phi phi' Sigma] R / 2,

whose mean is (17). So S = n Cov R follows dS/dt = J S + S J' + Cov xi with the Jacobian J of (17).
For one projection and one source it is the noise of online ICA.

The mean of runs is R + m/n. With Q = W'W = I + Delta/n, the polar part A = Q^(-1/2) R of the
weights does not feel alpha at all: it moves as that of a rule which makes W'W = I after every step.
With psi = mu Sigma phi(v), v = U'x for orthonormal weights U, and G = v psi' + psi v' + psi psi', a
step of A is J/n + J2/n^2,

    J = psi s' - G A/2,    J2 = - G psi s'/2 + 3 G^2 A/8 - psi psi' (|s|^2 + |g|^2 - M - K) A/2,

g being the normal parts of v. Delta is forgotten in some steps, Delta' = (1 - 2 alpha) Delta + G,
so that its mean <G>/(2 alpha) counts: in the argument of phi and in what a step adds, by a change
of psi by 1/n times

    psi' = mu Sigma phi'(v) o (<Delta> v)/2 - (1/2 - alpha) <Delta> psi,

and in R = (I + Delta/(2n)) A. With the Jacobian and second derivatives of (17) and S = n Cov R,

    dm/dt = D'm + D''[S]/2 + <J2> + <J at psi'> - (dD/dt)/2,    n (E R - R) = m + <Delta> A/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.quadrature import gram
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.numerics.solvers import integrate
from hdica.systems.hebbian_ica.averages import product, sample_rules
from hdica.systems.hebbian_ica.ode import Array, Field, as_matrix, jacobian, product_of

# Tolerances of the steps for polynomials, and of steps and quadrature for other functions.
_EXACT = ((1e-9, 0.0), (1e-7, 0.0))
_GENERAL = ((1e-7, 1e-4), (1e-5, 1e-3))


@dataclass(frozen=True)
class Fluctuations:
    """S = n Cov(R) at the asked times, shapes (T, K, M, K, M).

    The error is the difference to a run whose tolerances, of steps and quadratures, are larger.
    """

    covariance: Array  # n Cov(R_ij, R_kl) at [t, i, j, k, l]
    error: Array

    @property
    def spread(self) -> Array:
        """Limit of sqrt(n) times the standard deviation of every entry, shape (T, K, M)."""
        variance = np.einsum("tijij->tij", self.covariance)
        return np.sqrt(np.maximum(variance, 0.0))


def _nodes(field: Field, tolerance: float) -> tuple[Array, Array, Array]:
    """Sources (points, M) and normals (points, K) of a sample, weighted; exact for polynomials."""
    check_noise(field.phi, field.sources)
    (k, m), c = field.shape, field.phi.coefficients
    # xi is of degree 2d at most, so that a Gauss rule of 2d + 1 points averages its square.
    order = 0 if c is None else 2 * max(1, c.size - 1) + 1
    sources, normal = sample_rules(field.phi, field.sources, order, tolerance)
    points, weights = product([*sources, *[normal] * k], most=400_000)
    return points[:, :m], points[:, m:], weights


def noise(field: Field, tolerance: float = 1e-4) -> Callable[[Array, float], Array]:
    """Cov(xi) as a function of R and mu, shape (KM, KM); quadratures of polynomials are exact."""
    s, g, weights = _nodes(field, tolerance)

    def covariance(r: Array, mu: float) -> Array:
        y = rows_times(s, r.T) + rows_times(g, root(r))
        push = mu * field.sigma * field.phi.value(y)
        back = rows_times(push, r)
        pull = s - rows_times(y, r) / 2 - back / 2
        xi = push[:, :, None] * pull[:, None] - y[:, :, None] * back[:, None] / 2
        flat = xi.reshape(weights.size, -1)
        flat = flat - np.sum(weights[:, None] * flat, axis=0)
        weighted = weights[:, None] * flat
        return np.array([np.sum(weighted * one[:, None], axis=0) for one in flat.T])

    return covariance


def check_noise(phi: Formula, sources: Sequence[Source]) -> None:
    """Refuse a nonlinearity whose fluctuations are infinite or not resolved."""
    if phi.kinks:
        raise HdicaError(
            f"fluctuations of the nonlinearity {phi.text!r} are not available (allowed are "
            "nonlinearities without kinks)"
        )
    if phi.coefficients is None:
        return
    order = 4 * (phi.coefficients.size - 1)
    for source in sources:
        if not math.isfinite(source.moment(order)):
            raise HdicaError(
                f"the fluctuations are infinite: the source {source.label} has no finite moment of "
                f"order {order}, which the nonlinearity {phi.text!r} needs"
            )


def rows_times(rows: Array, matrix: Array) -> Array:
    """Rows times a matrix, with bits that are the same everywhere."""
    # Not rows @ matrix: sums of BLAS may follow the threads of the machine.
    return np.stack([np.sum(rows * column, axis=1) for column in matrix.T], axis=1)


def root(r: Array) -> Array:
    """A symmetric root of I - R R', which may be singular."""
    values, vectors = np.linalg.eigh(np.eye(r.shape[0]) - gram(r))
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.sum(scaled[:, None] * vectors, axis=2)


def solve_fluctuations(
    field: Field, schedule: Schedule, r0: Array, times: Array, covariance0: Array | None = None
) -> Fluctuations:
    """Integrate S = n Cov(R) together with (17) from R, shape (K, M), and S, shape (K, M, K, M).

    S is zero (None) for a fixed start, the identity for a random one, whose entries are normal with
    variance 1/n.
    """
    shape, size = r0.shape, r0.size
    first = np.zeros((size, size)) if covariance0 is None else as_matrix(covariance0)
    state = np.concatenate([r0.reshape(1, size), first])
    steps = _EXACT if field.exact else _GENERAL

    def rate_of(drive: Callable[[Array, float], Array]) -> Callable[[Array, float], Array]:
        """Rate of a state whose first row is R and whose others are S."""

        def rate(now: Array, mu: float) -> Array:
            r, s = now[0].reshape(shape), now[1:]
            moved = rows_times(s, as_matrix(jacobian(field, r, mu, rough=True)).T)
            flow = field.at(r, mu).reshape(1, -1)
            return np.concatenate([flow, moved + moved.T + drive(r, mu)])

        return rate

    fine, coarse = (
        integrate(rate_of(noise(field, rule)), schedule, state, times, step) for step, rule in steps
    )
    states, error = fine.states[:, 1:], np.abs(fine.states - coarse.states)[:, 1:]
    close = _EXACT[0][0] if fine.tolerance == steps[0][0] else fine.tolerance
    every = (times.size, *shape, *shape)
    return Fluctuations(states.reshape(every), error.reshape(every) + close)


_BESIDE = 3e-3
"""Distance over which the field is differentiated twice; its square is the error."""
_STEPS = 1e-7


class _Samples:
    """Nodes of one sample: sources, normal parts of v, and weights."""

    def __init__(self, field: Field, tolerance: float) -> None:
        self.s, self.g, self.weights = _nodes(field, tolerance)
        self.field, self.slope = field, field.phi.derivative

    def mean(self, values: Array) -> Array:
        """The mean of arrays over samples."""
        shaped = self.weights.reshape(-1, *[1] * (values.ndim - 1))
        return np.sum(shaped * values, axis=0)

    def at(self, r: Array, mu: float, alpha: float) -> tuple[Array, Array]:
        """What a step adds at order 1/n^2, <J2> + <J at psi'>, and <Delta>."""
        field, s = self.field, self.s
        v = rows_times(s, r.T) + rows_times(self.g, root(r))
        psi = mu * field.sigma * field.phi.value(v)
        gain = _grown(v, psi) + _outer(psi, psi)
        delta = self.mean(gain) / (2 * alpha)
        longer = np.sum(s**2, axis=1) + np.sum(self.g**2, axis=1) - s.shape[1] - v.shape[1]
        square = np.sum(gain[:, :, :, None] * gain[:, None], axis=2)
        twice = 3 / 8 * square - longer[:, None, None] / 2 * _outer(psi, psi)
        pushed = np.sum(gain * psi[:, None, :], axis=2)
        second = product_of(self.mean(twice), r) - self.mean(_outer(pushed, s)) / 2
        tilt = mu * field.sigma * self.slope.value(v) * rows_times(v, delta) / 2
        change = tilt - _shift(psi, delta, alpha)
        longer_by = _grown(v, change) + _outer(change, psi) + _outer(psi, change)
        shifted = self.mean(_outer(change, s)) - product_of(self.mean(longer_by), r) / 2
        return second + shifted, delta


def _shift(psi: Array, delta: Array, alpha: float) -> Array:
    """What the weights' own length takes from a change of their directions."""
    return (0.5 - alpha) * rows_times(psi, delta)


def _outer(one: Array, other: Array) -> Array:
    return one[:, :, None] * other[:, None, :]


def _grown(one: Array, other: Array) -> Array:
    both = _outer(one, other)
    return both + both.transpose(0, 2, 1)


def _bent(field: Field, r: Array, mu: float, spread: Array) -> Array:
    """D''[S]: second derivatives along the axes of S."""
    values, axes = np.linalg.eigh((spread + spread.T) / 2)
    centre, total = field.at(r, mu), np.zeros(r.shape)
    for size, axis in zip(values, axes.T, strict=True):
        step = _BESIDE * axis.reshape(r.shape)
        ends = field.at(r + step, mu) + field.at(r - step, mu)
        total += max(size, 0.0) * (ends - 2 * centre) / _BESIDE**2
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

    From R of shape (K, M) with W'W = I and the n Cov R of :func:`solve_fluctuations`. At t = 0 it
    is that right after the first steps, when Q has relaxed. Refused if the step size jumps, alpha
    is not below 1, or the noise is infinite.
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
    half = field.at(r0, tau0).reshape(1, size) / 2
    state = np.concatenate([r0.reshape(1, size), half, first])

    def rate(now: Array, mu: float) -> Array:
        """Rate of a state of R, m + D/2 and S."""
        r, m, s = now[0].reshape(r0.shape), now[1], now[2:]
        flow = field.at(r, mu).reshape(-1)
        slopes = as_matrix(jacobian(field, r, mu, rough=True))
        added, _ = samples.at(r, mu, alpha)
        bent = _bent(field, r, mu, s)
        shifted = np.sum(slopes * (m - flow / 2), axis=1) + (bent / 2 + added).reshape(-1)
        moved = rows_times(s, slopes.T)
        return np.concatenate([flow[None], shifted[None], moved + moved.T + drive(r, mu)])

    states = integrate(rate, schedule, state, times, _STEPS).states
    biases = []
    for now, mu in zip(states, np.broadcast_to(schedule.value(times), times.shape), strict=True):
        r = now[0].reshape(r0.shape)
        _, delta = samples.at(r, mu, alpha)
        m = now[1].reshape(r0.shape) - field.at(r, mu) / 2
        biases.append(m + product_of(delta, r) / 2)
    return np.array(biases)
