"""Quadrature: nodes and weights of laws, and panels on which functions are short polynomials."""

from __future__ import annotations

import warnings
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from hdica.ingredients.plain import Array, Function, Mask, is_number

# SciPy is imported where it is called: that takes longer than a cheap sweep, which needs no nodes.
_DENSITY = 32
"""Nodes of the double-exponential rule for each unit of its variable."""


def dot(a: Array, b: Array) -> float:
    """Inner product whose rounding does not depend on the number of BLAS threads.

    A ``@`` of long vectors adds in an order that follows the threads of the machine, and a
    point must have the same bits wherever it is computed.
    """
    return float(np.add.reduce(a * b, axis=None))


def touching(panels: Mask) -> Mask:
    """Which edges are ends of some panels, shape (panels + 1,)."""
    return np.append(panels, False) | np.append(False, panels)


def gram(rows: Array) -> Array:
    """Inner products of few rows with each other, shape (K, K), by sums as :func:`dot`."""
    return np.asarray(np.add.reduce(rows[:, None] * rows, axis=2))


def root_of(g: Array) -> Array:
    """Lower triangular L with L L' = G for a G that may have lost rank, shape (K, K).

    Where rounding has made G more than that, L L' has its diagonal and smaller products.
    """
    root = np.zeros(g.shape)
    for k in range(len(g)):
        for j in range(k + 1):
            rest = g[k, j] - dot(root[k, :j], root[j, :j]) if j else g[k, j]
            if j < k:
                root[k, j] = rest / root[j, j] if root[j, j] > 0 else 0.0
            else:
                root[k, k] = float(np.sqrt(max(rest, 0.0)))
                if rest < 0 < (length := dot(root[k, :k], root[k, :k])):
                    root[k, :k] *= np.sqrt(max(g[k, k], 0.0) / length)
    return root


def numbers(values: object) -> Array | None:
    """A list of numbers as an array of shape (numbers,), None if it is anything else."""
    if not isinstance(values, list | tuple | np.ndarray):
        return None
    if not all(is_number(value) or isinstance(value, np.number) for value in values):
        return None
    try:
        return np.array(list(map(float, values)))
    except OverflowError:
        return None


def increasing(times: Array) -> bool:
    """Whether numbers are finite, above 0 and increase, as times of jumps do."""
    return bool(np.all((np.diff(times, prepend=0.0) > 0) & np.isfinite(times)))


class Nodes(NamedTuple):
    """A discrete measure that stands for a law: points and weights of sum one, shape (nodes,)."""

    points: Array
    weights: Array

    def mean(self, values: Array) -> Array:
        """Average over the last axis of ``values``, shape (..., nodes)."""
        return np.sum(values * self.weights, axis=-1)


@lru_cache(maxsize=32)
def gaussian_nodes(order: int) -> Nodes:
    """Gauss-Hermite nodes of the standard normal law."""
    from scipy.special import roots_hermitenorm

    points, weights = roots_hermitenorm(order)
    return Nodes(points, weights / weights.sum())


@lru_cache(maxsize=32)
def half_normal_nodes(order: int) -> Nodes:
    """Gauss nodes of the law of |z|, z standard normal: for averages with a break at zero."""
    points, weights = panel_nodes(np.linspace(0.0, 12.0, 25), 24)
    weights = weights * np.exp(-points * points / 2)
    points, weights = _jacobi(points, weights / weights.sum(), order)
    return Nodes(points, weights / weights.sum())


def gauss(nodes: Nodes, order: int) -> Nodes:
    """Gauss rule of a discrete measure: exact for polynomials of degree below 2 ``order``.

    A measure of no more than ``order`` points is returned as it is.
    """
    if nodes.points.size <= order:
        return nodes
    mass = float(nodes.weights.sum())
    points, weights = _jacobi(nodes.points, nodes.weights / mass, order)
    return Nodes(points, mass * weights / float(weights.sum()))


def _jacobi(points: Array, weights: Array, order: int) -> Nodes:
    """The Gauss rule of a discrete law, by Lanczos' method with full orthogonalisation."""
    basis = [np.sqrt(weights)]
    diagonal: list[float] = []
    off: list[float] = []
    for _ in range(order):
        moved = points * basis[-1]
        diagonal.append(dot(moved, basis[-1]))
        for _ in range(2):
            for vector in basis:
                moved = moved - dot(moved, vector) * vector
        off.append(float(np.sqrt(dot(moved, moved))))
        basis.append(moved / off[-1])
    return from_recurrence(np.array(diagonal), np.array(off[:-1]))


def from_recurrence(diagonal: Array, off_diagonal: Array) -> Nodes:
    """The Gauss rule of the law whose Jacobi matrix has these entries (Golub and Welsch 1969).

    ``diagonal`` has shape (points,), ``off_diagonal`` (points - 1,).
    """
    from scipy.linalg import eigh_tridiagonal

    points, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    return Nodes(points, vectors[0] ** 2)


@lru_cache(maxsize=32)
def uniform_nodes(low: float, high: float, order: int) -> Nodes:
    """Gauss-Legendre nodes of the uniform law on [low, high]."""
    points, weights = _legendre(order)
    return Nodes(low + (high - low) * (points + 1) / 2, weights / 2)


@lru_cache(maxsize=32)
def _legendre(order: int) -> tuple[Array, Array]:
    from scipy.special import roots_legendre

    points, weights = roots_legendre(order)
    return points, weights


