"""Averages over a source c and a normal e of functions of u = c Q + e sqrt(1 - Q^2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.quadrature import gaussian_nodes, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits.series import adaptive, trimmed

Array = NDArray[np.float64]
NORMAL_ORDER = 200
_EDGE = 9.5
_PANELS = np.linspace(-_EDGE, _EDGE, 20)


@dataclass(frozen=True)
class Averages:
    """What the limit of a projected gradient rule needs of f and the source, for every Q.

    Parameters
    ----------
    gain
        <c f(u)> - Q <f'(u)>, a Chebyshev series in Q; vanishes as Q^2 at 0.
    power
        <f(u)^2>.
    error
        Relative truncation error of the two series.
    """

    gain: Chebyshev
    power: Chebyshev
    error: float


def _mesh(f: Formula, source: Source, q: float, order: int) -> tuple[Array, Array, Array, Array]:
    """c, e, u and weights, each of shape (source nodes, normal nodes)."""
    s = math.sqrt(max(0.0, 1.0 - q * q))
    if not f.kinks:
        normal = gaussian_nodes(order)
        c = np.broadcast_to(
            source.nodes.points[:, None], (source.nodes.points.size, normal.points.size)
        )
        e = np.broadcast_to(normal.points, c.shape)
        return c, e, c * q + e * s, source.nodes.weights[:, None] * normal.weights
    nodes = source.nodes
    if source.broken is not None and q != 0.0:
        width = max(8 * s / abs(q), 1e-6)
        near = {k / q + d for k in f.kinks for d in (-width, 0.0, width)}
        nodes = source.broken(tuple(sorted(near)))
    at_kinks = [(k - nodes.points * q) / max(s, 1e-300) for k in f.kinks]
    rows = np.broadcast_to(_PANELS, (nodes.points.size, _PANELS.size))
    edges = np.sort(np.column_stack([rows, *np.clip(at_kinks, -_EDGE, _EDGE)]), axis=1)
    e, w = panel_nodes(edges, 16)
    w = w * np.exp(-e * e / 2) / math.sqrt(2 * math.pi)
    c = np.broadcast_to(nodes.points[:, None], e.shape)
    return c, e, c * q + e * s, nodes.weights[:, None] * w


def average(
    integrand: Callable[[Array, Array], Array],
    f: Formula,
    source: Source,
    q: float,
    order: int = NORMAL_ORDER,
) -> float:
    """< integrand(c, u) > at overlap ``q``, by quadrature.

    Parameters
    ----------
    integrand
        Vectorised function of c and u.
    f
        The nonlinearity, whose kinks are respected.
    source
        Law of c.
    q
        Overlap in [-1, 1].
    order
        Nodes for the normal variable.

    Raises
    ------
    HdicaError
        If the average is infinite: it is carried by the far tail of the source.
    """
    c, _, u, w = _mesh(f, source, q, order)
    with np.errstate(all="ignore"):
        terms = np.where(w > 0, integrand(c, u) * w, 0.0)
    rows = terms.sum(axis=1)
    total = float(rows.sum())
    mass = w.sum(axis=1)
    far = float(np.abs(rows[mass < 1e-30]).sum())
    if not math.isfinite(total) or far > 1e-9 * float(np.abs(rows).sum()):
        raise HdicaError(
            f"the limit does not exist: an average of nonlinearity {f.text!r} over the source "
            f"{source.label} is infinite (its tails are too heavy)"
        )
    return total


def gain_at(f: Formula, source: Source, q: float, order: int = NORMAL_ORDER) -> float:
    """<c f(u)> - Q <f'(u)> at one overlap, by quadrature."""
    s2 = 1.0 - q * q
    if f.kinks and s2 > 0.0:
        # Stein's identity: <f'(u)> = <e f(u)>/s = <(u - c Q) f(u)>/s^2, jumps included.
        return average(lambda c, u: f.value(u) * (c - q * (u - c * q) / s2), f, source, q, order)
    slope = f.derivative
    return average(lambda c, u: c * f.value(u) - q * slope.value(u), f, source, q, order)


def power_at(f: Formula, source: Source, q: float, order: int = NORMAL_ORDER) -> float:
    """<f(u)^2> at one overlap, by quadrature."""
    return average(lambda c, u: f.value(u) ** 2, f, source, q, order)


def _closed(coefficients: Array, source: Source, extra: int) -> Polynomial:
    """<c^extra p(u)> for a polynomial p, in powers of Q, from the moments of c."""
    total = Polynomial([0.0])
    q, rest = Polynomial([0.0, 1.0]), Polynomial([1.0, 0.0, -1.0])
    for k, a in enumerate(coefficients):
        for pairs in range(k // 2 + 1):
            j = k - 2 * pairs
            if a == 0.0:
                continue
            moment = source.moment(j + extra)
            if not math.isfinite(moment):
                raise HdicaError(
                    f"the limit does not exist: the source {source.label} has no finite moment "
                    f"of order {j + extra}, which the polynomial nonlinearity needs"
                )
            normal = math.prod(range(2 * pairs - 1, 0, -2))
            total = total + a * math.comb(k, j) * normal * moment * q**j * rest**pairs
    return total


def _polynomial(f: Formula, source: Source) -> Averages:
    c = f.coefficients
    assert c is not None
    slope = np.asarray(Polynomial(c).deriv().coef, dtype=float)
    square = np.asarray((Polynomial(c) ** 2).coef, dtype=float)
    gain = _closed(c, source, 1) - Polynomial([0.0, 1.0]) * _closed(slope, source, 0)
    power = _closed(square, source, 0)
    series = [trimmed(p.convert(kind=Chebyshev)) for p in (gain, power)]
    return Averages(series[0], series[1], 2e-16)


def _by_quadrature(f: Formula, source: Source) -> Averages:
    gain, first = _converged(lambda q: gain_at(f, source, q), f, source)
    power, second = _converged(lambda q: power_at(f, source, q), f, source)
    return Averages(gain, power, max(first, second))


def _converged(
    function: Callable[[float], float], f: Formula, source: Source
) -> tuple[Chebyshev, float]:
    series, error = adaptive(function)
    if error > 1e-6:
        raise HdicaError(
            f"the averages of nonlinearity {f.text!r} over the source {source.label} do not "
            f"converge (relative error {error:.1e}); allowed are smoother nonlinearities"
        )
    return series, error


@lru_cache(maxsize=64)
def averages(f: Formula, source: Source) -> Averages:
    """The averages of f and a source for every overlap: closed form if f is a polynomial.

    Raises
    ------
    HdicaError
        If an average is infinite or cannot be found accurately.
    """
    return _polynomial(f, source) if f.coefficients is not None else _by_quadrature(f, source)
