"""Reference averages over u = c Q + e s: the density of u first, then one integral with f.

With k_j(u) the integral of c**j over the law of c at given u, <(c - Q u) f> and <f**2> are single
integrals of f and f**2 over u. By Stein's identity <c f> - Q <f'> = <(c - Q u) f>/s**2, jumps of f
included, so that no derivative of f is needed, and (1 - Q**2)(<c f> - Q <f'>) = <(c - Q u) f>.
hdica integrates over e within c, cuts both, and needs f': no node and no formula is shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import mpmath
import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.special import roots_jacobi

from tests.bars.functions import Function
from tests.bars.laws import LawOf, Piece

Array = NDArray[np.float64]
Kernel = Callable[[Array], Array]
ORDER, INNER = 20, 16
_REACH = 9.5
_WINDOW = np.linspace(-_REACH, _REACH, 9)
_AROUND = np.array([-10.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 10.0])
_NORM = 1 / math.sqrt(2 * math.pi)
_GENERATIONS, _CHUNK = 45, 2000


@lru_cache(maxsize=8)
def _gauss(order: int) -> tuple[Array, Array]:
    return legendre.leggauss(order)


@lru_cache(maxsize=64)
def _jacobi(alpha: float) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1] for the weight x**(alpha - 1)."""
    # SciPy's weights are off by 1e-14 where alpha is small: its nodes are a beginning.
    order, power = INNER, alpha - 1
    found = []
    with mpmath.workdps(30):
        for guess in roots_jacobi(order, 0.0, power)[0]:
            x = mpmath.findroot(lambda t: mpmath.jacobi(order, 0, power, t), mpmath.mpf(guess))
            slope = (order + power + 1) / 2 * mpmath.jacobi(order - 1, 1, power + 1, x)
            found.append(((1 + x) / 2, 1 / ((1 - x) * (1 + x) * slope**2)))
        # Both divided by two and by 2**alpha, the integral of the weight over [-1, 1] is 1/alpha.
        return np.array(found, dtype=float).T


def _inner_panels(piece: Piece, u: Array, q: float, s: float) -> tuple[Array, Array, Array]:
    """Row of u, low and high end in d of the panels that see some of the normal law."""
    window = piece.side * ((u[:, None] - s * _WINDOW) / q - piece.origin)
    last = piece.edges[-1]
    least = min(2 * _REACH / 8 * s / abs(q), float(piece.edges[1])) / 2
    window = np.where(window < least, 0.0, np.minimum(window, last))
    ends = window.min(axis=1, keepdims=True), window.max(axis=1, keepdims=True)
    fixed = np.clip(np.broadcast_to(piece.edges, (u.size, piece.edges.size)), *ends)
    edges = np.sort(np.concatenate([window, fixed], axis=1), axis=1)
    row, column = np.nonzero(np.diff(edges, axis=1) > 0)
    return row, edges[row, column], edges[row, column + 1]


def _piece_moments(piece: Piece, u: Array, q: float, s: float, weigh: Callable) -> Array:
    """Integrals over one piece of the law of weigh(c, e, u), times the density of e at u."""
    row, low, high = _inner_panels(piece, u, q, s)
    if row.size == 0:
        return np.zeros((len(weigh(u, u, u)), u.size))
    x, w = _gauss(INNER)
    half = (high - low)[:, None] / 2
    d = low[:, None] + half * (x + 1)
    weight = half * w * np.maximum(d, 1e-300) ** (piece.alpha - 1)
    first = low == 0.0
    x0, w0 = _jacobi(piece.alpha)
    d[first] = high[first, None] * x0
    weight[first] = high[first, None] ** piece.alpha * w0
    c, at = piece.origin + piece.side * d, u[row][:, None]
    e = (at - c * q) / s
    weight *= piece.smooth(d) * np.exp(-e * e / 2) * (_NORM / s)
    sums = [np.sum(one * weight, axis=1) for one in weigh(c, e, at)]
    return np.array([np.bincount(row, one, u.size) for one in sums])


def kernel(law: LawOf, q: float, weigh: Callable) -> Kernel:
    """The functions weigh(c, e, u) integrated over the law of c given u, times its density."""
    s = math.sqrt((1 - q) * (1 + q))

    def at(u: Array) -> Array:
        if q == 0.0:
            raise ValueError("Q = 0: u is e")
        total = 0.0
        if law.points.size:
            c = law.points
            e = (u[:, None] - c * q) / s
            mass = law.weights * np.exp(-e * e / 2) * (_NORM / s)
            rows = weigh(np.broadcast_to(c, e.shape), e, u[:, None])
            total = np.array([np.sum(np.broadcast_to(r, e.shape) * mass, axis=1) for r in rows])
        for piece in law.pieces:
            total = total + _piece_moments(piece, u, q, s, weigh)
        return np.asarray(total)

    return at


