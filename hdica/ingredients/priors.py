"""Priors: the law of the feature's entries, realised so that |xi|^2 = n exactly."""

from __future__ import annotations

import json
import math
from functools import lru_cache

import numpy as np
from numpy.random import Generator

from hdica.errors import HdicaError, unknown_word
from hdica.ingredients.plain import VECTOR, Array, Indices, is_number, plain
from hdica.ingredients.prior import Prior as Prior
from hdica.ingredients.prior import (
    by_sign,
    by_value,
    normalised,
    sided,
    slab_prior,
    spread_of_mean,
    until_not_zero,
)
from hdica.ingredients.quadrature import Nodes, dot, half_normal_nodes, numbers
from hdica.ingredients.sources import make_source

HALF_NORMAL = 24
"""Nodes for each side of a normal part: for 1e-8 in Q and R of limits with an l1 kink."""
NAMES = (
    *("dense", "gaussian", "sparse", "sparse_sign", "bernoulli_gaussian"),
    *("atoms", "slab", "scipy", "mixture"),
)
ALLOWED = (
    "dense, gaussian, {sparse: rho}, {sparse_sign: rho}, {bernoulli_gaussian: rho}, "
    "{atoms: [...], weights: [...]}, {slab: law, rho: rho}, {scipy: name, ...} or {mixture: ...}, "
    "the mappings with iid: true if entries are to be drawn one by one"
)


def shares(weights: Array, n: int) -> Indices:
    """Entries of n for each atom: largest remainders, and at least one for a non-zero weight."""
    exact = weights * n
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts


def _atoms(values: Array, weights: Array, label: str, iid: bool = False) -> Prior:
    def feature(rng: Generator, n: int) -> Array:
        xi = np.repeat(values, shares(weights, n))
        if not np.any(xi):
            raise HdicaError(f"prior {label} has no non-zero entry at n = {n} (take n larger)")
        return normalised(xi)

    values, weights = values[weights > 0], weights[weights > 0]
    edges, nodes = np.cumsum(weights)[:-1], Nodes(values, weights)
    groups, classify = by_value(values)
    if not iid:
        return Prior(label, feature, nodes, groups, classify)
    draw = until_not_zero(
        lambda rng, n: values[np.searchsorted(edges, rng.random(n), side="right")], label
    )
    return Prior(label, draw, nodes, groups, classify, True, spread_of_mean(nodes), iid=True)


def _sparse(rho: float, iid: bool) -> Prior:
    values = np.array([0.0, 1 / math.sqrt(rho)])
    return _atoms(values, np.array([1 - rho, rho]), f"sparse({rho:g})", iid)


def _sparse_sign(rho: float, iid: bool) -> Prior:
    a = 1 / math.sqrt(rho)
    weights = np.array([rho / 2, 1 - rho, rho / 2])
    return _atoms(np.array([-a, 0.0, a]), weights, f"sparse_sign({rho:g})", iid)


def _bernoulli_gaussian(rho: float, iid: bool) -> Prior:
    label = "gaussian" if rho == 1 else f"bernoulli_gaussian({rho:g})"

    def feature(rng: Generator, n: int) -> Array:
        active = max(1, round(rho * n))
        return normalised(np.concatenate([np.zeros(n - active), rng.standard_normal(active)]))

    def rule(order: int) -> Nodes:
        half, zeros = half_normal_nodes(order), np.zeros(int(rho < 1))
        sides, share = half.points / math.sqrt(rho), rho * half.weights / 2
        weights = np.concatenate([share[::-1], zeros + 1 - rho, share])
        return Nodes(np.concatenate([-sides[::-1], zeros, sides]), weights)

    nodes, iid = rule(HALF_NORMAL), iid and rho < 1
    groups, classify = by_sign(nodes.points)
    drawn = until_not_zero(
        lambda rng, n: np.where(rng.random(n) < rho, rng.standard_normal(n), 0.0),
        "bernoulli_gaussian",
    )
    draw = drawn if iid else feature
    return Prior(label, draw, nodes, groups, classify, True, 1.0, iid=iid, finer=rule)


def _custom(atoms: object, weights: object, iid: bool) -> Prior:
    values, w = numbers(atoms), numbers(weights)
    if values is not None and w is not None and values.size and w.shape == values.shape:
        with np.errstate(all="ignore"):
            w = w / w.sum()
            size = math.sqrt(dot(w, values**2)) if np.all(w > 0) else 0.0
        if 0 < size < math.inf:
            return _atoms(values / size, w, "atoms", iid)
    raise HdicaError(
        f"prior: atoms {atoms!r} with weights {weights!r} are not allowed "
        "(as many weights as atoms, all weights > 0, not all atoms zero)"
    )


