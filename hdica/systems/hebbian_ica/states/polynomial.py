"""Right-hand side of (17) for polynomial phi at many R at once, with its derivative and a majorant.

As W'W = I, the covariance of y is I, and R enters the law of y through the joint cumulants of third
and higher order alone: those of y_i (a times) and y_k (b times) are sum_j kappa_{a+b,j} R_ij^a
R_kj^b. With phi_n = phi^(n)(y_i) and Stein's identity to all orders,

    A_ij = <phi(y_i) s_j> - R_ij <phi'(y_i)> = sum_{n>1} kappa_{n+1,j} R_ij^n <phi_n> / n!,
    dR/dt / mu = Sigma A - H R,   H = (Sigma A R' + R A' Sigma + mu Sigma <phi phi'> Sigma) / 2.

Arrays have the R of a batch along their last axis, so that every operation runs over memory in
order and each R has the bits that it has alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hdica.systems.hebbian_ica.limit.equation_17 import Field
from hdica.systems.hebbian_ica.limit.moments import Array, find_moments

_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Polynomial:
    """(17) over mu, as a polynomial of R."""

    sigma: Array  # signs of the projections, shape (K,)
    mu: float
    slopes: Array  # p! times the coefficient of x^p in phi^(n) at [n, p], shape (d + 1, d + 1)
    squares: Array  # the same of phi^2, shape (2d + 1, 2d + 1)
    cumulants: Array  # kappa_{p,j} of source j at [p, j], 0 for p < 3, shape (2d + 1, M)
    drag: float = -1.0  # sign of the second term: -1, or 1 in a majorant

    @property
    def shape(self) -> tuple[int, int]:
        """Projections K and sources M."""
        return self.sigma.size, self.cumulants.shape[1]

    @property
    def majorant(self) -> Polynomial:
        """A polynomial whose coefficients are at least the absolute values of this one's."""
        sizes = {k: np.abs(getattr(self, k)) for k in ("sigma", "slopes", "squares", "cumulants")}
        return replace(self, drag=1.0, **sizes)


def polynomial(field: Field, mu: float) -> Polynomial:
    """(17) at a constant ``mu`` for a field whose phi is a polynomial."""
    known = find_moments(field.phi, field.sources)
    c = known.coefficients
    square = np.zeros(2 * c.size - 1)
    for p, one in enumerate(c):
        square[p : p + c.size] += one * c
    size = square.size
    cumulants = np.array([_cumulants(m[:size]) for m in known.moments]).T.copy()
    return Polynomial(field.sigma, mu, _slopes(c), _slopes(square), cumulants)


def _slopes(coefficients: Array) -> Array:
    """Of each derivative, p! times the coefficient of x^p: (n + p)! times that of phi."""
    size = coefficients.size
    table = np.zeros((size, size))
    weighted = coefficients * np.array([float(math.factorial(p)) for p in range(size)])
    for n in range(size):
        table[n, : size - n] = weighted[n:]
    return table


def _cumulants(moments: Array) -> Array:
    """Cumulants from the third on of a law of mean 0 and variance 1, from its moments."""
    full, sizes = np.zeros(moments.size), np.zeros(moments.size)
    for n in range(1, moments.size):
        terms = [math.comb(n - 1, k - 1) * full[k] * moments[n - k] for k in range(1, n)]
        full[n] = moments[n] - sum(terms)
        sizes[n] = abs(moments[n]) + sum(abs(one) for one in terms)
    full[:3] = 0.0
    # What rounding leaves of a cumulant that vanishes would break the symmetries of the source.
    return np.where(np.abs(full) <= _ROUNDING * sizes, 0.0, full)


def rates(poly: Polynomial, r: Array) -> Array:
    """(17) over mu at a batch of R, shapes (K, M, B)."""
    return _terms(poly, r).rates


