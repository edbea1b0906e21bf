"""Reference escape times of Hebbian ICA from R = 0: mean first passages by nested quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import HermiteE, legendre
from numpy.typing import NDArray
from scipy.special import gammaln

from tests.bars.averages import integrate, kernel, law_averages, normal_average, outer_edges
from tests.bars.functions import Function
from tests.bars.laws import LawOf
from tests.bars.tables import Table

Array = NDArray[np.float64]
_ORDER, _TERMS = 16, 30
_X, _W = legendre.leggauss(_ORDER)


def near_zero(f: Function, law: LawOf) -> tuple[float, float, float]:
    """P = <f(z)**2>, kappa4 <f'''(z)> by Stein's identity, and the larger relative error."""

    def both(z: Array) -> Array:
        value = f.value(z)
        return np.array([value * value, (z**3 - 3 * z) * value])

    (power, third), error = normal_average(both, f)
    return power, law.kappa4 * third, float(error[0] / power + error[1] / abs(third))


def _panels(edges: Array) -> tuple[Array, Array]:
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (_X + 1)).ravel(), (half * _W).ravel()


def scaled_time(g: float) -> float:
    """F(g) = 2 int_0^inf dy int_0^y dx exp(S(x) - S(y)), S = -r**2/2 + g r**4/2."""
    summit = 1 / math.sqrt(2 * g)
    near = np.linspace(0.0, 4 * summit + 4, int(40 * (summit + 1)))
    count = max(1, math.ceil(math.log((1e17 / g) ** 0.25 / near[-1]) / math.log(1.5)))
    edges = np.concatenate([near, near[-1] * 1.5 ** np.arange(1, count + 1)])
    y, weights = _panels(edges)
    shares, mass = _panels(np.concatenate([[0.0], 2.0 ** np.arange(-62.0, 1.0)]))
    v = y[:, None] * shares
    x = y[:, None] - v
    exponent = v * (2 * y[:, None] - v) / 2 * (1 - g * (x * x + y[:, None] ** 2))
    inner = y * np.sum(np.exp(exponent) * mass, axis=1)
    # Beyond the last edge the inner integral is 1/(2 b) to rounding.
    return float(2 * np.sum(weights * inner)) - math.log1p(-1 / (2 * g * edges[-1] ** 2))


def _hermite_learning(f: Function, law: LawOf) -> Callable[[float], tuple[float, float]]:
    """<(s - R y) f>/R**2 by (1 - R**2) sum_k R**k <He_k f(z)> <He_k+1(s)>/k!, and its error.

    It keeps its digits where R tends to 0: Mehler's expansion of f, with <s He_k> = <He_k+1> +
    k <He_k-1>.
    """
    basis = [HermiteE.basis(k) for k in range(_TERMS + 2)]
    given = np.array([float(b) for b in law_averages(law, lambda c: [h(c) for h in basis])])
    mean, off = normal_average(lambda z: np.array([h(z) for h in basis[:-1]]) * f.value(z), f)
    # E s = 0, E s**2 = 1, and h_4 = kappa_4, are known better than by quadrature.
    given[2:5] = 0.0, law.kappa3, law.kappa4
    k = np.arange(_TERMS + 1)
    factor = np.exp(-gammaln(k + 1.0))

    def at(q: float) -> tuple[float, float]:
        terms = factor * mean * given[1:] * q ** (k - 2.0)
        tail = np.abs(terms[2:])
        stop = int(np.argmin(tail[2:] + tail[1:-1])) + 4
        doubt = np.sum((factor * off * np.abs(given[1:]) * abs(q) ** (k - 2.0))[2:stop])
        return (1 - q * q) * math.fsum(terms[2:stop]), doubt + 4 * tail[stop - 3 : stop - 1].sum()

    return at


def one_step_table(f: Function, law: LawOf) -> Table:
    """Averages of one step over f and a source, as the rule with y = R s + e sqrt(1 - R**2) needs.

    <(s - R y) f>/R**2, <f**2>, <f**2 (R (s**2 + e**2 - 2) - 3 R y**2 + 2 s y)> and
    <f**2 (s - R y)**2>.
    """
    near = _hermite_learning(f, law)

    def sample(q: float) -> tuple[Array, Array]:
        width = math.sqrt((1 - q) * (1 + q))

        def weigh(c: Array, e: Array, u: Array) -> tuple[Array, ...]:
            rest = width * (width * c - q * e)
            return rest, np.ones_like(e), q * (c * c + e * e - 2 - 3 * u * u) + 2 * c * u, rest**2

        inner = kernel(law, q, weigh)

        def values(u: Array) -> Array:
            rows, known = inner(u), f.value(u)
            return rows * np.stack([known, known**2, known**2, known**2])

        def least(sizes: Array) -> Array:
            return np.array([width * math.sqrt(sizes[1]), 0.0, 0.0, 0.0])

        total, error, scale = integrate(values, outer_edges(f, law, q, width), least)
        error = error + 4e-16 * np.maximum(scale, least(scale))
        total[0], error[0] = total[0] / q**2, error[0] / q**2
        known = near(q)
        if known[1] < error[0]:
            total[0], error[0] = known
        return total, error

    return Table(sample, (-1, 1, -1, 1) if law.symmetric else None)


def _running() -> Array:
    """Integrals from -1 to every Gauss point of the polynomials through the Gauss points."""
    vander = legendre.legvander(_X, _ORDER - 1)
    series = np.linalg.inv(vander)
    return np.array([legendre.legval(_X, legendre.legint(row, lbnd=-1)) for row in series.T]).T


_RUNNING = _running()


def _moments(
    table: Callable[[float], Array], edges: Array, n: int, nu: float, sigma: int
) -> tuple[Array, Array, Array]:
    """Half widths of panels of R, and drift and variance of one step at their Gauss points."""
    eta, half = nu / n**2, np.diff(edges) / 2
    r = edges[:-1, None] + half[:, None] * (_X + 1)
    learning, power, rest, noise = np.array([table(q) for q in r.ravel()]).T.reshape(4, *r.shape)
    drift = eta * sigma * r**2 * learning - eta**2 / 2 * (n * r * power + rest)
    return half, drift, eta**2 * noise


def finite_time(
    table: Callable[[float], Array],
    n: int,
    nu: float,
    sigma: int,
    start: float,
    high: float,
    panels: int = 60,
) -> float:
    """Mean steps until |R| passes ``high``, over n**3: from the drift and variance of one step."""
    edges = np.unique([*np.linspace(0.0, high, panels), start])
    half, drift, variance = _moments(table, edges, n, nu, sigma)
    # exp(S) changes little on a panel, so that Gauss points resolve it.
    change = np.max(np.abs(2 * drift / variance), axis=1) * 2 * half
    pieces = np.ceil(change / 3).astype(int) + 1
    parts = [np.linspace(*edges[k : k + 2], m + 1)[:-1] for k, m in enumerate(pieces)]
    edges = np.concatenate([*parts, [high]])
    half, drift, variance = _moments(table, edges, n, nu, sigma)
    slope, held, total = 2 * drift / variance, 0.0, 0.0
    for k, width in enumerate(half):
        s, end = width * (_RUNNING @ slope[k]), width * float(_W @ slope[k])
        source = 2 * np.exp(s) / variance[k]
        if edges[k] >= start:
            total += width * float(_W @ (np.exp(-s) * (held + width * (_RUNNING @ source))))
        held = math.exp(-end) * (held + width * float(_W @ source))
    return total / n**3
