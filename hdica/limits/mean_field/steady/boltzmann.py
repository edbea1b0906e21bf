"""Steady conditional densities, Boltzmann in an effective potential, and their averages.

Wang and Lu 2016, eq. (17): P(x | xi) = exp{-(h x^2 + B Phi(x) - b xi x)/g}/Z. With
phi(x) = slope * x + psi(x) and Psi' = psi it is exp{-a x^2 - k Psi(x) + c x}/Z, where

    a = h/g + k slope/2,    k = B/g,    c = b xi/g.

a is measured from the end of its range: unless phi grows faster than x, the density is
normalisable for every a > 0 and may or may not be at a = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.quadrature import panel_nodes
from hdica.limits.mean_field.steady.confinement import Confinement
from hdica.limits.mean_field.steady.panels import edges, potential
from hdica.limits.numerics.work import spend
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_ORDER = 16
"""Points a panel; twice as many where it is asked what they leave out."""


@dataclass(frozen=True)
class Moments:
    """Averages over densities exp{-a x^2 - k Psi(x) + c x}/Z.

    ``powers`` are E x^j for j = 0 to 4, shape (5, ...), ``mixed`` E[x^j Psi(x)] for j = 0 to 2,
    shape (3, ...), infinite where the density is not normalisable; ``work`` is E[x psi(x)], shape
    (...).
    """

    powers: Array
    mixed: Array
    work: Array


def moments(shape: Confinement, a: Array, k: Array, tilt: Array, finer: bool = False) -> Moments:
    """Averages over the densities with coefficients ``a``, ``k`` and ``tilt`` = c, broadcast.

    For psi = l1 sign(x) in closed form (001, eq. (19), with erfcx and the constant 2/sqrt(pi) that
    belongs to it); otherwise by Gauss-Legendre quadrature, with twice the points if ``finer``.
    """
    check_deadline()
    a, k, tilt = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (a, k, tilt)))
    if shape.l1 is not None:
        return _closed(shape.l1, a, k, tilt)
    flat = _by_quadrature(shape, a.ravel(), k.ravel(), tilt.ravel(), finer)
    return Moments(
        flat.powers.reshape(5, *a.shape),
        flat.mixed.reshape(3, *a.shape),
        flat.work.reshape(a.shape),
    )


def _closed(l1: float, a: Array, k: Array, tilt: Array) -> Moments:
    from hdica.limits.mean_field.steady.laplace_kernels import averages

    flat = [np.ascontiguousarray(v).ravel() for v in (a, k, tilt)]
    powers, mixed = np.empty((5, a.size)), np.empty((3, a.size))
    averages(l1, *flat, powers, mixed)
    mixed = mixed.reshape(3, *a.shape)
    return Moments(powers.reshape(5, *a.shape), mixed, mixed[0])


def _by_quadrature(shape: Confinement, a: Array, k: Array, tilt: Array, finer: bool) -> Moments:
    ends, held = edges(shape, a, k, tilt)
    x, w = panel_nodes(ends, 2 * _ORDER if finer else _ORDER)
    spend(x.size)
    energy = shape.potential(x)
    v = a[:, None] * x * x + k[:, None] * energy - tilt[:, None] * x
    p = w * np.exp(v.min(axis=1)[:, None] - v)
    with np.errstate(invalid="ignore"):
        # A region that is not held may have no mass at its own points.
        p = p / p.sum(axis=1)[:, None]
    towers = [p]
    for _ in range(4):
        towers.append(towers[-1] * x)
    powers = np.stack([t.sum(axis=1) for t in towers])
    mixed = np.stack([(t * energy).sum(axis=1) for t in towers[:3]])
    work = (towers[1] * shape.psi(x)).sum(axis=1)
    powers[:, ~held], mixed[:, ~held] = np.inf, np.inf
    return Moments(powers, mixed, work)


def density(
    shape: Confinement, a: Array, k: Array, tilt: Array, x: Array, ends: Array
) -> tuple[Array, Array]:
    """The densities at points ``x`` and their distribution functions at ``ends``, increasing.

    Coefficients are of shape (rows,), results (rows, points): NaN where a density has no second
    moment. Both are divided by the same quadrature of Z, of which every end of a bin is an edge.
    """
    panels, held = edges(shape, a, k, tilt)
    inside = np.clip(ends, panels[:, :1], panels[:, -1:])
    joined = np.sort(np.concatenate([panels, inside], axis=1), axis=1)
    points, w = panel_nodes(joined, _ORDER)
    spend(points.size)
    v = potential(shape, a, k, tilt, points)
    lowest = v.min(axis=1)[:, None]
    mass = (w * np.exp(lowest - v)).reshape(a.size, -1, _ORDER).sum(axis=2)
    below = np.concatenate([np.zeros((a.size, 1)), np.cumsum(mass, axis=1)], axis=1)
    at = [np.searchsorted(row, some) for row, some in zip(joined, inside, strict=True)]
    at_x = np.exp(lowest - potential(shape, a, k, tilt, np.broadcast_to(x, (a.size, x.size))))
    whole = np.where(held, below[:, -1], np.nan)[:, None]
    return at_x / whole, np.take_along_axis(below, np.stack(at), axis=1) / whole