def rates_and_slopes(poly: Polynomial, r: Array) -> tuple[Array, Array]:
    """The same and its derivative: d(F_ij)/dR_kl at ``[i, j, k, l]``, shape (K, M, K, M, B)."""
    t, (k, m) = _terms(poly, r), poly.shape
    gain = _gain_slopes(t)
    push = _push_slopes(t, gain)
    out = np.zeros((k, m, k, m, r.shape[2]))
    for i in range(k):
        out[i, :, i] += poly.sigma[i] * gain[i]
        for j in range(m):
            for other in range(k):
                out[i, j, other, j] += poly.drag * t.push[i, other]
                # R_i is in every H_io of its own row, R_other in H_io alone.
                out[i, j, i] += poly.drag * push[i, other] * r[other, j]
                if other != i:
                    out[i, j, other] += poly.drag * push[other, i] * r[other, j]
    return t.rates, out


@dataclass(frozen=True, eq=False)
class _Terms:
    """What (17) and its derivative need at a batch of R."""

    poly: Polynomial
    r: Array  # shape (K, M, B)
    powers: Array  # R^p / p! for p = 0 ... 2d, shape (2d + 1, K, M, B)
    moments: Array  # E y_i^p / p!, shape (2d + 1, K, B)
    slopes: Array  # <phi^(n)(y_i)>, shape (d + 1, K, B)
    # <phi^(a)(y_i) phi^(b)(y_k)> by (i, k) with i < k, shape (d + 1, d + 1, B).
    pairs: dict[tuple[int, int], Array]
    gain: Array  # A, shape (K, M, B)
    push: Array  # H, shape (K, K, B)

    @property
    def rates(self) -> Array:
        """Sigma A - H R."""
        pull = np.sum(self.push[:, :, None] * self.r[None], axis=1)
        return np.asarray(self.poly.sigma[:, None, None] * self.gain + self.poly.drag * pull)


def _terms(poly: Polynomial, r: Array) -> _Terms:
    size, degree = poly.squares.shape[0], poly.slopes.shape[0]
    powers = np.ones((size, *r.shape))
    for p in range(1, size):
        powers[p] = powers[p - 1] * r / p
    moments = _moments(poly, powers)
    slopes = _combine(poly.slopes, moments[:degree])
    gain = np.zeros(r.shape)
    for n in range(2, min(degree, size - 1)):
        gain += poly.cumulants[n + 1][:, None] * powers[n] * slopes[n][:, None]
    pairs = _pairs(poly, powers, moments)
    push = _push(poly, r, gain, moments, pairs)
    return _Terms(poly, r, powers, moments, slopes, pairs, gain, push)


def _moments(poly: Polynomial, powers: Array) -> Array:
    """E y_i^p / p!: the series exp(u^2/2 + sum of cumulants), from its logarithmic derivative."""
    size, k, _, batch = powers.shape
    weights = np.zeros((size, k, batch))
    for n in range(3, size):
        weights[n] = n * np.sum(poly.cumulants[n][:, None] * powers[n], axis=1)
    found = np.zeros((size, k, batch))
    found[0] = 1.0
    for p in range(2, size):
        total = found[p - 2].copy()
        for n in range(3, p + 1):
            total += weights[n] * found[p - n]
        found[p] = total / p
    return found


def _pairs(poly: Polynomial, powers: Array, moments: Array) -> dict[tuple[int, int], Array]:
    found = {}
    for k in range(powers.shape[1]):
        for i in range(k):
            half = _combine(poly.slopes, _joint(poly, powers, moments, i, k))
            found[i, k] = _combine(poly.slopes, half.swapaxes(0, 1)).swapaxes(0, 1)
    return found


def _joint(poly: Polynomial, powers: Array, moments: Array, i: int, k: int) -> Array:
    """E y_i^p y_k^q / (p! q!) for p, q <= d, from the derivative of the series in the first."""
    size, batch = poly.slopes.shape[0], powers.shape[3]
    found = np.zeros((size, size, batch))
    found[0] = moments[:size, k]
    weights = {}
    for a, b in _orders(poly):
        both = poly.cumulants[a + b][:, None] * powers[a, i] * powers[b, k]
        weights[a, b] = a * np.sum(both, axis=0)
    for p in range(1, size):
        for q in range(size):
            total = found[p - 2, q].copy() if p > 1 else np.zeros(batch)
            for (a, b), weight in weights.items():
                if a <= p and b <= q:
                    total += weight * found[p - a, q - b]
            found[p, q] = total / p
    return found