def outer_edges(f: Function, law: LawOf, q: float, s: float) -> Array:
    middles = [*law.points, *(p.origin for p in law.pieces)]
    found = [q * m + s * _AROUND for m in middles]
    for piece in law.pieces:
        ends = q * (piece.origin + piece.side * piece.edges)
        # What lies nearer than s is one place to u.
        found += [ends[np.unique(np.floor(ends / s), return_index=True)[1]]]
        found += [ends[-1] + s * _AROUND]
    hints = f.width * np.array([-10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0])
    low, high = min(v.min() for v in found), max(v.max() for v in found)
    edges = np.unique(np.concatenate([*found, hints, f.kinks]))
    edges = edges[(edges >= low) & (edges <= high)]
    # No panel is so wide that what oscillates there goes unseen.
    return np.unique(np.concatenate([edges, np.arange(max(low, -12.0), min(high, 12.0))]))


def integrate(
    values: Kernel, edges: Array, least: Kernel = np.zeros_like
) -> tuple[Array, Array, Array]:
    """Integrals of several functions of u, their errors, and those of the absolute values.

    Panels are halved until the halves agree with the whole to rounding; the halves count.
    ``least`` of the integrals of absolute values is what rounding is relative to at least.
    """
    x, w = _gauss(ORDER)

    def sums(low: Array, high: Array) -> tuple[Array, Array]:
        half = (high - low)[:, None] / 2
        u = (low[:, None] + half * (x + 1)).ravel()
        parts = [values(u[i : i + _CHUNK]) for i in range(0, u.size, _CHUNK)]
        rows = np.concatenate(parts, axis=1).reshape(-1, *half.shape[:1], ORDER) * (half * w)
        return rows.sum(axis=2), np.abs(rows).sum(axis=2)

    low, high = edges[:-1], edges[1:]
    whole, _ = sums(low, high)
    total, error, scale = (np.zeros(len(whole)) for _ in range(3))
    before = np.full(low.size, np.inf)
    for generation in range(_GENERATIONS):
        middle = (low + high) / 2
        ends = np.stack([low, middle, high])
        left, right = sums(ends[0], ends[1]), sums(ends[1], ends[2])
        off = np.abs(left[0] + right[0] - whole)
        known = scale + np.sum(left[1] + right[1], axis=1)
        share = (off / np.maximum(np.maximum(known, least(known)), 1e-300)[:, None]).max(axis=0)
        rough = (share > 2e-16) & ((share > 1e-14) | (share < before / 4))
        rough &= generation < _GENERATIONS - 1
        done = ~rough
        total = total + np.sum((left[0] + right[0])[:, done], axis=1)
        scale = scale + np.sum((left[1] + right[1])[:, done], axis=1)
        error = error + np.sum(off[:, done], axis=1)
        if not rough.any():
            break
        low = np.concatenate([low[rough], middle[rough]])
        high = np.concatenate([middle[rough], high[rough]])
        whole = np.concatenate([left[0][:, rough], right[0][:, rough]], axis=1)
        before = np.tile(share[rough], 2)
    return total, error, scale


def learning_and_power(f: Function, law: LawOf, q: float) -> tuple[Array, Array]:
    """<(c - Q u) f(u)> and <f(u)**2> at -1 < Q < 1 other than 0, and their errors."""
    s = math.sqrt((1 - q) * (1 + q))
    inner = kernel(law, q, lambda c, e, u: (s * (s * c - q * e), np.ones_like(e)))

    def values(u: Array) -> Array:
        pull, density = inner(u)
        known = f.value(u)
        return np.array([pull * known, density * known * known])

    def least(sizes: Array) -> Array:
        return np.array([s * math.sqrt(sizes[1]), 0.0])

    total, error, scale = integrate(values, outer_edges(f, law, q, s), least)
    return total, error + 4e-16 * np.maximum(scale, least(scale))


def normal_average(function: Kernel, f: Function) -> tuple[Array, Array]:
    """Averages over a standard normal z of functions made of f, and their errors."""
    hints = f.width * np.array([-10.0, -3.0, -1.0, 1.0, 3.0, 10.0])
    edges = np.unique(np.concatenate([np.arange(-13.0, 14.0), hints, f.kinks]))
    edges = edges[np.abs(edges) <= 13]
    total, error, scale = integrate(lambda z: function(z) * (_NORM * np.exp(-z * z / 2)), edges)
    return total, error + 4e-16 * scale


def law_averages(law: LawOf, functions: Callable[[Array], list[Array]]) -> Array:
    """Averages over the source itself of functions as smooth as polynomials."""
    total = 0.0
    if law.points.size:
        total = np.array([np.sum(law.weights * row) for row in functions(law.points)])
    for piece in law.pieces:
        edges = piece.edges
        first, (x0, w0), (x, w) = edges[1], _jacobi(piece.alpha), _gauss(2 * INNER)
        half = np.diff(edges[1:])[:, None] / 2
        d = np.concatenate([first * x0, (edges[1:-1, None] + half * (x + 1)).ravel()])
        rest = (half * w).ravel() * d[INNER:] ** (piece.alpha - 1)
        weight = np.concatenate([first**piece.alpha * w0, rest]) * piece.smooth(d)
        total = total + np.array(
            [np.sum(weight * r) for r in functions(piece.origin + piece.side * d)]
        )
    return np.asarray(total)
