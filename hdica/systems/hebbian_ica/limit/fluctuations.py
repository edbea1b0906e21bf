"""Fluctuations of order n^-1/2 of the overlaps about the limit (17): a linear noise.

A step changes R by xi/n, once the fast relaxation of Q = W'W has passed it on:

    xi = mu Sigma phi s' - [mu (Sigma phi y' + y phi' Sigma) + mu^2 Sigma phi phi' Sigma] R / 2,

whose mean is (17). So S = n Cov R follows dS/dt = J S + S J' + Cov xi with the Jacobian J of (17).
For one projection and one source it is the noise of online ICA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.quadrature import Nodes, gauss, gaussian_nodes
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.numerics.solvers import integrate
from hdica.systems.hebbian_ica.limit.equation_17 import Array, Field, as_matrix, jacobian
from hdica.systems.hebbian_ica.limit.nodes import normal_rule, product, source_rule

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


def one_step_rules(field: Field, tolerance: float) -> tuple[list[Nodes], Nodes]:
    """Nodes of the sources and of a normal variable: exact for polynomials."""
    if field.phi.coefficients is None:
        sources = [source_rule(field.phi, source, tolerance) for source in field.sources]
        return sources, normal_rule(field.phi, tolerance)
    # xi is of degree 2d at most, so that a Gauss rule of 2d + 1 points averages its square.
    degree = max(1, field.phi.coefficients.size - 1)
    order = 2 * degree + 1
    return [gauss(s.nodes, order) for s in field.sources], gaussian_nodes(order)


def noise(field: Field, tolerance: float = 1e-4) -> Callable[[Array, float], Array]:
    """Cov(xi) as a function of R and mu, shape (KM, KM); quadratures of polynomials are exact."""
    check_noise(field.phi, field.sources)
    sources, normal = one_step_rules(field, tolerance)
    projections = field.shape[0]
    points, weights = product([*sources, *[normal] * projections], most=400_000)
    s, g = points[:, : len(sources)], points[:, len(sources) :]

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
    rest = np.eye(r.shape[0]) - np.sum(r[:, None] * r, axis=2)
    values, vectors = np.linalg.eigh(rest)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(np.sum(scaled[:, None] * vectors, axis=2))


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
    fine, coarse = (
        integrate(_rate(field, shape, rule), schedule, state, times, step) for step, rule in steps
    )
    states, error = fine.states[:, 1:], np.abs(fine.states - coarse.states)[:, 1:]
    close = _EXACT[0][0] if fine.tolerance == steps[0][0] else fine.tolerance
    every = (times.size, *shape, *shape)
    return Fluctuations(states.reshape(every), error.reshape(every) + close)


def _rate(
    field: Field, shape: tuple[int, int], tolerance: float
) -> Callable[[Array, float], Array]:
    """Rate of a state whose first row is R and whose others are S."""
    drive = noise(field, tolerance)

    def rate(now: Array, mu: float) -> Array:
        r, s = now[0].reshape(shape), now[1:]
        moved = rows_times(s, as_matrix(jacobian(field, r, mu, rough=True)).T)
        flow = field.at(r, mu).reshape(1, -1)
        return np.concatenate([flow, moved + moved.T + drive(r, mu)])

    return rate
