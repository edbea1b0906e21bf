"""What bands are drawn of: order parameters, means of functions, support recovery, histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.limits.bands.path import Cells
from hdica.limits.bands.sweep import Target
from hdica.limits.mean_field.density.problem import NO_WEIGHT

Array = NDArray[np.float64]
Function = Callable[[Array, Array], Array]


def overlap(xi: Array, x: Array) -> Array:
    """Xi x, whose mean is Q."""
    return xi * x


def penalty(phi: Formula) -> Function:
    """X phi(x), whose mean is R."""
    return lambda xi, x: x * phi.value(x)


def means(time: float, functions: Sequence[Function]) -> Target:
    """Means of functions h(xi, x)."""

    def values(cells: Cells) -> Array:
        rows = [np.broadcast_to(h(cells.xi, cells.x), cells.x.shape) for h in functions]
        return np.stack(rows, axis=1)

    def squares(cells: Cells, mass: Array) -> Array:
        weighed = cells.weights * mass
        return np.asarray(np.sum(weighed[:, None] * values(cells) ** 2, axis=0))

    return Target(time, len(functions), values, squares)


def _inside(cells: Cells, low: Array, high: Array) -> Array:
    """Which part of each cell lies between the ends of intervals, shape (cells, intervals)."""
    left, right = cells.low[:, None], cells.high[:, None]
    within = np.minimum(right, high) - np.maximum(left, low)
    return np.asarray(np.clip(within / (right - left), 0.0, 1.0))


def _of_shares(time: float, values: Callable[[Cells], Array], scales: Array) -> Target:
    """Means of indicators times ``scales``, whose squares are known where a cell is cut, too."""

    def squares(cells: Cells, mass: Array) -> Array:
        weighed = cells.weights * mass
        return np.asarray(np.sum(weighed[:, None] * values(cells), axis=0) * scales)

    return Target(time, scales.size, values, squares)


def support(time: float, prior: Prior, thresholds: Sequence[float]) -> Target:
    """True and false positive rates and misclassified shares, one after the other.

    Each is an indicator over a share of the entries: its square is itself over that share. The
    share that is misclassified is one of all entries. False positives are NaN without a zero.
    """
    theta = np.asarray(thresholds, dtype=float)
    ends = np.full(theta.shape, np.inf)
    active = float(np.sum(prior.nodes.weights[prior.nodes.points != 0]))
    none = np.nan if active >= 1 - 1e-12 else 1 / (1 - active)

    def values(cells: Cells) -> Array:
        above = _inside(cells, theta, ends) + _inside(cells, -ends, -theta)
        there = (cells.xi != 0)[:, None]
        wrong = np.where(there, 1 - above, above)
        return np.concatenate([above * there / active, above * ~there * none, wrong], axis=1)

    scales = np.repeat([1 / active, none, 1.0], theta.size)
    return _of_shares(time, values, scales)


def histogram(time: float, prior: Prior, low: Array, high: Array, edges: Array) -> Target:
    """Densities in bins and distribution functions at edges of each group of entries.

    In the order (groups, bins), then (groups, edges). Of a bin with density p <h^2> is p/(width
    share), of a distribution function F/share; what their variance has beside it is smooth in x.
    """
    groups, shares = prior.group_values.size, prior.group_weights
    of_atoms = prior.groups[prior.nodes.weights >= NO_WEIGHT]  # no others have an atom
    below = np.full(edges.shape, -np.inf)

    def values(cells: Cells) -> Array:
        group = of_atoms[cells.atom % of_atoms.size]
        bins = _inside(cells, low, high) / (high - low)
        under = _inside(cells, below, edges)
        own = [(group == g)[:, None] / shares[g] for g in range(groups)]
        return np.concatenate([part * one for part in (bins, under) for one in own], axis=1)

    of_bins = np.concatenate([1 / (high - low) / shares[g] for g in range(groups)])
    of_edges = np.repeat(1 / shares, edges.size)
    found = _of_shares(time, values, np.concatenate([of_bins, of_edges]))
    # Bins may be narrower than cells, and most of their variance is <h^2>.
    return replace(found, leads=False)