def _orders(poly: Polynomial) -> list[tuple[int, int]]:
    """Orders a > 0 and b of the joint cumulants that are not zero for all sources."""
    size = poly.slopes.shape[0]
    every = ((a, b) for a in range(1, size) for b in range(size) if a + b > 2)
    return [(a, b) for a, b in every if np.any(poly.cumulants[a + b])]


def _push(
    poly: Polynomial, r: Array, gain: Array, moments: Array, pairs: dict[tuple[int, int], Array]
) -> Array:
    k, sigma = r.shape[0], poly.sigma
    squared = _combine(poly.squares[:1], moments)[0]
    out = np.zeros((k, k, r.shape[2]))
    for i in range(k):
        for other in range(i + 1):
            one = sigma[i] * np.sum(gain[i] * r[other], axis=0)
            two = sigma[other] * np.sum(gain[other] * r[i], axis=0)
            noise = squared[i] if i == other else pairs[other, i][0, 0]
            loss = poly.mu * sigma[i] * sigma[other] * noise
            out[i, other] = out[other, i] = (one + two + loss) / 2
    return out


def _gain_slopes(t: _Terms) -> Array:
    """dA_ij/dR_il at ``[i, j, l]``: A_ij depends on no other row of R."""
    size, degree, cumulants = t.powers.shape[0], t.slopes.shape[0], t.poly.cumulants[:, :, None]
    k, m, batch = t.r.shape
    out = np.zeros((k, m, m, batch))
    for n in range(2, min(degree, size - 1)):
        own = cumulants[n + 1] * t.powers[n - 1] * t.slopes[n][:, None]
        for j in range(m):
            out[:, j, j] += own[:, j]
        inner = np.zeros((k, m, batch))
        for p in range(3, degree - n):
            inner += cumulants[p] * t.powers[p - 1] * t.slopes[n + p][:, None]
        if degree - n > 3:
            out += (cumulants[n + 1] * t.powers[n])[:, :, None] * inner[:, None]
    return out


def _push_slopes(t: _Terms, gain_slopes: Array) -> Array:
    """dH_io/dR_il at ``[i, o, l]``, with R_o held for o != i; shape (K, K, M, B)."""
    k, m, batch = t.r.shape
    sigma, orders = t.poly.sigma, _orders(t.poly)
    out = np.zeros((k, k, m, batch))
    for i in range(k):
        for other in range(k):
            inner = np.sum(gain_slopes[i] * t.r[other][:, None], axis=0)
            both = sigma[i] * inner + sigma[other] * t.gain[other]
            if i == other:
                both, noise = 2 * both, _square_slope(t, i)
            else:
                noise = _pair_slope(t, i, other, orders)
            out[i, other] = (both + t.poly.mu * sigma[i] * sigma[other] * noise) / 2
    return out


def _square_slope(t: _Terms, i: int) -> Array:
    """d<phi(y_i)^2>/dR_il, shape (M, B)."""
    slopes = _combine(t.poly.squares, t.moments[:, i])
    total = np.zeros(t.r.shape[1:])
    for p in range(3, slopes.shape[0]):
        total += t.poly.cumulants[p][:, None] * t.powers[p - 1, i] * slopes[p]
    return total


def _pair_slope(t: _Terms, i: int, other: int, orders: list[tuple[int, int]]) -> Array:
    """d<phi(y_i) phi(y_o)>/dR_il, shape (M, B)."""
    pair = t.pairs[min(i, other), max(i, other)]
    pair = pair if i < other else pair.swapaxes(0, 1)
    total = np.zeros(t.r.shape[1:])
    for a, b in orders:
        kappa = t.poly.cumulants[a + b][:, None]
        total += kappa * t.powers[a - 1, i] * t.powers[b, other] * pair[a, b]
    return total


def _combine(table: Array, values: Array) -> Array:
    """sum_p table[n, p] values[p] along the first axis, without the zeros of the table."""
    out = np.zeros((table.shape[0], *values.shape[1:]))
    for n, p in np.argwhere(table):
        out[n] += table[n, p] * values[p]
    return out
