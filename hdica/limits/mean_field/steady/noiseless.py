"""Steady states without noise: x = xi or x = -xi, where the diffusion vanishes.

A nonlinearity that is zero on all values of a source, such as x^3 - x on a source of +-1, moves
nothing where the estimate is the feature itself. There is no Boltzmann density then: every entry
stands at the bottom of its potential, and all of them do at Q = +-1 if phi(x) is proportional to x
on the values of the feature. With V the variance of x at a given xi, to first order,

    dV/dt = -2 lambda V + 2 g,    lambda = b Q - B phi(x)/x + B phi'(x),    1 - |Q| = E[V]/2,

and g = G (1 - |Q|) with G = |dg/dQ|, so that such a state is stable if all lambda > 0 and
G E[1/lambda] < 2. A shift of the means of x at each xi decays as exp(-lambda t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.steady.closure import rates_of_change, step_size

Array = NDArray[np.float64]
_VANISHES = 1e-13
"""Share of the largest diffusion below which it is zero with rounding."""
_SAME = 1e-12
"""Relative difference of phi(x)/x between values of the feature that is rounding."""
_SIDE = 1e-7


@dataclass(frozen=True)
class Noiseless:
    """A steady state at Q = 1 or -1 at which nothing moves.

    R = E[x phi(x)] and the multiplier h are NaN where phi jumps at a value of the feature;
    ``growth`` is the largest growth rate of a small change of the density: the state is stable
    where it is < 0.
    """

    q: float
    r: float
    h: float
    growth: float


def vanishes(field: MeanField) -> list[float]:
    """Those of the overlaps -1 and 1 at which the diffusion is zero."""
    tau = step_size(field)
    largest = max(field.diffusion(q, tau) for q in (0.0, 0.25, 0.5, 0.75))
    return [q for q in (-1.0, 1.0) if field.diffusion(q, tau) <= _VANISHES * largest]


def noiseless(field: MeanField) -> list[Noiseless]:
    """Every steady state at which the diffusion vanishes."""
    found = [_at(field, q) for q in vanishes(field)]
    return [state for state in found if state is not None]


def _at(field: MeanField, q: float) -> Noiseless | None:
    """The state at Q = 1 or -1, None if the regularizer drives the entries away from it."""
    tau, (_, widens) = step_size(field), rates_of_change(field)
    xi, weights = field.prior.nodes.points, field.prior.nodes.weights
    x, shrinks = q * xi, field.phi.value(q * xi)
    r = float(np.sum(weights * x * shrinks))
    if np.any(np.abs(shrinks - r * x) > _SAME * max(1.0, float(np.abs(shrinks).max()))):
        return None
    strength = field.strength(tau)
    curvature = field.pull(q, tau) * q - strength * r
    back = curvature + strength * _slope(field, x)
    growth = _growth(back, weights, abs(float(widens(np.array([q]))[0])))
    held_by_jump = not np.all(np.isfinite(back[xi != 0.0]))
    r, curvature = (math.nan, math.nan) if held_by_jump else (r, curvature)
    return Noiseless(q, r, curvature / 2, growth)


def _slope(field: MeanField, x: Array) -> Array:
    """The smaller of the slopes on either side; infinite where the regularizer jumps."""
    phi, slope = field.phi.value, field.phi.derivative.value
    found = np.minimum(slope(x - _SIDE), slope(x + _SIDE))
    for kink in field.phi.kinks:
        jump = float(phi(np.array([kink + _SIDE]))[0] - phi(np.array([kink - _SIDE]))[0])
        at_kink = np.abs(x - kink) < _SIDE
        if abs(jump) > math.sqrt(_SIDE):
            found = np.where(at_kink, math.copysign(math.inf, jump), found)
    return np.asarray(found)


def _growth(back: Array, weights: Array, noise: float) -> float:
    """Largest eigenvalue of the variances, or of the means where those decay more slowly."""
    held = np.isfinite(back)
    if not np.all(back[~held] > 0):
        return math.inf
    if not np.any(held):
        return -math.inf
    matrix = np.diag(-2 * back[held]) + noise * weights[held]
    variances = float(np.linalg.eigvals(matrix).real.max())
    return max(variances, float(-back[held].min()))
