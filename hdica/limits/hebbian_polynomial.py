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
from numpy.typing import NDArray

from hdica.limits.hebbian import Field
from hdica.limits.hebbian_moments import find_moments

Array = NDArray[np.float64]
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Polynomial:
    """(17) over mu, as a polynomial of R.

    Parameters
    ----------
    sigma
        Signs of the projections, shape (K,).
    mu
        Constant learning rate.
    slopes
        Coefficient of x^p in phi^(n), times p!, at ``[n, p]``, shape (d + 1, d + 1).
    squares
        The same of phi^2, shape (2d + 1, 2d + 1).
    cumulants
        kappa_{p,j} of source j at ``[p, j]`` for p = 0 ... 2d; 0 for p < 3, shape (2d + 1, M).
    drag
        Sign of the second term of the right-hand side: -1, or 1 in a majorant.
    """

    sigma: Array
    mu: float
    slopes: Array
    squares: Array
    cumulants: Array
    drag: float = -1.0

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
    terms = _Terms(poly, r)
    return np.asarray(poly.sigma[:, None, None] * terms.gain + poly.drag * terms.pull())


def rates_and_slopes(poly: Polynomial, r: Array) -> tuple[Array, Array]:
    """The same and its derivative: d(F_ij)/dR_kl at ``[i, j, k, l]``, shape (K, M, K, M, B)."""
    terms, sigma = _Terms(poly, r), poly.sigma[:, None, None]
    k, m = poly.shape
    gain, inner = terms.gain_slopes(), terms.push_slopes()
    out = np.zeros((k, m, k, m, r.shape[2]))
    for i in range(k):
        out[i, :, i] += poly.sigma[i] * gain[i]
        for j in range(m):
            for other in range(k):
                out[i, j, other, j] += poly.drag * terms.push[i, other]
                # R_i is in every H_io of its own row, R_other in H_io alone.
                out[i, j, i] += poly.drag * inner[i, other] * r[other, j]
                if other != i:
                    out[i, j, other] += poly.drag * inner[other, i] * r[other, j]
    return np.asarray(sigma * terms.gain + poly.drag * terms.pull()), out


