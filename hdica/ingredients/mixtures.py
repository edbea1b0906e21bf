"""Sources that are mixtures of normal laws, whose components of no width are atoms."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.parts import Law, normal_part
from hdica.ingredients.quadrature import Nodes, dot, gaussian_nodes, numbers
from hdica.ingredients.source import Source, double_factorial

Array = NDArray[np.float64]
MOST_COMPONENTS = 64
"""Components of a mixture: each brings quadrature points of its own to every average."""
_KEYS = ("weights", "means", "sds")
_NARROWEST = 1e-9
"""Smallest standard deviation of a component beside that of the whole, unless it is zero."""
_EVEN = 1e-12


def _columns(given: Any) -> tuple[Array, Array, Array]:
    """Weights of sum one, means and standard deviations of the components."""
    if not isinstance(given, dict) or set(given) != set(_KEYS):
        raise HdicaError(
            f"source: mixture = {given!r} is not allowed (three lists: weights, means and sds)"
        )
    found = [numbers(given[key]) for key in _KEYS]
    w, means, sds = (np.empty(0) if one is None else one for one in found)
    fits = w.size and w.size == means.size == sds.size
    if not (fits and all(np.all(np.abs(one) < 1e100) for one in (w, means, sds))):
        raise HdicaError(
            f"source: mixture = {given!r} is not allowed (weights, means and sds are lists of "
            "finite numbers, one of each a component)"
        )
    if w.size > MOST_COMPONENTS:
        raise HdicaError(
            f"source: mixture with {w.size} components is not allowed (at most {MOST_COMPONENTS})"
        )
    if not np.all(w > 0):
        raise HdicaError(f"source: mixture weights {w.tolist()} are not allowed (all above zero)")
    if not np.all(sds >= 0):
        raise HdicaError(
            f"source: mixture sds {sds.tolist()} are not allowed (all >= 0; 0 makes an atom)"
        )
    return w / w.sum(), means, sds


def _is_even(w: Array, means: Array, sds: Array) -> bool:
    """Whether the mirror image has the same components, some of which may be given in parts."""
    table = np.round(np.stack([means, sds], axis=1), 12) + 0.0
    both = np.concatenate([table, table * [-1.0, 1.0] + 0.0])
    _, place = np.unique(both, axis=0, return_inverse=True)
    balance = np.bincount(np.ravel(place), np.concatenate([w, -w]))
    return bool(np.all(np.abs(balance) < _EVEN))


def _parts_of(w: Array, means: Array, sds: Array) -> Law:
    wide = sds > 0
    rows = zip(means[wide].tolist(), sds[wide].tolist(), w[wide].tolist(), strict=True)
    atoms = None if wide.all() else Nodes(means[~wide], w[~wide])
    return Law(tuple(normal_part(*row) for row in rows), atoms)


def _rule(w: Array, means: Array, sds: Array) -> Nodes:
    """Gauss-Hermite nodes of every component."""
    normal, wide = gaussian_nodes(128), sds > 0
    points = (means[wide, None] + sds[wide, None] * normal.points).ravel()
    weights = (w[wide, None] * normal.weights).ravel()
    return Nodes(np.append(points, means[~wide]), np.append(weights, w[~wide]))


def mixture(given: Any) -> Source:
    """The mixture sum_k w_k N(m_k, s_k^2), moved and scaled to mean 0 and variance 1.

    Parameters
    ----------
    given
        ``{"weights": [w_1, ...], "means": [m_1, ...], "sds": [s_1, ...]}``: weights above zero, of
        which only the ratios count; an s_k of zero is an atom at m_k.

    Raises
    ------
    HdicaError
        If the lists do not fit, a number is not allowed, or the law has no width.
    """
    _columns(given)
    listed = {key: [float(one) for one in given[key]] for key in _KEYS}
    return _remembered(json.dumps(listed, sort_keys=True))


@lru_cache(maxsize=64)
def _remembered(text: str) -> Source:
    w, means, sds = _columns(json.loads(text))
    first = dot(w, means)
    away = means - first
    width = math.sqrt(dot(w, away**2) + dot(w, sds**2))
    if not width > 0 or np.any((sds > 0) & (sds < _NARROWEST * width)):
        raise HdicaError(
            f"source: mixture with means {means.tolist()} and sds {sds.tolist()} is not allowed "
            "(it needs a positive variance, and sds that are 0 or no tiny part of it)"
        )
    z, s = away / width, sds / width
    even = _is_even(w, z, s)

    def moment(k: int) -> float:
        if k <= 2:
            return (1.0, 0.0, 1.0)[k]
        if even and k % 2:
            return 0.0
        terms = (
            math.comb(k, 2 * j) * double_factorial(2 * j - 1) * z ** (k - 2 * j) * s ** (2 * j)
            for j in range(k // 2 + 1)
        )
        return math.fsum(dot(w, term) for term in terms)

    edges = np.cumsum(w)[:-1]

    def sample(rng: np.random.Generator, size: int) -> Array:
        component = np.searchsorted(edges, rng.random(size), side="right")
        return np.asarray(z[component] + s[component] * rng.standard_normal(size))

    label = f"mixture of {w.size}"
    return Source(
        label, sample, _rule(w, z, s), moment, even, lambda: _parts_of(w, z, s), first / width
    )
