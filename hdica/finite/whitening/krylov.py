"""The largest eigenvalues of a covariance that is known by its products alone.

Randomised block Krylov iteration (Musco and Musco 2015, NeurIPS) with Rayleigh-Ritz and restarts:
the space of a random block and its images under C. Next to a bulk of eigenvalues, where principal
components of few samples lie, it needs the square root of the number of products that powers of C
(randomised SVD) need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
OVER = 10
"""Directions that are followed beside the wanted ones."""
_BLOCKS = 24
"""Blocks of directions that are kept before those that matter least are dropped."""


@dataclass(frozen=True, eq=False)
class Leading:
    """Eigenvalues, largest first, shape (d,), eigenvectors, shape (D, d), and their accuracy.

    ``residual`` is the largest |C u - lambda u| over the largest eigenvalue; ``products`` counts
    the products with C of a block of directions.
    """

    values: Array
    vectors: Array
    residual: float
    products: int


def leading(
    product: Callable[[Array], Array],
    size: int,
    d: int,
    rng: np.random.Generator,
    *,
    tolerance: float,
    most: int,
) -> Leading:
    """The d largest eigenpairs of a symmetric matrix C without negative eigenvalues.

    Parameters
    ----------
    product
        C V of directions V, shape (D, any).
    size, d
        D and how many; d + OVER is at most D.
    rng
        Of the first block.
    tolerance, most
        The residual that is asked for, and the largest number of products, whatever it leaves.
    """
    block = d + OVER
    basis = _orthonormal(rng.standard_normal((size, block)))
    images = product(basis)
    made = 1
    while True:
        values, turn = np.linalg.eigh(_symmetric(basis.T @ images))
        values, turn = values[::-1], turn[:, ::-1]
        ritz, moved = basis @ turn[:, :block], images @ turn[:, :block]
        rest = moved - ritz * values[:block]
        residual = float(np.max(np.linalg.norm(rest[:, :d], axis=0)))
        if residual <= tolerance * values[0] or made == most:
            share = residual / values[0] if values[0] > 0 else 0.0
            return Leading(values[:d], ritz[:, :d], share, made)
        if basis.shape[1] + block > min(_BLOCKS * block, size):
            basis, images = ritz, moved
        new = _orthonormal(_without(basis, _orthonormal(_without(basis, rest))))
        basis, images = np.hstack([basis, new]), np.hstack([images, product(new)])
        made += 1


def _symmetric(a: Array) -> Array:
    return np.asarray((a + a.T) / 2)


def _orthonormal(v: Array) -> Array:
    return np.asarray(np.linalg.qr(v)[0])


def _without(basis: Array, v: Array) -> Array:
    return np.asarray(v - basis @ (basis.T @ v))
