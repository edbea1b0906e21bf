"""What is seen of a state at finite n: order parameters and the measure of its entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula, parse_functional
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.save import NOTHING, Save

Array = NDArray[np.float64]
OVERLAP, PENALTY = "xi.x/n", "x.phi(x)/n"
"""Names of order parameters here: systems call them as their users do."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What to read off a state that is updated in place, each by output name.

    ``at_times`` gives the numbers of every output time, ``at_snapshots`` the arrays of every
    snapshot (``snapshots``, each one of the output times), ``once`` holds what does not change.
    """

    at_times: Callable[[], Mapping[str, float | Array]]
    at_snapshots: Callable[[], dict[str, Array]] = dict
    snapshots: tuple[float, ...] = ()
    once: dict[str, Array] = field(default_factory=dict)


def order_parameters(xi: Array, x: Array, phi: Formula) -> dict[str, float]:
    """Order parameters of a state: feature and estimate of shape (n,), |xi|^2 = |x|^2 = n.

    Beside :data:`OVERLAP` and :data:`PENALTY`, ``largest`` = max x_i^2/n is the share of |x|^2 on
    its largest entry: of order log(n)/n, unless the estimate condenses.
    """
    n = xi.size
    return {
        OVERLAP: dot(xi, x) / n,
        PENALTY: float(np.mean(x * phi.value(x))),
        "largest": float(np.max(x * x)) / n,
    }


def observe(xi: Array, x: Array, prior: Prior, phi: Formula, save: Save = NOTHING) -> Observation:
    """Order parameters, and what a study keeps of the measure of (xi_i, x_i).

    That measure is eq. (2) of Wang and Lu 2016; the prior says the groups of the entries. The
    estimate, of shape (n,) as the feature, is read anew at every call.
    """
    functionals = {
        name: parse_functional(text, save.constants) for name, text in save.functionals.items()
    }
    for name in sorted(functionals.keys() & order_parameters(xi, x, phi).keys()):
        raise HdicaError(f"functional {name!r} is not allowed (the order parameter has this name)")

    def at_times() -> dict[str, float]:
        means = {name: f.mean(xi, x) for name, f in functionals.items()}
        return order_parameters(xi, x, phi) | means

    if not save.snapshots or not (save.x or save.thresholds or save.estimate):
        return Observation(at_times)
    labels, groups = prior.classify(xi), prior.group_values.size

    def at_snapshots() -> dict[str, Array]:
        # Entries of a feature that moves have changed places since.
        labels = prior.classify(xi)
        densities = by_group(x, labels, groups, save.edges) if save.x else {}
        thresholds = np.asarray(save.thresholds, dtype=float)
        found = {"estimate": first_entries(x, save.estimate)} if save.estimate else {}
        return found | densities | (support(xi, x, thresholds) if save.thresholds else {})

    once = realised_groups(xi, labels, groups) if save.x else {}
    if save.estimate:
        once["xi_entry"] = first_entries(xi, save.estimate)
    return Observation(at_times, at_snapshots, save.snapshots, once)


def first_entries(x: Array, count: int) -> Array:
    """The first entries of a vector, NaN where it has no more; shape (count,)."""
    found = np.full(count, np.nan)
    found[: x.size] = x[:count]
    return found


def realised_groups(xi: Array, labels: NDArray[np.int64], groups: int) -> dict[str, Array]:
    """Mean ``xi`` (NaN in an empty group) and share ``weight`` of each group, shape (groups,)."""
    sizes = np.bincount(labels, minlength=groups)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(labels, xi, minlength=groups) / sizes
    return {"xi": mean, "weight": sizes / xi.size}


def by_group(x: Array, labels: NDArray[np.int64], groups: int, edges: Array) -> dict[str, Array]:
    """Histogram and distribution function of the estimate's entries in each group.

    ``density`` of shape (groups, edges - 1) integrates to the share of the group inside the edges;
    ``cdf`` is of shape (groups, edges); both are NaN in an empty group. Bins are closed on the
    right as the distribution function is, so that an entry on an edge (soft thresholding makes many
    that are exactly 0) is in the same bin for both.
    """
    cells = edges.size + 1
    cell = labels * cells + np.searchsorted(edges, x, side="left")
    counts = np.bincount(cell, minlength=groups * cells).reshape(groups, cells)
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=1, keepdims=True)
        below = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    return {"density": share[:, 1:-1] / np.diff(edges), "cdf": below[:, :-1]}


def support(xi: Array, x: Array, thresholds: Array) -> dict[str, Array]:
    """Recovery of the support {xi != 0} by abs(x) > threshold, each of shape (thresholds,).

    ``tpr`` is the share of the support above the threshold, ``fpr`` that of the other entries (NaN
    if there are none), ``misclassified`` the share of all entries on the wrong side.
    """
    inside = xi != 0
    above = np.abs(x) > thresholds[:, None]
    hits, alarms = np.sum(above & inside, axis=1), np.sum(above & ~inside, axis=1)
    positives = np.count_nonzero(inside)
    negatives = xi.size - positives
    return {
        "tpr": hits / positives,
        "fpr": alarms / negatives if negatives else np.full(thresholds.size, np.nan),
        "misclassified": (positives - hits + alarms) / xi.size,
    }
