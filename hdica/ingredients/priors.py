"""Priors: the law of the feature's entries, realised so that |xi|^2 = n exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import plain
from hdica.ingredients.quadrature import Nodes, dot, half_normal_nodes, numbers

Array = NDArray[np.float64]
HALF_NORMAL = 24
"""Nodes for each side of a normal part: for 1e-8 in Q and R of limits with an l1 kink."""
ALLOWED = (
    "dense, gaussian, {sparse: rho}, {sparse_sign: rho}, {bernoulli_gaussian: rho} "
    "or {atoms: [...], weights: [...]}"
)


@dataclass(frozen=True, eq=False)
class Prior:
    """The law of the entries xi_i of the feature, with E xi^2 = 1.

    ``feature(rng, n)`` is a feature of shape (n,) with |xi|^2 = n exactly; laws with atoms give
    each atom its share of the n entries (rounded), so that no binomial noise is added. ``nodes`` is
    the law as a discrete measure: its atoms, or Gauss nodes for a continuous part. ``groups`` says
    to which group of entries each node belongs, shape (nodes,): one group an atom, one for the
    negative and one for the positive values of a continuous part; densities of the estimate given
    the feature are kept by group, and ``classify(xi)`` is that of each entry. ``random`` says
    whether the feature itself is drawn, so that its sum fluctuates by sqrt(n).
    """

    label: str
    feature: Callable[[np.random.Generator, int], Array]
    nodes: Nodes = field(repr=False)
    groups: NDArray[np.int64] = field(repr=False)
    classify: Callable[[Array], NDArray[np.int64]] = field(repr=False)
    random: bool = False

    @property
    def group_values(self) -> Array:
        """Mean of xi in each group, shape (groups,)."""
        mass = np.bincount(self.groups, self.nodes.weights)
        first = np.bincount(self.groups, self.nodes.weights * self.nodes.points)
        return np.asarray(first / mass)

    @property
    def group_weights(self) -> Array:
        """Share of the entries in each group, shape (groups,)."""
        return np.asarray(np.bincount(self.groups, self.nodes.weights))


def _normalised(xi: Array) -> Array:
    return np.asarray(xi * math.sqrt(xi.size / dot(xi, xi)))


def shares(weights: Array, n: int) -> NDArray[np.int64]:
    """Entries of n for each atom: largest remainders, and at least one for a non-zero weight."""
    exact = weights * n
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts


def _atoms(values: Array, weights: Array, label: str) -> Prior:
    def feature(rng: np.random.Generator, n: int) -> Array:
        xi = np.repeat(values, shares(weights, n))
        if not np.any(xi):
            raise HdicaError(f"prior {label} has no non-zero entry at n = {n} (take n larger)")
        return _normalised(xi)

    values, weights = values[weights > 0], weights[weights > 0]
    # Groups go by increasing xi, whatever the order in which the atoms were given.
    distinct, groups = np.unique(values, return_inverse=True)
    middle = (distinct[1:] + distinct[:-1]) / 2

    def classify(xi: Array) -> NDArray[np.int64]:
        return np.asarray(np.searchsorted(middle, xi))

    return Prior(label, feature, Nodes(values, weights), groups, classify)


def _fraction(name: str, rho: Any) -> float:
    if isinstance(rho, bool) or not isinstance(rho, int | float) or not 0 < rho <= 1:
        raise HdicaError(f"prior: {name} = {rho!r} is not allowed (0 < rho <= 1)")
    return float(rho)


def _sparse(rho: float) -> Prior:
    values = np.array([0.0, 1 / math.sqrt(rho)])
    return _atoms(values, np.array([1 - rho, rho]), f"sparse({rho:g})")


def _sparse_sign(rho: float) -> Prior:
    a = 1 / math.sqrt(rho)
    weights = np.array([rho / 2, 1 - rho, rho / 2])
    return _atoms(np.array([-a, 0.0, a]), weights, f"sparse_sign({rho:g})")


def _bernoulli_gaussian(rho: float) -> Prior:
    def feature(rng: np.random.Generator, n: int) -> Array:
        active = max(1, round(rho * n))
        return _normalised(np.concatenate([np.zeros(n - active), rng.standard_normal(active)]))

    half = half_normal_nodes(HALF_NORMAL)
    sides = half.points / math.sqrt(rho)
    points = np.concatenate([-sides[::-1], [0.0], sides])
    share = rho * half.weights / 2
    weights = np.concatenate([share[::-1], [1 - rho], share])
    nodes = Nodes(points, weights)
    groups = 1 + np.sign(points).astype(np.int64)

    def classify(xi: Array) -> NDArray[np.int64]:
        return 1 + np.sign(xi).astype(np.int64)

    return Prior(f"bernoulli_gaussian({rho:g})", feature, nodes, groups, classify, random=True)


def _gaussian() -> Prior:
    half = half_normal_nodes(HALF_NORMAL)
    points = np.concatenate([-half.points[::-1], half.points])
    weights = np.concatenate([half.weights[::-1], half.weights]) / 2
    return Prior(
        "gaussian",
        lambda rng, n: _normalised(rng.standard_normal(n)),
        Nodes(points, weights),
        (points > 0).astype(np.int64),
        lambda xi: (np.asarray(xi) > 0).astype(np.int64),
        random=True,
    )


def _custom(atoms: Any, weights: Any) -> Prior:
    values, w = numbers(atoms), numbers(weights)
    if values is not None and w is not None and values.size and w.shape == values.shape:
        with np.errstate(all="ignore"):
            w = w / w.sum()
            size = math.sqrt(dot(w, values**2)) if np.all(w > 0) else 0.0
        if 0 < size < math.inf:
            return _atoms(values / size, w, "atoms")
    raise HdicaError(
        f"prior: atoms {atoms!r} with weights {weights!r} are not allowed "
        "(as many weights as atoms, all weights > 0, not all atoms zero)"
    )


def make_prior(spec: str | dict[str, Any]) -> Prior:
    """The prior that a study names.

    ``"dense"`` (all xi_i = 1), ``"gaussian"``, ``{"sparse": rho}`` (0 or 1/sqrt(rho)),
    ``{"sparse_sign": rho}``, ``{"bernoulli_gaussian": rho}`` or ``{"atoms": [...], "weights":
    [...]}`` (rescaled to unit second moment).
    """
    spec = plain(spec)
    try:
        return _remembered(json.dumps(spec, sort_keys=True))
    except TypeError:  # something else that JSON does not know, to be refused by name
        return _made(spec)


@lru_cache(maxsize=64)
def _remembered(text: str) -> Prior:
    return _made(json.loads(text))


def _made(spec: str | dict[str, Any]) -> Prior:
    if spec == "dense":
        return _atoms(np.array([1.0]), np.array([1.0]), "dense")
    if spec == "gaussian":
        return _gaussian()
    fractions = {
        "sparse": _sparse,
        "sparse_sign": _sparse_sign,
        "bernoulli_gaussian": _bernoulli_gaussian,
    }
    if spec == {"bernoulli_gaussian": 1}:
        return _gaussian()
    if isinstance(spec, dict) and len(spec) == 1:
        ((name, rho),) = spec.items()
        if name in fractions:
            return fractions[name](_fraction(name, rho))
    if isinstance(spec, dict) and set(spec) == {"atoms", "weights"}:
        return _custom(spec["atoms"], spec["weights"])
    raise HdicaError(f"prior: {spec!r} is not known (allowed: {ALLOWED})")
