"""Averages of products of a push G with what is random in one sample, for every overlap.

The limit needs <c G>, <G_u> and <G^2> alone. How far one step of n is from its mean, and what n
leaves of order 1/n, need products with up to four factors G: of c, the sample's component along the
feature, e, the normal entry beside it along the estimate, and u = Q c + e sqrt(1 - Q^2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.pushes import Push
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import polynomial_averages, smooth_parts
from hdica.limits.numerics.packed import Function
from hdica.limits.numerics.series import trimmed
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
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


def _integrand(g: Array, c: Array, e: Array, u: Array) -> list[Array]:
    square = g * g
    cube = square * g
    first = [g * c, g * u, g * e, square]
    second = [square * c * c, square * c * u, square * u * u, square * e * e]
    return [*first, *second, cube * c, cube * u, square * square]


def _width(q: Array | float) -> Array:
    return np.sqrt(np.maximum((1.0 - np.asarray(q)) * (1.0 + np.asarray(q)), 0.0))


def _of_polynomial(f: Formula, source: Source) -> list[Function]:
    """G = -f(u) for a polynomial f: the averages are polynomials in Q, <e G> over sqrt(1 - Q^2)."""
    assert f.coefficients is not None
    degree = 4 * f.coefficients.size  # that of the averages is no higher
    points = cheb.chebpts1(degree + 1)

    def each(q: float) -> Array:
        s = float(_width(q))

        def integrands(c: Array, u: Array) -> list[Array]:
            return _integrand(-f.value(u), c, (u - q * c) / s, u)

        found = polynomial_averages(integrands, f, source, q)
        found[_E] /= s
        return found

    with one_thread():
        rows = np.ascontiguousarray(np.transpose([each(q) for q in points.tolist()]))
        series = 2 / (degree + 1) * (rows @ cheb.chebvander(points, degree))
    series[:, 0] /= 2
    return [trimmed(Chebyshev(row), _ROUNDING) for row in series]


def _by_quadrature(push: Formula | Push, source: Source) -> list[Function]:
    plain = isinstance(push, Formula)

    def sample(q: float) -> Callable[[Array, Array, Array], list[Array]]:
        def integrand(c: Array, e: Array, u: Array) -> list[Array]:
            g = -push.value(u) if isinstance(push, Formula) else push.value(u, c)
            return _integrand(g, c, e, u)

        return integrand

    shape = push if isinstance(push, Formula) else parse_formula("x")
    found = smooth_parts(sample, shape, source, _FACTORS_C if plain else None, _GOAL)
    return [one.function for one in found]


@lru_cache(maxsize=64)
def products_of(push: Formula | Push, source: Source) -> ProductsAt:
    """The averages of G = -f(u) of a descent along f, or of a push G(u, c), over a source.

    Raises
    ------
    HdicaError
        If one of them is infinite, or not found by as much refinement as is allowed.
    """
    if isinstance(push, Formula) and push.coefficients is not None:
        functions, closed = _of_polynomial(push, source), True
    else:
        functions, closed = _by_quadrature(push, source), False

    def at(q: Array) -> Products:
        found = Products(*(np.asarray(one(q), dtype=float) for one in functions))
        return found._replace(e=found.e * _width(q)) if closed else found

    return at


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
