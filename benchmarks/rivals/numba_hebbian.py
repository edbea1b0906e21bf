"""Overlaps of Hebbian ICA in Numba with ``np.random.Generator``: one seed after the other.

A step is one function: divided into several, inlined or not, it is slower, up to twice as slow."""

from __future__ import annotations

import math
from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NEVER = 1e300  # fast-math knows no infinity


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _factor(c, root):  # type: ignore[no-untyped-def]
    """Cholesky's factor of a small matrix."""
    for i in range(c.shape[0]):
        for j in range(i + 1):
            left = c[i, j]
            for other in range(j):
                left -= root[i, other] * root[j, other]
            root[i, j] = math.sqrt(left) if i == j else left / root[j, j]


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _steps(r, n, steps, cubic, sigma, eta, alpha, rng):  # type: ignore[no-untyped-def]
    k, m = r.shape
    half, shape = math.sqrt(3.0), (n - m - k) / 2
    s, g, push = np.empty(m), np.empty(k), np.empty(k)
    q, keep, c, root = np.empty((k, k)), np.empty((k, k)), np.empty((k, k)), np.zeros((k, k))
    moved, ahead = np.empty((k, k)), np.empty((k, m))
    for i in range(k):
        for j in range(k):
            q[i, j] = c[i, j] = 1.0 if i == j else 0.0
            for other in range(m):
                c[i, j] -= r[i, other] * r[j, other]
    _factor(c, root)
    for _ in range(steps):
        for j in range(m):
            s[j] = rng.uniform(-half, half)
        for j in range(k):
            g[j] = rng.standard_normal()
        rest = 2 * rng.standard_gamma(shape)
        for i in range(k):
            y = 0.0
            for j in range(m):
                y += r[i, j] * s[j]
            for j in range(i + 1):
                y += root[i, j] * g[j]
            push[i] = eta * sigma * (y * y * y if cubic else math.tanh(y))
            for j in range(k):
                keep[i, j] = (1.0 + alpha if i == j else 0.0) - alpha * q[i, j]
        for i in range(k):
            for j in range(m):
                total = push[i] * s[j]
                for other in range(k):
                    total += keep[i, other] * r[other, j]
                ahead[i, j] = total
            for j in range(k):
                total = push[i] * g[j]
                for other in range(j, k):
                    total += keep[i, other] * root[other, j]
                moved[i, j] = total
        r[:] = ahead
        for i in range(k):
            for j in range(i + 1):
                total = rest * push[i] * push[j]
                for other in range(k):
                    total += moved[i, other] * moved[j, other]
                c[i, j] = total
                for other in range(m):
                    total += r[i, other] * r[j, other]
                q[i, j] = q[j, i] = total
        _factor(c, root)


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _pair(r, n, steps, cubic, sigma, eta, alpha, level, rng):  # type: ignore[no-untyped-def]
    """One projection and one source, until abs(R) reaches a level: R and the steps made."""
    half, shape = math.sqrt(3.0), (n - 2) / 2
    root = math.sqrt(1 - r * r)
    for step in range(steps):
        s = rng.uniform(-half, half)
        g = rng.standard_normal()
        rest = 2 * rng.standard_gamma(shape)
        y = r * s + root * g
        push = eta * sigma * (y * y * y if cubic else math.tanh(y))
        keep = 1 + alpha * (1 - r * r - root * root)
        moved = keep * root + push * g
        r = keep * r + push * s
        root = math.sqrt(moved * moved + push * push * rest)
        if abs(r) >= level:
            return r, step + 1
    return r, -1


def hebbian(
    r: Array,
    n: int,
    steps: int,
    *,
    phi: Literal["cubic", "tanh"],
    sigma: float,
    mu: float,
    alpha: float,
    rng: np.random.Generator,
) -> Array:
    """As :func:`benchmarks.rivals.numpy_hebbian.hebbian`."""
    r = r.copy()
    law = (n, steps, phi == "cubic", sigma, mu / n, alpha)
    for seed in range(r.shape[0]):
        if r.shape[1:] == (1, 1):
            r[seed, 0, 0], _ = _pair(r[seed, 0, 0], *law, NEVER, rng)
        else:
            _steps(r[seed], *law, rng)
    return r


def first_passages(
    seeds: int, n: int, most: int, *, nu: float, level: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Steps until abs(R) reaches a level, -1 if it takes more than ``most``, shape (seeds,).

    One uniform source, x^3, sigma = -1, alpha = 0.5, from a random direction.
    """
    found = np.empty(seeds, dtype=np.int64)
    for seed in range(seeds):
        direction = rng.standard_normal(n)
        r = direction[0] / math.sqrt(np.sum(direction**2))
        _, found[seed] = _pair(r, n, most, True, -1.0, nu / n**2, 0.5, level, rng)
    return found
