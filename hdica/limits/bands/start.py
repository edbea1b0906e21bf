"""How the mean of a function over the entries fluctuates at t = 0.

Given the feature, entries of the estimate are drawn one by one and |x|^2 = n is then restored,
which moves <v> by -(<x v'>/2)(|x|^2/n - 1): n Var<v> is the mean variance of v less that part,
given xi. A start with an exact overlap is orthogonal to what it has of the feature before it gets
its length. A feature that is drawn itself adds the variance of E[v | xi], less what |xi|^2 = n
takes away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.priors import Prior
from hdica.ingredients.starts import Start
from hdica.limits.bands.path import Cells

Array = NDArray[np.float64]
BESIDE = 1e-4
"""Share by which a feature is scaled to see what its length does."""


def _slopes(values: Array, mass: Array, cells: Cells) -> tuple[Array, Array]:
    """<xi v'> and <x v'> of every column, by the compiled lines of the sweep."""
    from hdica.limits.bands.kernels import shared

    found = np.empty((3, values.shape[1]))
    shared(found, values, mass, cells.compiled, cells.weights)
    return found[0], found[1]


def _given_feature(values: Array, mass: Array, cells: Cells, start: Start, overlap: float) -> Array:
    """The columns less what the length of x, and an exact overlap, take from them."""
    along, radial = _slopes(values, mass, cells)
    if not start.exact:
        return values - radial / 2 * (cells.x[:, None] ** 2 - 1)
    # x = Q0 xi + r z with z orthogonal to xi and of length sqrt(n).
    rest = (cells.x - overlap * cells.xi)[:, None]
    size = max(1 - overlap**2, 1e-300)
    own = radial - overlap * along
    return values - along * cells.xi[:, None] * rest - own / (2 * size) * (rest**2 - size)


def spread_at_start(values: Array, mass: Array, cells: Cells, start: Start, prior: Prior) -> Array:
    """N Var<v> at t = 0 of every column v, shape (functions,).

    Atoms of the problem beyond those of the prior are its own, scaled by 1 + BESIDE and 1 - BESIDE.
    """
    left = _given_feature(values, mass, cells, start, start.overlap(prior))
    atoms = int(cells.atom[-1]) + 1
    weights = np.array([cells.weights[cells.atom == a][0] for a in range(atoms)])
    means = _by_atom(left, mass, cells, atoms)
    inside = _by_atom(left**2, mass, cells, atoms) - means**2
    found = np.sum(weights[:, None] * inside, axis=0)
    if prior.random:
        found = found + _of_feature(means, prior)
    return np.maximum(found, 0.0)


def _by_atom(values: Array, mass: Array, cells: Cells, atoms: int) -> Array:
    found = np.zeros((atoms, values.shape[1]))
    np.add.at(found, cells.atom, mass[:, None] * values)
    return found


def _of_feature(means: Array, prior: Prior) -> Array:
    """Variance of E[v | xi] over features that are drawn, with |xi|^2 = n."""
    nodes, count = prior.nodes, prior.nodes.points.size
    own, up, down = means[:count], means[count : 2 * count], means[2 * count :]
    weights = nodes.weights[:, None]
    longer = np.sum(weights * (up - down), axis=0) / (2 * BESIDE)
    moved = own - longer / 2 * (nodes.points[:, None] ** 2 - 1)
    found = np.zeros(own.shape[1])
    for part in prior.strata:
        share = np.sum(weights[part])
        first = np.sum(weights[part] * moved[part], axis=0) / share
        found += np.sum(weights[part] * (moved[part] - first) ** 2, axis=0)
    return found
