"""Fixed points of (17) at a constant mu: all of them for K = M = 1, else the optimal ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averages
from hdica.limits.numerics.packed import scaled
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fixed_points import find_folds
from hdica.limits.overlap.projected_drift import projected_drift
from hdica.systems.hebbian_ica.limit.asymptotics import source_rate
from hdica.systems.hebbian_ica.limit.equation_17 import (
    Field,
    as_matrix,
    eigenvalues,
    part_jacobians,
)

Array = NDArray[np.float64]
_ITERATIONS = 12
_NEAR, _CONVERGED = 0.05, 1e-12
_FIRST, _SMALLEST = 0.02, 1e-9


@dataclass(frozen=True)
class FixedPoint:
    """A fixed point of (17) near the optimal one.

    Parameters
    ----------
    r
        R, shape (K, M).
    small_mu
        The same to first order in mu where a source is found, +-(1 - mu <phi^2>/(4 xi_i)), shape
        (K, M); other entries, of order mu unless phi is odd or the sources symmetric, are left 0.
    residual
        Largest entry of dR/dt that is left, over mu.
    eigenvalues
        Of the Jacobian, by increasing real part, shape (KM,).
    """

    r: Array
    small_mu: Array
    residual: float
    eigenvalues: NDArray[np.complex128]

    @property
    def stable(self) -> bool:
        """Whether every small departure dies out."""
        return bool(self.eigenvalues.real.max() < 0)


def scalar_drift(sigma: float, phi: Formula, source: Source) -> Drift:
    """(17) of one projection and one source, as the tools for one overlap take it.

    dR/dt = mu sigma (1 - R^2) (<phi s> - R <phi'>) - mu^2 R <phi^2> / 2, of which
    :func:`hdica.limits.overlap.fixed_points.find_fixed_points` finds all fixed points.

    Parameters
    ----------
    sigma
        1 or -1.
    phi, source
        Nonlinearity and law.
    """
    flow = projected_drift(averages(phi, source), lambda: None)
    return replace(flow, learning=scaled(flow.learning, -sigma))


def critical_mu(sigma: float, phi: Formula, source: Source) -> float:
    """Largest constant mu at which K = M = 1 has a fixed point other than R = 0: a fold."""
    folds = find_folds(scalar_drift(sigma, phi, source))
    if folds.tau.size == 0:
        raise HdicaError(
            f"sigma = {sigma:g} has no critical mu with the nonlinearity {phi.text!r} and the "
            f"source {source.label} (R = 0 is its only fixed point at every mu)"
        )
    return float(folds.tau[0])


def optimal_point(field: Field, mu: float, found: Array | None = None) -> FixedPoint:
    """The fixed point that grows out of an optimal one as mu grows from 0, by Newton's method.

    Parameters
    ----------
    field
        Right-hand side of (17).
    mu
        Constant learning rate > 0.
    found
        R at mu = 0, shape (K, M): an entry 1 or -1 in min(K, M) rows and columns, else 0; the
        identity if None.
    """
    target = np.eye(*field.shape) if found is None else np.asarray(found, dtype=float)
    _check_target(target, field.shape)
    if not mu > 0:
        raise HdicaError(f"mu = {mu} is not allowed (a number > 0)")
    slope = _first_order(field, target)
    now, step = 0.0, min(mu, _FIRST / max(1.0, float(np.abs(slope).max())))
    r, guess = target, target + step * slope
    while now < mu:
        corrected = _newton(field, now + step, guess)
        if corrected is not None:
            now, r = now + step, corrected
            step *= 1.5
        elif (step := step / 2) < _SMALLEST * mu:
            raise HdicaError(
                f"mu = {mu} is not allowed (the fixed point near the optimal one ends at a fold "
                f"at mu = {now:.6g})"
            )
        step = min(step, mu - now)
        guess = _predicted(field, now, r, step) if now else target + step * slope
    residual = float(np.abs(field.at(r, mu)).max()) / mu
    return FixedPoint(r, target + mu * slope, residual, eigenvalues(field, r, mu))


def _check_target(target: Array, shape: tuple[int, int]) -> None:
    ones = np.abs(target) == 1.0
    entries = np.all(ones | (target == 0.0)) if target.shape == shape else False
    once = entries and max(ones.sum(axis=0).max(), ones.sum(axis=1).max()) == 1
    if not (once and ones.sum() == min(shape)):
        raise HdicaError(
            f"found = {target.tolist()} is not allowed (of shape {shape}, with 1 or -1 once in "
            f"{min(shape)} rows and columns, else 0)"
        )


def _first_order(field: Field, target: Array) -> Array:
    """dR/dmu at mu = 0 of the entries that find a source: -R*_ij <phi^2> / (4 xi_i)."""
    slope = np.zeros(target.shape)
    for i, j in np.argwhere(target):
        sign = int(target[i, j])
        gain, power, _ = source_rate(field.phi, field.sources[j], sign)
        xi = float(field.sigma[i]) * gain
        if not xi > 0:
            raise HdicaError(
                f"sigma = {field.sigma[i]:g} of projection {i} is not allowed (source {j}, "
                f"{field.sources[j].label}, is no stable state with it: xi = {xi:.6g})"
            )
        slope[i, j] = -sign * power / (4 * xi)
    return slope


def _predicted(field: Field, mu: float, r: Array, step: float) -> Array:
    """Euler's step along the branch L + mu D = 0."""
    learning, loss = (as_matrix(part) for part in part_jacobians(field, r))
    change = np.linalg.solve(learning + mu * loss, field.parts(r)[1].ravel())
    return np.asarray(r - step * change.reshape(r.shape))


def _newton(field: Field, mu: float, guess: Array) -> Array | None:
    """The zero of L + mu D next to the guess, None if it is not close by."""
    r = guess
    for _ in range(_ITERATIONS):
        learning, loss = (as_matrix(part) for part in part_jacobians(field, r))
        value = field.at(r, mu) / mu
        try:
            change = np.linalg.solve(learning + mu * loss, value.ravel()).reshape(r.shape)
        except np.linalg.LinAlgError:
            return None
        r = r - change
        if not float(np.abs(r - guess).max()) < _NEAR:
            return None
        if float(np.abs(change).max()) < _CONVERGED:
            return np.asarray(r)
    return None
