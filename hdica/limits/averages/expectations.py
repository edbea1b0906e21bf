"""Averages over a source c and a normal e of functions of u = c Q + e sqrt(1 - Q^2), for every Q.

The limit needs <c G>, <G_u> and <G^2> of a push G alone. How far one step of n is from its mean,
and what n leaves of order 1/n, need products with up to four factors G: of c, the sample's
component along the feature, e, the normal entry beside it along the estimate, and u.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev, HermiteE, Polynomial
from numpy.polynomial import chebyshev as cheb

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gaussian_nodes
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import (
    Average,
    double_average,
    features,
    outline,
    width_of,
)
from hdica.limits.numerics.series import Fit, Function, Halves, joined, scaled, trimmed, widths_of
from hdica.process.machine import one_thread
from hdica.process.progress import tell

Integrand = Callable[[Array, Array, Array], Sequence[Array]]
WORST = 1e-6
"""Largest error of an average, relative to the average of absolute values, that is accepted."""
MOST_POINTS = 150_000_000
"""Points of all overlaps together from which their number is doubled no more."""
_INFINITE = 1e-9
_GLANCE = 0
"""Points after which panels are halved no more: once over the tails shows what is infinite."""
_ORDER = 200
_ZERO = 20.0
"""Errors within which a function is taken to vanish."""


class Averages(NamedTuple):
    """What the limit of a projected gradient rule needs of f and the source, for every Q.

    ``gain`` is <c f(u)> - Q <f'(u)>, which vanishes as Q^2 at 0, ``power`` is <f(u)^2>: Chebyshev
    series in Q where f is a polynomial, else one on each half. Errors are the largest absolute
    ones; of the gain times sqrt(1 - Q^2) where it is divided by that.
    """

    gain: Chebyshev | Halves
    power: Chebyshev | Halves
    gain_error: float
    power_error: float

    def times(self, factor: float) -> Averages:
        """The same of f times a number."""
        size, square = abs(factor), factor * factor
        return Averages(
            scaled(self.gain, factor),
            scaled(self.power, square),
            size * self.gain_error,
            square * self.power_error,
        )

    def of_batch(self, m: int) -> Averages:
        """The same of the mean of the pushes of m samples at one estimate.

        As n -> infinity two samples of one step are orthogonal but for 1/n, so that the squared
        length of the mean is 1/m of that of one, and its direction on average is the same.
        """
        if m == 1:
            return self
        return self._replace(power=scaled(self.power, 1 / m), power_error=self.power_error / m)


def averaged(integrand: Integrand, f: Formula, source: Source, q: float) -> Average:
    """< h(c, e, u) > for some functions h at overlap ``q``, each with its error.

    ``integrand(c, e, u)`` may be abrupt in u where the nonlinearity f is, and nowhere else.
    """
    result = double_average(integrand, features(f), source.law, q)
    if _is_infinite(result):
        raise _infinite(f, source)
    return result


def _is_infinite(result: Average) -> bool:
    return not np.all(np.isfinite(result.value)) or bool(np.any(result.far > _INFINITE))


@lru_cache(maxsize=256)
def check_finite(f: Formula, source: Source) -> None:
    """Refuse averages that are infinite, at a small part of the cost of computing any.

    The tails that carry them are seen by few points, and are heaviest at Q = 0 or abs(Q) = 1.
    """
    if f.coefficients is not None:
        averages(f, source)
        return
    for q in (0.7, 0.0, 1.0) if source.symmetric else (0.7, -0.7, 0.0, 1.0, -1.0):
        if _is_infinite(double_average(_slopes(f, q), outline(f), source.law, q, _GLANCE)):
            raise _infinite(f, source)


def _infinite(f: Formula, source: Source) -> HdicaError:
    return HdicaError(
        f"the limit does not exist: an average of nonlinearity {f.text!r} over the source "
        f"{source.label} is infinite (its tails are too heavy)"
    )


def average(
    integrand: Callable[[Array, Array], Array], f: Formula, source: Source, q: float
) -> tuple[float, float]:
    """< integrand(c, u) > at overlap ``q`` and its error."""
    return averaged(lambda c, e, u: (integrand(c, u),), f, source, q).single


def polynomial_averages(
    integrands: Callable[[Array, Array], Sequence[Array]],
    f: Formula,
    source: Source,
    q: float,
    order: int = _ORDER,
) -> Array:
    """< h(c, u) > at overlap ``q`` for polynomials of both, by Gauss rules, to rounding.

    All of them in one call, which needs f(u) once. Their degree is below twice the ``order``.
    """
    nodes, normal = source.nodes, gaussian_nodes(order)
    c = np.broadcast_to(nodes.points[:, None], (nodes.points.size, normal.points.size))
    u = c * q + np.broadcast_to(normal.points, c.shape) * math.sqrt(max(0.0, 1.0 - q * q))
    weights = nodes.weights[:, None] * normal.weights
    there, far = weights > 0, weights.sum(axis=1) < 1e-30
    means = []
    with np.errstate(all="ignore"):
        for values in integrands(c, u):
            rows = np.where(there, values * weights, 0.0).sum(axis=1)
            means.append(rows.sum())
            beyond = np.abs(rows[far]).sum() > _INFINITE * np.abs(rows).sum()
            if beyond or not np.isfinite(means[-1]):
                raise _infinite(f, source)
    return np.array(means)


def _slopes(f: Formula, q: float) -> Integrand:
    """The integrands c f(u) - Q f'(u) and f(u)^2; where f is steep, (s c - Q e) f(u), by Stein."""
    if outline(f).steep:
        s = width_of(q)

        def steep(c: Array, e: Array, u: Array) -> tuple[Array, Array]:
            value = f.value(u)
            return (s * c - q * e) * value, value * value

        return steep
    slope = f.derivative

    def plain(c: Array, e: Array, u: Array) -> tuple[Array, Array]:
        value = f.value(u)
        return c * value - q * slope.value(u), value * value

    return plain


