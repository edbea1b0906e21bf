"""Right-hand side of (17) for polynomial phi at many R at once, and the symmetries of its states.

A projection may change its sign where phi is odd, a source where its law is symmetric; projections
of equal sigma may be exchanged, and so may equal sources: these map states to states.

The right-hand side has a derivative and a majorant. As W'W = I, the covariance of y is I, and R
enters the law of y through the joint cumulants of third and higher order alone: those of y_i (a
times) and y_k (b times) are sum_j kappa_{a+b,j} R_ij^a R_kj^b. With phi_n = phi^(n)(y_i) and
Stein's identity to all orders,

    A_ij = <phi(y_i) s_j> - R_ij <phi'(y_i)> = sum_{n>1} kappa_{n+1,j} R_ij^n <phi_n> / n!,
    dR/dt / mu = Sigma A - H R,   H = (Sigma A R' + R A' Sigma + mu Sigma <phi phi'> Sigma) / 2.

Arrays have the R of a batch along their last axis, so that every operation runs over memory in
order and each R has the bits that it has alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdica.systems.hebbian_ica.averages import find_moments
from hdica.systems.hebbian_ica.ode import Array, Field

Ints = NDArray[np.int64]
MOST = 50_000
_EQUAL, _TIED = 1e-6, 1e-9


@dataclass(frozen=True, eq=False)
class Side:
    """Signed permutations: (g R)_i = signs[g, i] R_orders[g, i], both of shape (elements, rows)."""

    orders: Ints
    signs: Array

    @property
    def size(self) -> int:
        """Number of its elements."""
        return self.orders.shape[0]


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A group of symmetries: each element of ``rows`` with each of ``columns``."""

    rows: Side  # of the projections
    kinds: Ints  # sources with equal numbers may be exchanged, shape (M,)
    flips: NDArray[np.bool_]  # whether a source may change its sign, shape (M,)

    @property
    def odd(self) -> bool:
        """Whether projections may change their signs."""
        return bool(np.any(self.rows.signs < 0))

    @property
    def column_count(self) -> float:
        """Number of signed permutations of the sources."""
        exchanges = [math.factorial(int(n)) for n in np.bincount(self.kinds)]
        return float(math.prod(exchanges)) * 2.0 ** int(self.flips.sum())

    def random(self, rng: np.random.Generator) -> Callable[[Array], Array]:
        """A random element, as a function of one R."""
        g = rng.integers(self.rows.size)
        rows, row_signs = self.rows.orders[g], self.rows.signs[g][:, None]
        order = np.arange(self.kinds.size)
        for one in np.unique(self.kinds):
            own = np.flatnonzero(self.kinds == one)
            order[own] = rng.permutation(own)
        signs = np.where(self.flips & (rng.random(order.size) < 0.5), -1.0, 1.0)
        return lambda r: (row_signs * r[rows])[:, order] * signs

    def images(self, r: Array) -> Array:
        """Every distinct image of one R, shape (images, K, M)."""
        columns = _side(self.kinds, self.flips)
        turned = self.rows.signs[:, :, None] * r[self.rows.orders]
        every = columns.signs[None, :, None] * turned[:, :, columns.orders].swapaxes(1, 2)
        flat = every.reshape(-1, r.size) + 0.0
        _, first = np.unique(np.round(flat / _EQUAL), axis=0, return_index=True)
        return flat[np.sort(first)].reshape(-1, *r.shape)


def symmetries(field: Field) -> Symmetries:
    """The symmetries of a field; of more than six projections, their signs alone or none.

    What holds is found by trial, at one R without any symmetry of its own.
    """
    k, m = field.shape
    number = np.arange(k * m).reshape(k, m)
    r = np.cos(1.0 + 2.4 * number)
    r *= 0.7 / np.linalg.svd(r, compute_uv=False)[0]
    parts = np.array(field.parts(r))

    def holds(turn: tuple[Ints, Array], axis: int) -> bool:
        image = _turned(r, turn, axis)
        gap = np.abs(np.array(field.parts(image)) - _turned(parts, turn, axis + 1))
        return gap.max() < 1e-9 * np.abs(parts).max()

    odd = holds((np.arange(k), np.where(np.arange(k) == 0, -1.0, 1.0)), 0)
    flips = [holds((np.arange(m), np.where(np.arange(m) == j, -1.0, 1.0)), 1) for j in range(m)]
    kinds = np.arange(m)
    for j in range(m):
        for other in range(j):
            order = np.arange(m)
            order[[j, other]] = other, j
            if kinds[j] == j and holds((order, np.ones(m)), 1):
                kinds[j] = kinds[other]
    return Symmetries(_rows(field.sigma, odd), kinds, np.array(flips))


