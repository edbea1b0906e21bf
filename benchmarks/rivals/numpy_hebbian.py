"""Overlaps of Hebbian ICA in plain NumPy: all seeds at once, random numbers in blocks of steps."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BLOCK = 1024


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
    """Steps of Hebbian ICA with uniform sources, from W'W = I.

    Parameters
    ----------
    r
        Shape (seeds, K, M): overlaps R at the start, with I - RR' positive definite.
    n, steps
        Dimension and number of steps.
    phi, sigma, mu, alpha
        Of the rule: one sign for all projections, and mu = n eta.
    rng
        Generator.

    Returns
    -------
    numpy.ndarray
        R at the end, of the same shape.
    """
    seeds, k, m = r.shape
    one, half, eta = np.eye(k), math.sqrt(3), mu / n
    root = np.linalg.cholesky(one - r @ r.transpose(0, 2, 1))
    for first in range(0, steps, BLOCK):
        block = min(BLOCK, steps - first)
        source = rng.uniform(-half, half, (block, seeds, m))
        noise = rng.standard_normal((block, seeds, k))
        rest = 2 * rng.standard_gamma((n - m - k) / 2, (block, seeds))
        for s, g, across in zip(source, noise, rest, strict=True):
            y = (r @ s[:, :, None] + root @ g[:, :, None])[:, :, 0]
            push = eta * sigma * (y * y * y if phi == "cubic" else np.tanh(y))
            q = r @ r.transpose(0, 2, 1) + root @ root.transpose(0, 2, 1)
            keep = one + alpha * (one - q)
            moved = keep @ root + push[:, :, None] * g[:, None]
            spread = across[:, None, None] * push[:, :, None] * push[:, None]
            r = keep @ r + push[:, :, None] * s[:, None]
            root = np.linalg.cholesky(moved @ moved.transpose(0, 2, 1) + spread)
    return r