@lru_cache(maxsize=256)
def gain_at(f: Formula, source: Source, q: float) -> tuple[float, float]:
    """<c f(u)> - Q <f'(u)> at one overlap, and its error.

    Where f jumps or its slope is unbounded <f'> is <e f>/sqrt(1 - Q^2), jumps included, which is
    infinite or unknown at |Q| = 1.
    """
    value, error = averaged(_slopes(f, q), f, source, q).single
    s = width_of(q) if features(f).steep else 1.0
    return (value / s, error / s) if s > 0.0 else (math.nan, math.inf)


@lru_cache(maxsize=256)
def power_at(f: Formula, source: Source, q: float) -> tuple[float, float]:
    """<f(u)^2> at one overlap, and its error."""
    return average(lambda c, u: f.value(u) ** 2, f, source, q)


def cumulants(source: Source, order: int) -> Array:
    """Cumulants kappa_0 (which is 0) to kappa_order of a source, shape (order + 1,)."""
    m = [source.moment(k) for k in range(order + 1)]
    if not all(math.isfinite(v) for v in m):
        raise HdicaError(
            f"source: {source.label} has no finite moment of order {np.argmax(~np.isfinite(m))}; "
            f"its cumulant of order {order} is needed near R = 0"
        )
    kappa = np.zeros(order + 1)
    for n in range(1, order + 1):
        terms = (math.comb(n - 1, k - 1) * kappa[k] * m[n - k] for k in range(1, n))
        kappa[n] = m[n] - math.fsum(terms)
    return kappa


def mean_derivative(
    phi: Formula, source: Source, overlap: float, order: int
) -> tuple[float, float]:
    """<phi^(order)(y)> for y = R s + sqrt(1 - R^2) z and its error, jumps of phi included.

    By Stein's identity; the overlap R lies inside (-1, 1).
    """
    hermite, scale = HermiteE.basis(order), math.sqrt(1 - overlap * overlap) ** order
    means = averaged(lambda s, z, y: [hermite(z) * phi.value(y)], phi, source, overlap)
    value, error = means.single
    return value / scale, error / scale