def _turned(values: Array, turn: tuple[Ints, Array], axis: int) -> Array:
    shape = [1] * values.ndim
    shape[axis] = -1
    return np.take(values, turn[0], axis=axis) * turn[1].reshape(shape)


def _rows(sigma: Array, odd: bool) -> Side:
    k = sigma.size
    kinds = np.where(sigma == sigma[0], 0, 1)
    signs = 2**k if odd else 1
    if signs * math.prod(math.factorial(int(n)) for n in np.bincount(kinds)) > MOST:
        kinds = np.arange(k)
    return _side(kinds, np.full(k, odd and signs <= MOST))


def _side(kinds: Ints, flips: NDArray[np.bool_]) -> Side:
    size = kinds.size
    groups = [np.flatnonzero(kinds == one) for one in np.unique(kinds)]
    orders = []
    for chosen in itertools.product(*[itertools.permutations(g.tolist()) for g in groups]):
        order = np.arange(size)
        for group, exchanged in zip(groups, chosen, strict=True):
            order[group] = exchanged
        orders.append(order)
    ways = [(1.0, -1.0) if flip else (1.0,) for flip in flips]
    signs = np.array(list(itertools.product(*ways)))
    both = np.repeat(np.array(orders), len(signs), axis=0)
    return Side(both, np.tile(signs, (len(orders), 1)))


