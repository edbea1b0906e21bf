"""Averages <phi(y_i) s_j>, <phi(y_i) y_k>, <phi(y_i) phi(y_k)> for y = R s + z, z ~ N(0, I - RR').

Rattray 2002, eq. (16). Closed forms if phi is a polynomial, else quadrature over the M sources
and one normal variable: Stein's identity gives <phi(y_i) z_k>, and Mehler's formula the average
of phi(y_i) phi(y_k) over two correlated normals from the Hermite coefficients of either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.systems.hebbian_ica.limit.moments import Array, Numbers, find_moments
from hdica.systems.hebbian_ica.limit.nodes import normal_panels, normal_rule, product, source_rule

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
        rest = np.eye(projections) - np.sum(r[:, None] * r, axis=2)
        scale = np.sqrt(np.maximum(np.diagonal(rest), 0.0))
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        correlation = np.clip(rest * inverse[:, None] * inverse, -1.0, 1.0)
        inside = [np.sum(self.points * row, axis=1) for row in r]
        terms = self._terms(correlation)
        series = [self._hermite(u, c, terms) for u, c in zip(inside, scale, strict=True)]
        level = [self._mean(coefficients[0][:, None] * self.points) for coefficients, _ in series]
        phi_s = np.where(r == 0.0, 0.0, np.array(level))
        # <phi(y_i) z_k> = C_ik <phi'(y_i)> = (C_ik / c_i) <g phi(u + c_i g)>: no slope of phi.
        first = np.array([float(self._mean(coefficients[1])) for coefficients, _ in series])
        phi_y = np.sum(phi_s[:, None] * r, axis=2) + rest * (inverse * first)[:, None]
        phi_phi = np.diag([float(self._mean(square)) for _, square in series])
        for i in range(projections):
            for k in range(i):
                rho = float(correlation[i, k])
                phi_phi[i, k] = phi_phi[k, i] = self._pair(series[i][0], series[k][0], rho)
        return phi_s, phi_y, phi_phi

    def _mean(self, values: Array) -> Array:
        shape = (-1,) + (1,) * (values.ndim - 1)
        return np.asarray(np.sum(self.weights.reshape(shape) * values, axis=0))

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

    def _normals(self, inside: Array, scale: float) -> tuple[Array, Array]:
        """Points and weights of the normal variable g, cut where u + c g meets a kink."""
        if not self.phi.kinks:
            rule = normal_rule(self.phi, self.tolerance, self.fine)
            return rule.points[None], rule.weights[None]
        return normal_panels(self.phi.kinks, inside, scale, 12 if self.fine else 9)

    def _hermite(self, inside: Array, scale: float, terms: int) -> tuple[list[Array], Array]:
        """<phi(u + c g) He_n(g)> / sqrt(n!) for n < terms, and <phi(u + c g)^2>, at every u."""
        g, w = self._normals(inside, scale)
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
    """The averages as a function of R, shape (K, M); of complex R too if phi is a polynomial.

    It returns <phi(y_i) s_j>, <phi(y_i) y_k>, <phi(y_i) phi(y_k)>. The tolerance is relative, of
    quadrature rules; polynomials are exact. The rules that are ``fine`` and those that are not
    have no node in common.
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
        total = float(np.sum(terms))
        far = float(np.sum(np.abs(terms)[rule.weights < 1e-30]))
        if not math.isfinite(total) or far > 1e-9 * abs(total):
            raise HdicaError(
                f"the limit does not exist: the average of the squared nonlinearity {phi.text!r} "
                f"over the source {source.label} is infinite (its tails are too heavy)"
            )
    normals = 120 if phi.kinks else normal_rule(phi, tolerance, fine).points.size
    points, weights = product(rules, MOST_PAIRS, normals)
    return _Quadrature(phi, points, weights, tolerance, fine).means