class _Terms:
    """A, H and what their derivatives need, at a batch of R."""

    def __init__(self, poly: Polynomial, r: Array) -> None:
        self.poly, self.r = poly, r
        size = poly.squares.shape[0]
        factorial = np.array([float(math.factorial(p)) for p in range(size)])
        self.powers = np.ones((size, *r.shape))
        for p in range(1, size):
            self.powers[p] = self.powers[p - 1] * r
        self.powers /= factorial[:, None, None, None]
        self.moments = self._moments()
        degree = poly.slopes.shape[0]
        self.slopes = _combine(poly.slopes, self.moments[:degree])
        self.gain = np.zeros(r.shape)
        for n in range(2, degree):
            one = poly.cumulants[n + 1] if n + 1 < size else np.zeros(r.shape[1])
            self.gain += one[:, None] * self.powers[n] * self.slopes[n][:, None]
        self.pairs = self._pairs()
        self.push = self._push()

    def _moments(self) -> Array:
        """E y_i^p / p!, shape (2d + 1, K, B): of the series exp(u^2/2 + cumulants)."""
        size, k, batch = self.poly.squares.shape[0], self.r.shape[0], self.r.shape[2]
        weights = np.zeros((size, k, batch))
        for n in range(3, size):
            weights[n] = n * np.sum(self.poly.cumulants[n][:, None] * self.powers[n], axis=1)
        found = np.zeros((size, k, batch))
        found[0] = 1.0
        for p in range(2, size):
            total = found[p - 2].copy()
            for n in range(3, p + 1):
                total += weights[n] * found[p - n]
            found[p] = total / p
        return found

    def _pairs(self) -> dict[tuple[int, int], Array]:
        """<phi^(a)(y_i) phi^(b)(y_k)> for i < k, shape (d + 1, d + 1, B)."""
        found = {}
        for k in range(self.r.shape[0]):
            for i in range(k):
                joint = self._joint(i, k)
                half = _combine(self.poly.slopes, joint)
                found[i, k] = _combine(self.poly.slopes, half.swapaxes(0, 1)).swapaxes(0, 1)
        return found

    def _joint(self, i: int, k: int) -> Array:
        """E y_i^p y_k^q / (p! q!) for p, q <= d."""
        size = self.poly.slopes.shape[0]
        found = np.zeros((size, size, self.r.shape[2]))
        found[0] = self.moments[:size, k]
        weights = {}
        for a in range(1, size):
            for b in range(size):
                if a + b > 2 and np.any(self.poly.cumulants[a + b]):
                    kappa = self.poly.cumulants[a + b][:, None]
                    both = kappa * self.powers[a, i] * self.powers[b, k]
                    weights[a, b] = a * np.sum(both, axis=0)
        for p in range(1, size):
            for q in range(size):
                total = found[p - 2, q].copy() if p > 1 else np.zeros(self.r.shape[2])
                for (a, b), weight in weights.items():
                    if a <= p and b <= q:
                        total += weight * found[p - a, q - b]
                found[p, q] = total / p
        return found

    def _push(self) -> Array:
        """H, shape (K, K, B)."""
        k, sigma = self.r.shape[0], self.poly.sigma
        squared = _combine(self.poly.squares[:1], self.moments)[0]
        out = np.zeros((k, k, self.r.shape[2]))
        for i in range(k):
            for other in range(i + 1):
                one = sigma[i] * np.sum(self.gain[i] * self.r[other], axis=0)
                two = sigma[other] * np.sum(self.gain[other] * self.r[i], axis=0)
                noise = squared[i] if i == other else self.pairs[other, i][0, 0]
                loss = self.poly.mu * sigma[i] * sigma[other] * noise
                out[i, other] = out[other, i] = (one + two + loss) / 2
        return out

    def pull(self) -> Array:
        """H R."""
        return np.asarray(np.sum(self.push[:, :, None] * self.r[None], axis=1))

    def gain_slopes(self) -> Array:
        """dA_ij/dR_il at ``[i, j, l]``: A_ij depends on no other row of R."""
        size, degree = self.poly.squares.shape[0], self.poly.slopes.shape[0]
        k, m, batch = self.r.shape
        out = np.zeros((k, m, m, batch))
        for n in range(2, min(degree, size - 1)):
            kappa = self.poly.cumulants[n + 1][:, None]
            own = kappa * self.powers[n - 1] * self.slopes[n][:, None]
            for j in range(m):
                out[:, j, j] += own[:, j]
            inner = np.zeros((k, m, batch))
            for p in range(3, degree - n):
                one = self.poly.cumulants[p][:, None] * self.powers[p - 1]
                inner += one * self.slopes[n + p][:, None]
            if degree - n > 3:
                out += (kappa * self.powers[n])[:, :, None] * inner[:, None]
        return out

    def push_slopes(self) -> Array:
        """dH_io/dR_il at ``[i, o, l]``, with R_o held for o != i; shape (K, K, M, B)."""
        k, m, batch = self.r.shape
        sigma, gain = self.poly.sigma, self.gain_slopes()
        out = np.zeros((k, k, m, batch))
        for i in range(k):
            for other in range(k):
                inner = np.sum(gain[i] * self.r[other][:, None], axis=0)
                noise = self._square_slope(i) if i == other else self._pair_slope(i, other)
                both = sigma[i] * inner + sigma[other] * self.gain[other]
                if i == other:
                    both = 2 * both
                out[i, other] = (both + self.poly.mu * sigma[i] * sigma[other] * noise) / 2
        return out

    def _square_slope(self, i: int) -> Array:
        slopes = _combine(self.poly.squares, self.moments[:, i])
        total = np.zeros(self.r.shape[1:])
        for p in range(3, slopes.shape[0]):
            total += self.poly.cumulants[p][:, None] * self.powers[p - 1, i] * slopes[p]
        return total

    def _pair_slope(self, i: int, other: int) -> Array:
        pair = self.pairs[min(i, other), max(i, other)]
        pair = pair if i < other else pair.swapaxes(0, 1)
        total = np.zeros(self.r.shape[1:])
        for a in range(1, pair.shape[0]):
            for b in range(pair.shape[0]):
                if a + b > 2 and np.any(self.poly.cumulants[a + b]):
                    kappa = self.poly.cumulants[a + b][:, None]
                    total += kappa * self.powers[a - 1, i] * self.powers[b, other] * pair[a, b]
        return total


def _combine(table: Array, values: Array) -> Array:
    """sum_p table[n, p] values[p] along the first axis, without the zeros of the table."""
    out = np.zeros((table.shape[0], *values.shape[1:]))
    for n, p in np.argwhere(table):
        out[n] += table[n, p] * values[p]
    return out