def representatives(group: Symmetries, r: Array) -> tuple[Array, Array]:
    """One image of each of a batch of R, the same for all its images, and how many images it has.

    The image is that on which a fixed linear functional is largest, a_i b_j R_ij with decreasing
    weights: only by a coincidence do two images share its largest value. Shapes (B, K, M) and (B,).
    """
    images, counts = np.empty_like(r), np.empty(r.shape[0])
    step = max(1, 2_000_000 // (group.rows.size * r.shape[1] * r.shape[2]))
    for first in range(0, r.shape[0], step):
        part = slice(first, first + step)
        images[part], counts[part] = _representatives(group, r[part])
    return images + 0.0, counts


def _representatives(group: Symmetries, r: Array) -> tuple[Array, Array]:
    rows, (batch, k, m) = group.rows, r.shape
    a, b = (1.0 / (1.0 + 0.6180339887 * np.arange(size)) ** 0.77 for size in (k, m))
    turned = rows.signs[:, None, :, None] * r[:, rows.orders].swapaxes(0, 1)
    score = np.sum(a[:, None] * turned, axis=2)
    sign = np.where(group.flips & (score < 0), -1.0, 1.0)
    score, turned = sign * score, sign[:, :, None] * turned
    order = np.broadcast_to(np.arange(m), score.shape).copy()
    for one in np.unique(group.kinds):
        own = np.flatnonzero(group.kinds == one)
        order[..., own] = own[np.argsort(-score[..., own], axis=-1, kind="stable")]
    turned = np.take_along_axis(turned, order[:, :, None, :], axis=3)
    value = np.sum(b * np.take_along_axis(score, order, axis=2), axis=2)
    best = value.max(axis=0)
    images = turned[np.argmax(value, axis=0), np.arange(batch)]
    same = (value > best - _TIED) & (np.abs(turned - images).max(axis=(2, 3)) < _EQUAL)
    fixed = same.sum(axis=0) * _fixed_columns(group, images)
    return images, rows.size * group.column_count / fixed


def _fixed_columns(group: Symmetries, r: Array) -> Array:
    """How many signed permutations of the sources leave each R as it is."""
    count = np.ones(r.shape[0])
    m = r.shape[2]
    for j in range(m):
        alike = [i for i in range(j + 1) if group.kinds[i] == group.kinds[j]]
        # The n-th of n equal columns has n places to go: together n! exchanges.
        count *= sum(np.abs(r[:, :, i] - r[:, :, j]).max(axis=1) < _EQUAL for i in alike)
        if group.flips[j]:
            count *= np.where(np.abs(r[:, :, j]).max(axis=1) < _EQUAL, 2.0, 1.0)
    return count


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
    closed = find_moments(field.phi, field.sources)
    c = closed.coefficients
    square = np.zeros(2 * c.size - 1)
    for p, one in enumerate(c):
        square[p : p + c.size] += one * c
    size = square.size
    cumulants = np.array([_cumulants(m[:size]) for m in closed.moments]).T.copy()
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
        return self.poly.sigma[:, None, None] * self.gain + self.poly.drag * pull


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
    pairs = {}
    for k in range(r.shape[0]):
        for i in range(k):
            half = _combine(poly.slopes, _joint(poly, powers, moments, i, k))
            pairs[i, k] = _combine(poly.slopes, half.swapaxes(0, 1)).swapaxes(0, 1)
    push = _push(poly, r, gain, moments, pairs)
    return _Terms(poly, r, powers, moments, slopes, pairs, gain, push)


def _moments(poly: Polynomial, powers: Array) -> Array:
    """E y_i^p / p!: the series exp(u^2/2 + sum of cumulants), from its logarithmic derivative."""
    size, k, _, batch = powers.shape
    weights = np.zeros((size, k, batch))
    for n in range(3, size):
        weights[n] = n * np.sum(poly.cumulants[n][:, None] * powers[n], axis=1)
    moments = np.zeros((size, k, batch))
    moments[0] = 1.0
    for p in range(2, size):
        total = moments[p - 2].copy()
        for n in range(3, p + 1):
            total += weights[n] * moments[p - n]
        moments[p] = total / p
    return moments


def _joint(poly: Polynomial, powers: Array, moments: Array, i: int, k: int) -> Array:
    """E y_i^p y_k^q / (p! q!) for p, q <= d, from the derivative of the series in the first."""
    size, batch = poly.slopes.shape[0], powers.shape[3]
    joint = np.zeros((size, size, batch))
    joint[0] = moments[:size, k]
    weights = {}
    for a, b in _orders(poly):
        both = poly.cumulants[a + b][:, None] * powers[a, i] * powers[b, k]
        weights[a, b] = a * np.sum(both, axis=0)
    for p in range(1, size):
        for q in range(size):
            total = joint[p - 2, q].copy() if p > 1 else np.zeros(batch)
            for (a, b), weight in weights.items():
                if a <= p and b <= q:
                    total += weight * joint[p - a, q - b]
            joint[p, q] = total / p
    return joint


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
    """dH_io/dR_il at ``[i, o, l]``, with R_o fixed for o != i; shape (K, K, M, B)."""
    k, m, batch = t.r.shape
    poly, orders = t.poly, _orders(t.poly)
    out = np.zeros((k, k, m, batch))
    for i in range(k):
        for other in range(k):
            inner = np.sum(gain_slopes[i] * t.r[other][:, None], axis=0)
            both = poly.sigma[i] * inner + poly.sigma[other] * t.gain[other]
            noise = np.zeros((m, batch))
            if i == other:
                # d<phi(y_i)^2>/dR_il
                both, slopes = 2 * both, _combine(poly.squares, t.moments[:, i])
                for p in range(3, slopes.shape[0]):
                    noise += poly.cumulants[p][:, None] * t.powers[p - 1, i] * slopes[p]
            else:
                # d<phi(y_i) phi(y_o)>/dR_il
                pair = t.pairs[min(i, other), max(i, other)]
                pair = pair if i < other else pair.swapaxes(0, 1)
                for a, b in orders:
                    kappa = poly.cumulants[a + b][:, None]
                    noise += kappa * t.powers[a - 1, i] * t.powers[b, other] * pair[a, b]
            out[i, other] = (both + poly.mu * poly.sigma[i] * poly.sigma[other] * noise) / 2
    return out


def _combine(table: Array, values: Array) -> Array:
    """sum_p table[n, p] values[p] along the first axis, without the zeros of the table."""
    out = np.zeros((table.shape[0], *values.shape[1:]))
    for n, p in np.argwhere(table):
        out[n] += table[n, p] * values[p]
    return out