def make_prior(spec: object) -> Prior:
    """The prior that a study names.

    ``"dense"`` (all xi_i = 1), ``"gaussian"``, ``{"sparse": rho}`` (0 or 1/sqrt(rho)),
    ``{"sparse_sign": rho}``, ``{"bernoulli_gaussian": rho}`` or ``{"atoms": [...], "weights":
    [...]}``.  ``{"slab": law, "rho": rho}`` is 0 but for a share rho of the entries, which follow
    any law that a source may have (:func:`hdica.ingredients.sources.make_source`); ``{"scipy":
    name, ...}`` and ``{"mixture": ...}`` are that law with rho = 1. Laws of ``scipy``,
    ``mixture`` and ``discrete`` are taken as they are written, with their mean, and all are
    rescaled to E xi^2 = 1.

    Shares are exact in numbers, rho n of the entries of a sparse feature rounded; with ``"iid":
    True`` beside them every entry is drawn on its own. Then |xi|^2 = n in either case.
    """
    spec = plain(spec)
    try:
        return _remembered(json.dumps(spec, sort_keys=True))
    except TypeError:  # something else that JSON does not know, to be refused by name
        raise unknown_word("prior", spec, NAMES, ALLOWED) from None


_FRACTIONS = {
    "sparse": _sparse,
    "sparse_sign": _sparse_sign,
    "bernoulli_gaussian": _bernoulli_gaussian,
}


@lru_cache(maxsize=64)
def _remembered(text: str) -> Prior:
    spec = json.loads(text)
    if spec == "dense":
        return _atoms(np.array([1.0]), np.array([1.0]), "dense")
    if spec == "gaussian":
        return _bernoulli_gaussian(1.0, False)
    if not isinstance(spec, dict):
        raise unknown_word("prior", spec, NAMES, ALLOWED)
    iid, law = spec.get("iid", False), {key: spec[key] for key in spec if key != "iid"}
    if not isinstance(iid, bool):
        raise HdicaError(f"prior: iid = {iid!r} is not allowed (true or false)")
    if len(law) == 1 and (name := next(iter(law))) in _FRACTIONS:
        return _FRACTIONS[name](_fraction(name, law[name]), iid)
    if set(law) == {"atoms", "weights"}:
        return _custom(law["atoms"], law["weights"], iid)
    if set(law) == {"slab", "rho"}:
        return _slab(law["slab"], _fraction("rho", law["rho"]), iid)
    if "scipy" in law or set(law) == {"mixture"}:
        return _slab(law, 1.0, iid)
    raise unknown_word("prior", spec, NAMES, ALLOWED)


def _fraction(name: str, rho: object) -> float:
    if not is_number(rho) or not 0 < rho <= 1:
        raise HdicaError(f"prior: {name} = {rho!r} is not allowed (0 < rho <= 1)")
    return float(rho)


def _slab(spec: object, rho: float, iid: bool) -> Prior:
    try:
        source = make_source(spec)
    except HdicaError as exc:
        raise HdicaError(str(exc).replace("source:", "prior: slab", 1)) from None
    return slab_prior(source, rho, iid)


FEW = 8
"""Distinct values up to which each is a group of entries of its own, and the law exact."""
MOST = 2**20
"""Distinct values of a vector of which the limit's rules are made: more would take minutes, and
neighbours of so many are alike to far below the 1e-6 to which the rules hold."""


def wrong_length(what: str, length: int, n: int) -> str:
    """Empty if n is the length of a vector, else the sentence that refuses it."""
    if n == length:
        return ""
    return f"n = {n} is not allowed ({what} is a vector of {length} entries, so n = {length})"


def of_length(values: Array, what: str, n: int) -> Array:
    """A copy of a vector; refused at any n but its own."""
    refusal = wrong_length(what, values.size, n)
    if refusal:
        raise HdicaError(refusal)
    return values.copy()


def vector_prior(values: Array) -> Prior:
    """The feature with these entries, shape (n,), times the factor that makes |xi|^2 = n.

    The limit knows their empirical law: as atoms if they have few distinct values, else by Gauss
    rules for the negative and the positive ones, which average functions with a kink at zero as
    the entries do to 1e-6 or better (:func:`hdica.ingredients.prior.sided`).
    """
    xi = normalised(values)
    distinct, counts = np.unique(xi, return_counts=True)

    def spread_out(rng: Generator, count: int) -> Array:
        """As many entries by their quantiles, for what stands for the limit at any count."""
        places = (np.arange(count) + 0.5) * xi.size / count
        return normalised(np.sort(xi)[places.astype(np.int64)])

    if distinct.size <= FEW:
        nodes = Nodes(distinct, counts / xi.size)
        groups, classify = by_value(distinct)
    else:
        zero = distinct == 0
        rest, atoms = (Nodes(distinct[part], counts[part] / xi.size) for part in (~zero, zero))
        nodes = sided(_joined(rest), atoms, "that is a vector")
        groups, classify = by_sign(nodes.points)
    return Prior(
        VECTOR,
        lambda rng, n: of_length(xi, "prior", n),
        nodes,
        groups,
        classify,
        length=xi.size,
        entries=spread_out,
    )


def _joined(nodes: Nodes) -> Nodes:
    """Neighbours of a law in one, in ascending order, so that no more than MOST are left."""
    count = -(-nodes.points.size // MOST)
    if count <= 1:
        return nodes
    first = np.arange(0, nodes.points.size, count)
    weights = np.add.reduceat(nodes.weights, first)
    return Nodes(np.add.reduceat(nodes.weights * nodes.points, first) / weights, weights)
