"""Fixed points of (17) by ways of their own: those of K = M = 1, and the optimal ones."""

from dataclasses import replace

import numpy as np

from hdica.limits.averages.expectations import averages, gain_at, power_at
from hdica.limits.numerics.series import scaled
from hdica.limits.overlap.nonlinear import projected_drift
from hdica.systems.hebbian_ica.ode import as_matrix, part_jacobians


def scalar_drift(sigma, phi, source):
    """dR/dt = mu sigma (1 - R^2) (<phi s> - R <phi'>) - mu^2 R <phi^2> / 2, (17) of K = M = 1."""
    flow = projected_drift(averages(phi, source), lambda: None)
    return replace(flow, learning=scaled(flow.learning, -sigma))


def optimal_point(field, mu, target):
    """R that grows out of an optimal one as mu grows from 0, and the same to first order in mu.

    The target has an entry 1 or -1 in min(K, M) rows and columns, else 0. To first order an entry
    that finds a source is +-(1 - mu <phi^2>/(4 xi_i)); others, of order mu unless phi is odd or the
    sources symmetric, are left 0. Newton's method does the rest.
    """
    slope = np.zeros(field.shape)
    for i, j in np.argwhere(target):
        sign = target[i, j]
        gain, power = (one(field.phi, field.sources[j], sign)[0] for one in (gain_at, power_at))
        slope[i, j] = -power / (4 * field.sigma[i] * gain)
    r = first = target + mu * slope
    for _ in range(12):
        learning, loss = (as_matrix(part) for part in part_jacobians(field, r))
        change = np.linalg.solve(learning + mu * loss, field.at(r, mu).ravel() / mu)
        r = r - change.reshape(r.shape)
    return r, first