def panel_nodes(edges: Array, order: int) -> tuple[Array, Array]:
    """Composite Gauss-Legendre points and weights (of dx), ``order`` of each on consecutive panels.

    Edges of shape (..., panels + 1) increase along the last axis, and panels may be empty; what is
    returned is of shape (..., panels * order).
    """
    x, w = _legendre(order)
    half = np.diff(edges, axis=-1)[..., None] / 2
    points = edges[..., :-1, None] + half * (x + 1)
    shape = (*edges.shape[:-1], -1)
    return points.reshape(shape), (half * w).reshape(shape)


def density_nodes(
    density: Function, low: float, high: float, breaks: tuple[float, ...] = ()
) -> Nodes:
    """Double-exponential nodes of a law given by its density between two ends, finite or not.

    The substitution turns algebraic tails and end-point singularities into double-exponential
    decay, so that the trapezoidal rule converges geometrically on each piece between ``breaks``,
    where the density is not smooth (Takahasi and Mori 1974).
    """
    edges = [low, *breaks, high]
    pieces = [_double_exponential(a, b) for a, b in pairwise(edges)]
    points, widths = map(np.concatenate, zip(*pieces, strict=True))
    with np.errstate(all="ignore"):
        weights = widths * density(points)
    # Far nodes of a heavy tail would overflow in a moment to which they add nothing.
    return _finite(points, weights)


def _finite(points: Array, weights: Array) -> Nodes:
    """The nodes that are numbers and whose weights are."""
    matters = np.isfinite(points) & np.isfinite(weights) & (weights > 1e-80)
    return Nodes(points[matters], weights[matters] / weights[matters].sum())


def quantile_nodes(lower: Function, upper: Function) -> Nodes:
    """Nodes of a law given by its quantiles, for densities that are singular or unknown.

    ``lower`` and ``upper`` are the quantile functions of u and of 1 - u, for u in (0, 1/2): two,
    because 1 - u cannot be told from 1 in the upper tail.
    """
    u, weights = _double_exponential(0.0, 0.5)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some laws complain at u = 1e-300, where nothing is lost
        points = np.concatenate([lower(u), upper(u)])
    return _finite(points, np.tile(weights, 2))


def _double_exponential(a: float, b: float) -> tuple[Array, Array]:
    step = 1 / _DENSITY
    t = np.arange(-6.3, 6.3 + step / 2, step)
    s, ds = np.pi / 2 * np.sinh(t), np.pi / 2 * np.cosh(t)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isinf(a) and np.isinf(b):
            x, dx = np.sinh(s), np.cosh(s) * ds
        elif np.isinf(b):
            x, dx = a + np.exp(s), np.exp(s) * ds
        elif np.isinf(a):
            x, dx = b - np.exp(s), np.exp(s) * ds
        else:
            x = a + (b - a) / (1 + np.exp(-2 * s))
            dx = (b - a) * ds / (2 * np.cosh(s) ** 2)
    # A node that rounds onto an end of the support has no weight in double precision.
    inside = np.isfinite(x) & np.isfinite(dx) & (dx > 0) & (x != a) & (x != b)
    return x[inside], dx[inside] * step


ORDER = 16
RESOLVED = 1e-11
_GENERATIONS, _MOST, _NARROWEST = 52, 4096, 1e-11


@lru_cache(maxsize=8)
def gauss_legendre(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre points of [-1, 1] and their weights."""
    return legendre.leggauss(order)


@lru_cache(maxsize=1)
def _highest() -> Array:
    """Rows that give the two highest Legendre coefficients of values at the Gauss points."""
    x, w = gauss_legendre(ORDER)
    orders = np.arange(ORDER - 2, ORDER)
    return (orders[:, None] + 0.5) * legendre.legvander(x, ORDER - 1).T[orders] * w


def resolving_edges(
    functions: Function, first: Array, resolved: float = RESOLVED, floor: float = 1e-3
) -> Array:
    """Increasing edges, ``first`` among them, between which functions are short polynomials.

    ``functions`` takes points of any shape and returns shape (functions, *points.shape); what is
    not finite counts as zero. Halving ends where the highest Legendre coefficients are ``resolved``
    relative to the largest value of that function on the panel (or to ``floor`` times that on all
    first panels), and at a width of 1e-11 relative to 1 + |position|.
    """
    x, _ = gauss_legendre(ORDER)
    edges = [np.asarray(first, dtype=float)]
    low, high = edges[0][:-1], edges[0][1:]
    everywhere: Array | None = None
    before = np.full(low.size, np.inf)
    for _ in range(_GENERATIONS):
        t = low[:, None] + (high - low)[:, None] * (x + 1) / 2
        with np.errstate(all="ignore"):
            values = np.nan_to_num(functions(t), nan=0.0, posinf=0.0, neginf=0.0)
        size = np.abs(values).max(axis=-1)
        if everywhere is None:
            everywhere = floor * size.max(axis=-1, keepdims=True)
        highest = np.abs(np.sum(values[..., None, :] * _highest(), axis=-1)).max(axis=-1)
        share = (highest / np.maximum(size, np.maximum(everywhere, 1e-300))).max(axis=0)
        rough = (share > resolved) & (high - low > _NARROWEST * (1 + np.abs(low + high) / 2))
        # What halving does not make smaller is rounding.
        rough &= (share > 1e3 * resolved) | (share < before / 4)
        if not rough.any() or sum(f.size for f in edges) > _MOST:
            break
        middle = (low[rough] + high[rough]) / 2
        edges.append(middle)
        low, high = np.concatenate([low[rough], middle]), np.concatenate([middle, high[rough]])
        before = np.tile(share[rough], 2)
    return np.unique(np.concatenate(edges))
