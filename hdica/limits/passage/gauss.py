"""Gaussian quadrature of classical laws, from the recurrence of their polynomials.

SciPy's rules for these weights overflow where n is in the hundreds: they normalise by gamma
functions. The recurrence has no such numbers.
"""

from __future__ import annotations

import numpy as np

from hdica.ingredients.quadrature import Nodes, from_recurrence


def chi2_nodes(freedom: int, points: int) -> Nodes:
    """The rule of chi2 with ``freedom`` > 0 degrees of freedom, twice that of Laguerre."""
    k = np.arange(points, dtype=float)
    shape = freedom / 2 - 1
    return from_recurrence(2 * (2 * k + shape + 1), 2 * np.sqrt(k[1:] * (k[1:] + shape)))


def sphere_nodes(n: int, points: int) -> Nodes:
    """The rule of one coordinate of a random direction in n >= 3 dimensions, Gegenbauer's."""
    k, half = np.arange(1.0, points), n / 2 - 1
    beside = np.sqrt(k * (k + 2 * half - 1) / (4 * (k + half) * (k + half - 1)))
    return from_recurrence(np.zeros(points), beside)
