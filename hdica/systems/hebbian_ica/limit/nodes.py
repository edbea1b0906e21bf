"""Gauss rules of the sources, as short as an average of phi allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import Law, composite_rule, normal_law
from hdica.ingredients.quadrature import Nodes, gauss, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import features

Array = NDArray[np.float64]
ORDERS = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128)
_SHIFTS = (-1.6, -0.7, 0.0, 0.4, 1.1)
_EDGES = np.linspace(-9.5, 9.5, 10)
_NOISE = math.sqrt(1 - 0.9**2)
MOST_POINTS = 200_000
_LEAST_WEIGHT = 1e-34
_ORDER = {True: 16, False: 11}
"""Points a panel of what the fine and the rough rules are made from: they share no node."""


class TooManyPoints(HdicaError):
    """A product of rules that nobody would wait for."""


def _pieces(nodes: Nodes, order: int, cuts: tuple[float, ...]) -> Nodes:
    """A Gauss rule between all cuts: for exponential tails, which need fewer points so."""
    piece = np.searchsorted(np.array(cuts), nodes.points, side="right")
    parts = [piece == k for k in range(len(cuts) + 1)]
    rules = [gauss(Nodes(nodes.points[p], nodes.weights[p]), order) for p in parts if p.any()]
    return Nodes(
        np.concatenate([rule.points for rule in rules]),
        np.concatenate([rule.weights for rule in rules]),
    )


def normal_panels(
    kinks: tuple[float, ...], inside: Array, scale: float, order: int = 12
) -> tuple[Array, Array]:
    """Points g and weights of a normal variable, cut where ``inside + scale * g`` meets a kink.

    Both have the shape (inside.size, points).
    """
    cuts = [np.clip((k - inside) / max(scale, 1e-300), _EDGES[0], _EDGES[-1]) for k in kinks]
    rows = np.broadcast_to(_EDGES, (inside.size, _EDGES.size))
    g, w = panel_nodes(np.sort(np.column_stack([rows, *cuts]), axis=1), order)
    return g, w * np.exp(-g * g / 2) / math.sqrt(2 * math.pi)


def _tests(phi: Formula, points: Array) -> Array:
    """Functions whose averages the rules must find, shape (functions, points)."""
    with np.errstate(all="ignore"):
        if phi.kinks:
            values = _smoothed(phi, points)
        else:
            values = [(v, v * v) for v in (phi.value(points + a) for a in _SHIFTS)]
        return np.array([g for v, square in values for g in (v, points * v, square)])


def _smoothed(phi: Formula, points: Array) -> list[tuple[Array, Array]]:
    """Averages of phi and phi^2 over the noise of an overlap of 0.9, which rounds their kinks."""
    found = []
    for a in _SHIFTS:
        g, w = normal_panels(phi.kinks, points + a, _NOISE)
        value = phi.value((points + a)[:, None] + _NOISE * g)
        found.append((np.sum(w * value, axis=1), np.sum(w * value * value, axis=1)))
    return found


def _candidates(full: Nodes) -> Iterator[Nodes]:
    """Rules of a measure, the shorter ones first."""
    # In the variable arsinh x the powers of a heavy tail decay as exponentials.
    folded = Nodes(np.arcsinh(full.points), full.weights)
    for order in ORDERS:
        yield gauss(full, order)
        yield _pieces(full, -(-order // 2), (0.0,))
        if order >= 24:
            yield _pieces(full, order // 4, (-2.0, 0.0, 2.0))
            yield _pieces(full, order // 6, (-6.0, -2.0, 0.0, 2.0, 6.0))
            tails = _pieces(folded, order // 4, (-1.5, 0.0, 1.5))
            yield Nodes(np.sinh(tails.points), tails.weights)


def _shortest(full: Nodes, phi: Formula, tolerance: float) -> Nodes:
    """The first rule that averages phi as ``full`` does; ``full`` itself if none does."""
    tests = _tests(phi, full.points)
    scale = full.mean(np.abs(tests)) + 1e-300
    wanted = full.mean(tests)
    for rule in _candidates(full):
        if rule.points.size < full.points.size:
            with np.errstate(all="ignore"):
                error = np.abs(rule.mean(_tests(phi, rule.points)) - wanted) / scale
            if bool(np.all(error < tolerance)):
                return _without_tails(rule, phi, tolerance)
    return full


def _without_tails(rule: Nodes, phi: Formula, tolerance: float) -> Nodes:
    """The rule without points whose weight is far below the tolerance."""
    x = rule.points
    share = rule.weights * (1 + x * x) * (1 + phi.value(x) ** 2)
    kept = share > 1e-4 * tolerance * float(share.max())
    return Nodes(x[kept], rule.weights[kept])


def _resolved(law: Law, phi: Formula, fine: bool) -> Nodes:
    """A law cut as finely as phi(a + s) needs it at every shift a that is tested."""
    known = features(phi)
    if phi.kinks:
        steps = np.array([-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0]) * _NOISE
        points = np.add.outer(np.array(phi.kinks), steps).ravel()
    else:
        points = known.edges
    cuts = np.unique(np.subtract.outer(points, np.array(_SHIFTS)))
    full = composite_rule(law, cuts, _ORDER[fine])
    kept = full.weights > _LEAST_WEIGHT
    return Nodes(full.points[kept], full.weights[kept])


@lru_cache(maxsize=128)
def source_rule(phi: Formula, source: Source, tolerance: float, fine: bool = True) -> Nodes:
    """Nodes of a source, as few as averages of phi(a + s) to a relative ``tolerance`` need.

    R_ij = 1 is the sharpest function of s_j that y_i can be; a smaller overlap is smoother. A phi
    with kinks is taken as the noise z of an overlap of 0.9 rounds it, to a lower tolerance: the
    rule is worse at larger overlaps. A rule that is ``fine`` has no node of one that is not.
    """
    full = _resolved(source.law, phi, fine)
    return _shortest(full, phi, math.sqrt(tolerance) if phi.kinks else tolerance)


@lru_cache(maxsize=128)
def normal_rule(phi: Formula, tolerance: float, fine: bool = True) -> Nodes:
    """Nodes of the normal law, as few as averages of phi(a + z) to ``tolerance`` need."""
    return _shortest(_resolved(normal_law(1.0), phi, fine), phi, tolerance)


def product(
    rules: Sequence[Nodes], most: int = MOST_POINTS, beside: int = 1
) -> tuple[Array, Array]:
    """Points (points, dimensions) and weights (points,) of independent variables, a rule each.

    ``most`` are allowed, with ``beside`` points of further variables at each of these.
    """
    count = int(np.prod([float(rule.points.size) for rule in rules])) * beside
    if count > most:
        raise TooManyPoints(
            f"averages over {len(rules)} variables need {count} quadrature points (allowed are "
            f"{most}: choose fewer sources or projections, or a polynomial of low degree)"
        )
    mesh = np.meshgrid(*[rule.points for rule in rules], indexing="ij")
    weights = np.ones(1)
    for rule in rules:
        weights = (weights[:, None] * rule.weights).ravel()
    return np.stack([axis.ravel() for axis in mesh], axis=1), weights
