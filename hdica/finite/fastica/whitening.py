"""Mean, covariance and leading principal components of samples, and samples whitened in them.

Samples come in one array or in passes of blocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Blocks = Callable[[], Iterable[Array]]
"""``blocks()`` begins a pass over the samples: blocks of shape (block, D), always the same ones."""
_ENTRIES, _FEWEST = 2**20, 64  # of an array that are multiplied at once, and the fewest samples


def passes_of(samples: Array | Blocks) -> Blocks:
    """Passes over an array of shape (n, D), some rows at once; other passes as they are."""
    if callable(samples):
        return samples
    x = np.asarray(samples, dtype=np.float64)
    if x.ndim != 2:
        raise HdicaError(f"samples of shape {x.shape} are not allowed (samples by coordinates)")
    rows = max(_ENTRIES // max(x.shape[1], 1), _FEWEST)
    return lambda: (x[first : first + rows] for first in range(0, len(x), rows))


@dataclass(frozen=True, eq=False)
class Moments:
    """Number of samples n, their mean, shape (D,), and covariance, shape (D, D), over n."""

    count: int
    mean: Array
    covariance: Array


def sample_mean(blocks: Blocks) -> tuple[int, Array]:
    """Number of samples, at least two, and their mean, shape (D,), in one pass."""
    count, total = 0, np.zeros(())
    for block in blocks():
        check_deadline()
        count += len(block)
        total = total + np.sum(block, axis=0)
    if count < 2:
        raise HdicaError(f"samples = {count} is not allowed (at least 2, to be whitened)")
    return count, total / count


def covariance_of(blocks: Blocks, count: int, mean: Array) -> Array:
    """Covariance over n, shape (D, D), in one pass, the same bits for any number of threads."""
    covariance = np.zeros((mean.size, mean.size))
    with one_thread():
        for block in blocks():
            check_deadline()
            centred = block - mean
            covariance += centred.T @ centred
    return covariance / count


def times_covariance(blocks: Blocks, count: int, mean: Array, v: Array) -> Array:
    """C V of the sample covariance C and V, shape (D, any), in one pass, without C."""
    products = np.zeros(v.shape)
    with one_thread():
        for block in blocks():
            check_deadline()
            centred = block - mean
            products += centred.T @ (centred @ v)
    return products / count


def sample_moments(samples: Array | Blocks) -> Moments:
    """Mean and covariance in two passes.

    The mean comes first, as second moments less its square have no digits where it is large.

    Refused if there are fewer than two samples, or an array has not two dimensions.
    """
    blocks = passes_of(samples)
    count, mean = sample_mean(blocks)
    return Moments(count, mean, covariance_of(blocks, count, mean))


# Dimension up to which the covariance matrix takes a fraction of a second, and from which it takes
# too much memory; passes over the samples that take as long as it does, times D over d.
_QUICK, _LARGE, _PASSES = 1024, 8192, 100
# Of the iteration in many dimensions: the largest residual |C u - lambda u| over the largest
# lambda, and the largest number of passes over the samples.
_TOLERANCE, _MOST = 1e-8, 200
_SMALL = 1e-12  # a variance this much smaller than the largest one is that of rounding


@dataclass(frozen=True, eq=False)
class Whitened:
    """The d leading principal components of samples in D dimensions."""

    count: int  # number of samples n
    mean: Array  # their mean, shape (D,)
    variances: Array  # the d largest eigenvalues of their covariance over n, largest first, (d,)
    directions: Array  # unit eigenvectors U, one a column, largest entries positive, shape (D, d)

    def scores(self, x: Array) -> Array:
        """Whitened scores (x - mean) U Lambda^-1/2, shape (n, d), of any samples (n, D)."""
        with one_thread():
            return np.ascontiguousarray((x - self.mean) @ self.unmixing)

    def all_scores(self, samples: Array | Blocks) -> Array:
        """Scores of samples in an array or in passes of blocks, one block after another."""
        return np.concatenate([self.scores(block) for block in passes_of(samples)()])

    @property
    def unmixing(self) -> Array:
        """U Lambda^-1/2, shape (D, d): ``unmixing @ w`` is the filter on x - mean of w."""
        return self.directions / np.sqrt(self.variances)


def whitened(samples: Array | Blocks, d: int | None = None) -> Whitened:
    """The d leading principal components of samples, None for all D.

    In few dimensions, or if d is more than a tenth of them, by LAPACK from the covariance matrix.
    In many, from products with the samples alone: by locally optimal block preconditioned conjugate
    gradients from random directions (Knyazev 2001) and, where these products do not suffice, by
    Lanczos iteration (ARPACK).

    Refused if there are fewer than two samples, d is not from 1 to D, the samples vary in fewer
    than d directions or not at all, or are not finite.
    """
    blocks = passes_of(samples)
    count, mean = sample_mean(blocks)
    size = mean.size
    d = size if d is None else d
    if not 1 <= d <= size:
        raise HdicaError(f"d = {d} is not allowed (from 1 to {size}, the dimension of the samples)")
    if not np.all(np.isfinite(mean)):
        raise HdicaError("samples that are not finite cannot be whitened (every one has to be)")
    with one_thread():
        if size <= max(_QUICK, min(_PASSES * d, _LARGE)) or d > size / 10:
            import scipy.linalg

            matrix = covariance_of(blocks, count, mean)
            rising = scipy.linalg.eigh(matrix, subset_by_index=[size - d, size - 1])
            values, vectors = rising[0][::-1], rising[1][:, ::-1]
        else:
            product = partial(times_covariance, blocks, count, mean)
            values, vectors = _of_products(product, size, d)
    largest = values[0]
    if not values[-1] > _SMALL * largest:
        varied = np.sum(values > _SMALL * largest) if largest > 0 else 0
        raise HdicaError(
            f"d = {d} is not allowed (the {count} samples vary in {varied} directions, and what "
            "does not vary cannot be whitened)"
        )
    at = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[at, np.arange(d)])
    return Whitened(count, mean, values.copy(), np.ascontiguousarray(vectors * signs))


def _of_products(product: Callable[[Array], Array], size: int, d: int) -> tuple[Array, Array]:
    from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg

    def one(v: Array) -> Array:
        return product(v.reshape(-1, 1)).ravel()

    operator = LinearOperator((size, size), matvec=one, matmat=product, dtype=np.float64)
    rng = np.random.Generator(np.random.SFC64(0))
    first = np.linalg.qr(rng.standard_normal((size, d)))[0]
    # It asks for residuals as they are: of no more than the largest eigenvalue times the share.
    scale = np.linalg.norm(product(first), axis=0).max() or 1.0
    with warnings.catch_warnings():
        # Whether it arrived is looked at below.
        warnings.simplefilter("ignore")
        values, vectors = lobpcg(operator, first, tol=_TOLERANCE * scale, maxiter=_MOST)
    residual = np.linalg.norm(product(vectors) - vectors * values, axis=0).max()
    if not residual <= _TOLERANCE * values.max():
        values, vectors = eigsh(operator, d, which="LA", v0=vectors.sum(axis=1), tol=_TOLERANCE)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]
