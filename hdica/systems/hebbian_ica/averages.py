"""Averages <phi(y_i) s_j>, <phi(y_i) y_k>, <phi(y_i) phi(y_k)> for y = R s + z, z ~ N(0, I - RR').

Rattray 2002, eq. (16). Closed forms if phi is a polynomial, else quadrature over the M sources
and one normal variable: Stein's identity gives <phi(y_i) z_k>, and Mehler's formula the average
of phi(y_i) phi(y_k) over two correlated normals from the Hermite coefficients of either.

The closed forms come from the moments of the sources and are polynomials in the entries of R. They
hold on the boundary, where I - R R' is singular, and for complex R as well, which gives derivatives
without rounding. The Gauss rules of the sources are as short as an average of phi allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import Law, composite_rule, normal_law
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import Nodes, gauss, gaussian_nodes, gram, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import features

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
    points, weights = [rule.points for rule in rules], [rule.weights for rule in rules]
    return Nodes(np.concatenate(points), np.concatenate(weights))


def normal_panels(
    kinks: tuple[float, ...], inside: Array, scale: float, order: int = 12
) -> tuple[Array, Array]:
    """Points g and weights, (inside.size, points), cut where inside + scale g meets a kink."""
    cuts = [np.clip((k - inside) / max(scale, 1e-300), _EDGES[0], _EDGES[-1]) for k in kinks]
    rows = np.broadcast_to(_EDGES, (inside.size, _EDGES.size))
    g, w = panel_nodes(np.sort(np.column_stack([rows, *cuts]), axis=1), order)
    return g, w * np.exp(-g * g / 2) / math.sqrt(2 * math.pi)


def _tests(phi: Formula, points: Array) -> Array:
    """Functions that rules must average, phi, x phi and phi^2 at shifts, (functions, points)."""
    tests = []
    with np.errstate(all="ignore"):
        for a in _SHIFTS:
            if phi.kinks:
                # Over the noise of an overlap of 0.9, which rounds the kinks.
                g, w = normal_panels(phi.kinks, points + a, _NOISE)
                value = phi.value((points + a)[:, None] + _NOISE * g)
                v, square = np.sum(w * value, axis=1), np.sum(w * value * value, axis=1)
            else:
                v = phi.value(points + a)
                square = v * v
            tests += [v, points * v, square]
    return np.array(tests)


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
            if np.all(error < tolerance):
                # Without points whose weight is far below the tolerance.
                x = rule.points
                share = rule.weights * (1 + x * x) * (1 + phi.value(x) ** 2)
                counted = share > 1e-4 * tolerance * share.max()
                return Nodes(x[counted], rule.weights[counted])
    return full


def _resolved(law: Law, phi: Formula, fine: bool) -> Nodes:
    """A law cut as finely as phi(a + s) needs it at every shift a that is tested."""
    shape = features(phi)
    if phi.kinks:
        steps = np.array([-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0]) * _NOISE
        points = np.add.outer(np.array(phi.kinks), steps).ravel()
    else:
        points = shape.edges
    cuts = np.unique(np.subtract.outer(points, np.array(_SHIFTS)))
    full = composite_rule(law, cuts, _ORDER[fine])
    counted = full.weights > _LEAST_WEIGHT
    return Nodes(full.points[counted], full.weights[counted])


@lru_cache(maxsize=128)
def source_rule(phi: Formula, source: Source, tolerance: float, fine: bool = True) -> Nodes:
    """Nodes of a source, as few as averages of phi(a + s) to a relative ``tolerance`` need.

    R_ij = 1 is the sharpest function of s_j that y_i can be. A phi with kinks is taken as the noise
    z of an overlap of 0.9 rounds it, to a lower tolerance, and worse at larger overlaps. A rule
    that is ``fine`` has no node of one that is not.
    """
    full = _resolved(source.law, phi, fine)
    return _shortest(full, phi, math.sqrt(tolerance) if phi.kinks else tolerance)


@lru_cache(maxsize=128)
def normal_rule(phi: Formula, tolerance: float, fine: bool = True) -> Nodes:
    """Nodes of the normal law, as few as averages of phi(a + z) to ``tolerance`` need."""
    return _shortest(_resolved(normal_law(1.0), phi, fine), phi, tolerance)


def sample_rules(
    phi: Formula, sources: Sequence[Source], order: int, tolerance: float, fine: bool = True
) -> tuple[list[Nodes], Nodes]:
    """Rules of sources and the normal law; for polynomials exact below the degree 2 ``order``."""
    if phi.coefficients is not None:
        return [gauss(source.nodes, order) for source in sources], gaussian_nodes(order)
    rules = [source_rule(phi, source, tolerance, fine) for source in sources]
    return rules, normal_rule(phi, tolerance, fine)


def product(
    rules: Sequence[Nodes], most: int = MOST_POINTS, further: int = 1
) -> tuple[Array, Array]:
    """Points (points, dimensions) and weights (points,) of independent variables, a rule each.

    ``most`` are allowed, with ``further`` points of further variables at each of these.
    """
    count = int(np.prod([float(rule.points.size) for rule in rules])) * further
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


Numbers = NDArray[Any]
"""Real or complex entries."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What polynomial averages need of phi and the sources."""

    coefficients: Array  # of phi, lowest degree first, shape (d + 1,)
    moments: Array  # E s_j^p for p = 0 ... 2d + 1, shape (M, 2d + 2)

    def means(self, r: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """<phi(y_i) s_j>, <phi(y_i) y_k> and <phi(y_i) phi(y_k)> at overlaps ``r`` (K, M)."""
        size = self.coefficients.size
        factorial = np.array([float(math.factorial(p)) for p in range(size)])
        weight = self.coefficients * factorial
        rest = np.eye(r.shape[0]) - gram(r)
        joint = _joint(r, rest, self.moments, size)
        phi_phi = np.sum(weight[:, None] * weight * joint, axis=(2, 3))
        phi_s = np.sum(weight * _with_source(r, rest, self.moments, size), axis=2)
        # s_j is independent of y_i where R_ij = 0, so that a zero column stays exactly zero.
        phi_s = np.where(r == 0.0, 0.0, phi_s)
        single = joint[:, 0, :, 0]
        slope = np.sum(weight[1:] * single[:, :-1], axis=1)
        phi_y = np.sum(phi_s[:, None] * r, axis=2) + rest * slope[:, None]
        return phi_s, phi_y, phi_phi


def find_moments(phi: Formula, sources: Sequence[Source]) -> Moments:
    """Moments for a polynomial ``phi``."""
    c = phi.coefficients
    assert c is not None
    needed = max(2 * (c.size - 1), c.size, 2)
    for source in sources:
        for p in range(needed + 1):
            if not math.isfinite(source.moment(p)):
                raise HdicaError(
                    f"the limit does not exist: the source {source.label} has no finite moment "
                    f"of order {p}, which the nonlinearity {phi.text!r} needs"
                )
    table = [[s.moment(p) if p <= needed else 0.0 for p in range(2 * c.size)] for s in sources]
    return Moments(c, np.array(table))


def _powers(x: Numbers, size: int) -> Numbers:
    """x^p / p! for p < size, along a new last axis."""
    out = np.ones((*x.shape, size), dtype=x.dtype)
    for p in range(1, size):
        out[..., p] = out[..., p - 1] * x / p
    return out


def _normal(variance: Numbers, size: int) -> Numbers:
    """E z_i^p / p! of normal variables, shape (K, size): the coefficients of exp(C_ii u^2/2)."""
    out = np.zeros((variance.size, size), dtype=variance.dtype)
    out[:, ::2] = _powers(variance / 2, (size + 1) // 2)
    return out


def _joint(r: Numbers, rest: Numbers, moments: Array, size: int) -> Numbers:
    """E y_i^a y_k^b / (a! b!) for a, b < size, shape (K, K, size, size).

    The product of the moment generating functions of z and of every source, as truncated power
    series in two variables.
    """
    own = _normal(np.diagonal(rest), size)
    cross = _powers(rest, size)
    out = np.zeros((*rest.shape, size, size), dtype=rest.dtype)
    for c in range(size):
        left = own[:, None, : size - c, None] * own[None, :, None, : size - c]
        out[:, :, c:, c:] += cross[:, :, c, None, None] * left
    for j in range(r.shape[1]):
        powers = _powers(r[:, j], size)
        old, out = out, np.zeros_like(out)
        for a in range(size):
            for b in range(size):
                if moments[j, a + b] != 0.0:
                    term = moments[j, a + b] * powers[:, None, a] * powers[None, :, b]
                    shifted = old[:, :, : size - a, : size - b]
                    out[:, :, a:, b:] += term[:, :, None, None] * shifted
    return out


def _with_source(r: Numbers, rest: Numbers, moments: Array, size: int) -> Numbers:
    """E y_i^a s_j / a! for a < size, shape (K, M, size)."""
    sources = r.shape[1]
    out = np.repeat(_normal(np.diagonal(rest), size)[:, None], sources, axis=1)
    for m in range(sources):
        powers = _powers(r[:, m], size)
        old, out = out, np.zeros_like(out)
        for p in range(size):
            moment = np.full(sources, moments[m, p])
            moment[m] = moments[m, p + 1]
            out[:, :, p:] += (powers[:, None, p] * moment)[:, :, None] * old[:, :, : size - p]
    return out


MeanValues = tuple[Numbers, Numbers, Numbers]
FINE, COARSE = 1e-11, 1e-7
MOST_PAIRS = 6_000_000
"""Points of all sources and a normal variable together."""
_KINKED_TERMS, _SMOOTH_TERMS = 128, 40


@dataclass(frozen=True, eq=False)
class _Quadrature:
    """Averages by quadrature to a given tolerance."""

    phi: Formula
    points: Array  # of the sources, shape (P, M)
    weights: Array  # shape (P,)
    tolerance: float
    fine: bool

    def means(self, r: Array) -> MeanValues:
        """<phi(y_i) s_j>, <phi(y_i) y_k>, <phi(y_i) phi(y_k)> at overlaps ``r`` (K, M)."""
        projections = r.shape[0]
        rest = np.eye(projections) - gram(r)
        scale = np.sqrt(np.maximum(np.diagonal(rest), 0.0))
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        correlation = np.clip(rest * inverse[:, None] * inverse, -1.0, 1.0)
        inside = [np.sum(self.points * row, axis=1) for row in r]
        terms = self._terms(correlation)
        series = [self._hermite(u, c, terms) for u, c in zip(inside, scale, strict=True)]
        level = [self._mean(coefficients[0][:, None] * self.points) for coefficients, _ in series]
        phi_s = np.where(r == 0.0, 0.0, np.array(level))
        # <phi(y_i) z_k> = C_ik <phi'(y_i)> = (C_ik / c_i) <g phi(u + c_i g)>: no slope of phi.
        first = np.array([self._mean(coefficients[1]) for coefficients, _ in series])
        phi_y = np.sum(phi_s[:, None] * r, axis=2) + rest * (inverse * first)[:, None]
        phi_phi = np.diag([self._mean(square) for _, square in series])
        for i in range(projections):
            for k in range(i):
                rho = correlation[i, k]
                phi_phi[i, k] = phi_phi[k, i] = self._pair(series[i][0], series[k][0], rho)
        return phi_s, phi_y, phi_phi

    def _mean(self, values: Array) -> Array:
        shape = (-1,) + (1,) * (values.ndim - 1)
        return np.sum(self.weights.reshape(shape) * values, axis=0)

    def _terms(self, correlation: Array) -> int:
        """Hermite coefficients that the most correlated pair needs: rho^n falls below rounding."""
        off = correlation[~np.eye(correlation.shape[0], dtype=bool)]
        largest = float(np.abs(off).max()) if off.size else 0.0
        most = _KINKED_TERMS
        if not self.phi.kinks:
            rule = normal_rule(self.phi, self.tolerance, self.fine)
            most = min(_SMOOTH_TERMS, rule.points.size)
        elif self.tolerance > FINE:
            most //= 2
        if largest < 1e-8:
            return 2 if largest == 0.0 else 3
        if largest > 0.999:
            return most
        return min(most, max(2, math.ceil(math.log(self.tolerance * 1e-6) / math.log(largest))))

    def _hermite(self, inside: Array, scale: float, terms: int) -> tuple[list[Array], Array]:
        """<phi(u + c g) He_n(g)> / sqrt(n!) for n < terms, and <phi(u + c g)^2>, at every u."""
        if self.phi.kinks:
            g, w = normal_panels(self.phi.kinks, inside, scale, 12 if self.fine else 9)
        else:
            rule = normal_rule(self.phi, self.tolerance, self.fine)
            g, w = rule.points[None], rule.weights[None]
        value = self.phi.value(inside[:, None] + scale * g)
        weighted = value * w
        square = np.sum(weighted * value, axis=1)
        now, before = np.ones_like(g), np.zeros_like(g)
        coefficients = []
        for n in range(terms):
            coefficients.append(np.sum(weighted * now, axis=1))
            after = (g * now - math.sqrt(n) * before) / math.sqrt(n + 1)
            now, before = after, now
        return coefficients, square

    def _pair(self, one: list[Array], other: list[Array], rho: float) -> float:
        """Mehler's formula: the sum of rho^n times the two coefficients of order n."""
        total = np.zeros(self.weights.size)
        for a, b in zip(reversed(one), reversed(other), strict=True):
            total = rho * total + a * b
        return float(self._mean(total))


def mean_function(
    phi: Formula, sources: Sequence[Source], tolerance: float = FINE, fine: bool = True
) -> Callable[[Numbers], MeanValues]:
    """<phi(y_i) s_j>, <phi(y_i) y_k>, <phi(y_i) phi(y_k)> as a function of R, shape (K, M).

    Exact for polynomials, and of complex R too; else by quadrature rules to a relative tolerance,
    of which those that are ``fine`` have no node of those that are not.
    """
    if phi.coefficients is not None:
        return find_moments(phi, sources).means
    return quadrature(phi, sources, tolerance, fine)


def quadrature(
    phi: Formula, sources: Sequence[Source], tolerance: float = FINE, fine: bool = True
) -> Callable[[Array], MeanValues]:
    """The averages by quadrature, whatever phi is; parameters as in :func:`mean_function`."""
    rules = [source_rule(phi, source, tolerance, fine) for source in sources]
    for rule, source in zip(rules, sources, strict=True):
        with np.errstate(all="ignore"):
            terms = rule.weights * phi.value(rule.points) ** 2
        total = np.sum(terms)
        far = np.sum(np.abs(terms)[rule.weights < 1e-30])
        if not math.isfinite(total) or far > 1e-9 * abs(total):
            raise HdicaError(
                f"the limit does not exist: the average of the squared nonlinearity {phi.text!r} "
                f"over the source {source.label} is infinite (its tails are too heavy)"
            )
    normals = 120 if phi.kinks else normal_rule(phi, tolerance, fine).points.size
    points, weights = product(rules, MOST_PAIRS, normals)
    return _Quadrature(phi, points, weights, tolerance, fine).means