def _closed(coefficients: Array, source: Source, extra: int) -> Polynomial:
    """<c^extra p(u)> for a polynomial p, in powers of Q, from the moments of c."""
    total = Polynomial([0.0])
    q, rest = Polynomial([0.0, 1.0]), Polynomial([1.0, 0.0, -1.0])
    for k in np.flatnonzero(coefficients).tolist():
        for pairs in range(k // 2 + 1):
            j = k - 2 * pairs
            moment = source.moment(j + extra)
            if not math.isfinite(moment):
                raise HdicaError(
                    f"the limit does not exist: the source {source.label} has no finite moment "
                    f"of order {j + extra}, which the polynomial nonlinearity needs"
                )
            normal = math.prod(range(2 * pairs - 1, 0, -2))
            weight = coefficients[k] * math.comb(k, j) * normal * moment
            total = total + weight * q**j * rest**pairs
    return total


def _polynomial(f: Formula, source: Source) -> Averages:
    c = f.coefficients
    assert c is not None
    slope = np.asarray(Polynomial(c).deriv().coef, dtype=float)
    square = np.asarray((Polynomial(c) ** 2).coef, dtype=float)
    pull, drop = _closed(c, source, 1), Polynomial([0.0, 1.0]) * _closed(slope, source, 0)
    power = _closed(square, source, 0)
    series = [trimmed(p.convert(kind=Chebyshev)) for p in (pull - drop, power)]
    # In powers of Q more cancels than in the series, and most of <c f> against Q <f'>.
    sizes = [float(np.abs(p.coef).sum()) for p in (pull, drop, power)]
    errors = 4e-16 * (sizes[0] + sizes[1]), 4e-16 * sizes[2]
    return Averages(series[0], series[1], *errors)


def smooth_parts(
    sample: Callable[[float], Integrand],
    f: Formula,
    source: Source,
    orders: Sequence[int] | None,
    goal: float = 1e-13,
    reach: float = 1.0,
) -> list[Fit]:
    """Averages of some functions for every overlap, each as a series in Q/reach with its error.

    ``sample(q)`` is the integrand, ``orders`` say how many factors c each function has, so that it
    is odd or even in Q if the source is symmetric (None for others), ``goal`` is the wanted
    relative accuracy.
    """
    spent = 0

    def at(q: float) -> tuple[Array, Array, Array]:
        nonlocal spent
        parts = averaged(sample(reach * q), f, source, reach * q)
        spent += parts.points
        tell(lambda: f"averages of {f.text} over {source.label}: {spent:,} points")
        return parts.value, parts.error, parts.size

    parities = None
    if orders is not None and source.symmetric:
        parities = tuple(-1 if k % 2 else 1 for k in orders)
    parts = joined(at, parities, goal, enough=lambda: spent > MOST_POINTS)
    for part in parts:
        if part.error > max(WORST, 100 * goal) * part.size:
            raise HdicaError(
                f"the averages of nonlinearity {f.text!r} over the source {source.label} are known "
                f"no better than to {part.error / part.size:.1e} after as much refinement as is "
                f"allowed (at least {WORST:.0e} is needed: choose a nonlinearity with fewer "
                "oscillations or a source with lighter tails)"
            )
    return parts


@lru_cache(maxsize=64)
def averages(f: Formula, source: Source) -> Averages:
    """The averages of f and a source for every overlap: closed form if f is a polynomial."""
    if f.coefficients is not None:
        return _polynomial(f, source)
    gain, power = smooth_parts(lambda q: _slopes(f, q), f, source, (1, 0))
    pull = gain.function
    if max(float(np.abs(s).sum()) for s in (pull.below, pull.above)) <= _ZERO * gain.error:
        # Nothing is learned: a gain of rounding alone would have fixed points of its own.
        pull = Halves(np.zeros(1), np.zeros(1))
    # E c = 0 and E c^2 = 1 make the gain vanish faster than Q; what is there is an error.
    lost = float(np.abs(pull(np.array([-1e-300, 0.0]))).max())
    pull = replace(pull.with_zero(1), over=1 if features(f).steep else 0)
    return Averages(pull, power.function, gain.error + lost, power.error)


_GOAL = 1e-9
_FACTORS_C = (1, 0, 0, 0, 2, 1, 0, 0, 1, 0, 0)
"""How many factors c each product has: its parity in Q for a symmetric source."""
_E, _ROUNDING = 2, 1e-14


class Products(NamedTuple):
    """Averages at some overlaps, arrays of the shape of Q; g is the push G."""

    c: Array
    u: Array
    e: Array
    gg: Array
    ggcc: Array
    ggcu: Array
    gguu: Array
    ggee: Array
    gggc: Array
    gggu: Array
    gggg: Array


ProductsAt = Callable[[Array], Products]


def _integrands(g: Array, c: Array, e: Array, u: Array) -> list[Array]:
    square = g * g
    cube = square * g
    first = [g * c, g * u, g * e, square]
    second = [square * c * c, square * c * u, square * u * u, square * e * e]
    return [*first, *second, cube * c, cube * u, square * square]


def _products_of_polynomial(f: Formula, source: Source) -> list[Function]:
    """G = -f(u) for a polynomial f: the averages are polynomials in Q, <e G> over sqrt(1 - Q^2)."""
    assert f.coefficients is not None
    degree = 4 * f.coefficients.size  # that of the averages is no higher
    points = cheb.chebpts1(degree + 1)

    def each(q: float) -> Array:
        s = width_of(q)
        means = polynomial_averages(
            lambda c, u: _integrands(-f.value(u), c, (u - q * c) / s, u), f, source, q
        )
        means[_E] /= s
        return means

    with one_thread():
        rows = np.ascontiguousarray(np.transpose([each(q) for q in points.tolist()]))
        series = 2 / (degree + 1) * (rows @ cheb.chebvander(points, degree))
    series[:, 0] /= 2
    return [trimmed(Chebyshev(row), _ROUNDING) for row in series]


@lru_cache(maxsize=64)
def products_of(push: Formula | Push, source: Source) -> ProductsAt:
    """The averages of G = -f(u) of a descent along f, or of a push G(u, c), over a source.

    Refused if one of them is infinite, or not resolved by as much refinement as is allowed.
    """
    if isinstance(push, Formula) and push.coefficients is not None:
        functions = _products_of_polynomial(push, source)

        def closed(q: Array) -> Products:
            products = Products(*(one(q) for one in functions))
            return products._replace(e=products.e * widths_of(q))

        return closed

    def sample(q: float) -> Integrand:
        def integrand(c: Array, e: Array, u: Array) -> list[Array]:
            g = -push.value(u) if isinstance(push, Formula) else push.value(u, c)
            return _integrands(g, c, e, u)

        return integrand

    f, orders = (push, _FACTORS_C) if isinstance(push, Formula) else (parse_formula("x"), None)
    parts = smooth_parts(sample, f, source, orders, _GOAL)
    return lambda q: Products(*(part.function(q) for part in parts))


def normal_products(variance: Array | float, q: Array) -> Products:
    """The averages of G = u where c is normal with a variance 1 + omega: Oja's rule."""
    v, rest = np.asarray(variance, dtype=float), 1 - q * q
    s, cu = v * q * q + rest, v * q
    return Products(
        c=cu,
        u=s,
        e=np.sqrt(np.maximum(rest, 0.0)) * np.ones_like(s),
        gg=s,
        ggcc=s * v + 2 * cu**2,
        ggcu=3 * s * cu,
        gguu=3 * s**2,
        ggee=s + 2 * rest,
        gggc=3 * s * cu,
        gggu=3 * s**2,
        gggg=3 * s**2,
    )
