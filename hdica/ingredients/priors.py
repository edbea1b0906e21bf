"""Priors: the law of the feature's entries, realised so that |xi|^2 = n exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import Nodes, dot, gaussian_nodes

Array = NDArray[np.float64]
ALLOWED = (
    "dense, gaussian, {sparse: rho}, {sparse_sign: rho}, {bernoulli_gaussian: rho} "
    "or {atoms: [...], weights: [...]}"
)


@dataclass(frozen=True, eq=False)
class Prior:
    """The law of the entries xi_i of the feature, with E xi^2 = 1.

    Parameters
    ----------
    label
        Short name for tables and plots.
    feature
        ``feature(rng, n)``: one feature of shape (n,) with |xi|^2 = n exactly. Laws with atoms
        give each atom its share of the n entries (rounded), so that no binomial noise is added.
    nodes
        The law as a discrete measure: its atoms, or Gauss nodes for a continuous part.
    random
        Whether the feature itself is drawn, so that its sum fluctuates by sqrt(n).
    """

    label: str
    feature: Callable[[np.random.Generator, int], Array]
    nodes: Nodes = field(repr=False)
    random: bool = False


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

    return Prior(label, feature, Nodes(values, weights))


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

    normal = gaussian_nodes(64)
    points = np.append(normal.points / math.sqrt(rho), 0.0)
    nodes = Nodes(points, np.append(rho * normal.weights, 1 - rho))
    return Prior(f"bernoulli_gaussian({rho:g})", feature, nodes, random=True)


def _custom(atoms: Any, weights: Any) -> Prior:
    values, w = np.asarray(atoms, dtype=float), np.asarray(weights, dtype=float)
    sized = values.ndim == 1 and values.size > 0 and w.shape == values.shape
    if not sized or np.any(w <= 0) or not np.all(np.isfinite(values)) or not np.any(values):
        raise HdicaError(
            f"prior: atoms {atoms!r} with weights {weights!r} are not allowed "
            "(as many weights as atoms, all weights > 0, not all atoms zero)"
        )
    w = w / w.sum()
    return _atoms(values / math.sqrt(dot(w, values**2)), w, "atoms")


def make_prior(spec: str | dict[str, Any]) -> Prior:
    """The prior that a study names.

    Parameters
    ----------
    spec
        ``"dense"`` (all xi_i = 1), ``"gaussian"``, ``{"sparse": rho}`` (0 or 1/sqrt(rho)),
        ``{"sparse_sign": rho}``, ``{"bernoulli_gaussian": rho}`` or
        ``{"atoms": [...], "weights": [...]}`` (rescaled to unit second moment).

    Raises
    ------
    HdicaError
        If it is none of these, or a number in it is out of range.
    """
    if spec == "dense":
        return _atoms(np.array([1.0]), np.array([1.0]), "dense")
    if spec == "gaussian":
        return Prior(
            "gaussian",
            lambda rng, n: _normalised(rng.standard_normal(n)),
            gaussian_nodes(64),
            random=True,
        )
    fractions = {
        "sparse": _sparse,
        "sparse_sign": _sparse_sign,
        "bernoulli_gaussian": _bernoulli_gaussian,
    }
    if isinstance(spec, dict) and len(spec) == 1:
        ((name, rho),) = spec.items()
        if name in fractions:
            return fractions[name](_fraction(name, rho))
    if isinstance(spec, dict) and set(spec) == {"atoms", "weights"}:
        return _custom(spec["atoms"], spec["weights"])
    raise HdicaError(f"prior: {spec!r} is not known (allowed: {ALLOWED})")
