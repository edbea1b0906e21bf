"""Where Hebbian ICA begins: weights with W'W = I, and their overlaps in law."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.quadrature import dot

Array = NDArray[np.float64]


def triangular(t: Array) -> Array:
    """L, lower triangular with a diagonal >= 0, with L L' = T'T: by Householder reflections.

    T has shape (rows, K), rows >= K, and any rank.
    """
    t, size = t.copy(), t.shape[1]
    for k in range(size):
        norm = math.sqrt(dot(t[k:, k], t[k:, k]))
        pivot = t[k, k] + math.copysign(norm, t[k, k])
        if norm > 0.0:
            v = t[k:, k].copy()
            v[0] = pivot
            for j in range(k, size):
                t[k:, j] -= v * (dot(v, t[k:, j]) / (norm * abs(pivot)))
        if t[k, k] < 0.0:
            t[k, k:] = -t[k, k:]
    return np.tril(t[:size].T)


def factor(r0: Array) -> Array:
    """L, lower triangular, with L L' = I - R R': Cholesky's method with pivots, of any rank.

    A direction in which less than 1e-15 is left has none.
    """
    size = r0.shape[0]
    rest = np.array([[-dot(a, b) for b in r0] for a in r0])
    for i, row in enumerate(r0):
        norm = math.sqrt(dot(row, row))
        rest[i, i] = (1.0 - norm) * (1.0 + norm)
    found = np.zeros((size, size))
    for column in range(size):
        pivot = int(np.argmax(np.diag(rest)))
        if rest[pivot, pivot] <= 1e-15:
            break
        found[:, column] = rest[:, pivot] / math.sqrt(rest[pivot, pivot])
        rest = rest - found[:, column][:, None] * found[:, column]
        rest[pivot, :] = rest[:, pivot] = 0.0
    return triangular(found.T)


def _orthonormal(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """Random orthonormal columns, rotation invariant in law: Gram and Schmidt's method, twice."""
    q = rng.standard_normal((columns, rows))
    for k in range(columns):
        for _ in range(2):
            for j in range(k):
                q[k] -= dot(q[j], q[k]) * q[j]
            q[k] /= math.sqrt(dot(q[k], q[k]))
    return q.T


def first_weights(
    start: Array | None, shape: tuple[int, int], n: int, rng: np.random.Generator
) -> Array:
    """W at t = 0, shape (n, K), with W'W = I; its first M rows are exactly R', if R is given."""
    k, m = shape
    if start is None:
        return _orthonormal(rng, n, k)
    loading, base = factor(start), _orthonormal(rng, n - m, k)
    rest = np.array([sum(a * u for a, u in zip(row, base.T, strict=True)) for row in loading])
    return np.concatenate([start, rest], axis=1).T


def first_overlaps(
    start: Array | None, shape: tuple[int, int], n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """R, shape (K, M), and L, shape (K, K), with L L' = I - R R', of :func:`first_weights`.

    A random rotation is Z A'^-1 with normal Z and Z'Z = A A'. Its M rows on the sources are
    drawn, and of the others only B B' = Z'Z, a Wishart matrix (Bartlett 1933: normal numbers below
    a diagonal of chi numbers): then R = A^-1 Z_s' and L = A^-1 B, without a subtraction.
    """
    k, m = shape
    if start is not None:
        return start, factor(start)
    on_sources = rng.standard_normal((k, m))
    b = np.tril(rng.standard_normal((k, k)), -1)
    b[np.diag_indices(k)] = np.sqrt(rng.chisquare(n - m - np.arange(k)))
    a = triangular(np.concatenate([on_sources, b], axis=1).T)
    r, loading = on_sources, b
    for i in range(k):
        for both in (r, loading):
            for j in range(i):
                both[i] -= a[i, j] * both[j]
            both[i] /= a[i, i]
    return r, loading
