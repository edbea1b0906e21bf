"""Principal components and whitened scores of the subspace model, exact in law, without samples.

Samples X = [A, Z] have the signal A, (n, r), in the span of the spikes and normal noise Z, (n,
D - r), elsewhere. Centred, A = Q R with orthonormal Q, (n, r), and the law of Z does not change by
rotations of its rows or columns: the part of Z orthogonal to Q and to the vector of ones is O B P
with O, P uniformly random orthogonal and B bidiagonal, with independent chi variables as entries
(Golub and Kahan 1965; Dumitriu and Edelman 2002, J. Math. Phys. 43), and

    X = [Q, Q_perp O] [[R, Z_1], [0, B]] [I, P],

with Z_1, (r, D - r), normal. The singular vectors of the sparse matrix in the middle, of at most
r + min(n, D) rows, give all that ICA in the principal components needs, at a cost that grows like
D + n r in place of n D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream, normal_numbers
from hdica.ingredients.plain import Array
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems.subspace_ica.samples import (
    Frame,
    Prepared,
    Spiked,
    of_population,
    product,
    renewal,
    symmetric_root,
)

DENSE = 400  # rows or columns up to which all singular vectors are computed


@dataclass(frozen=True, eq=False)
class Middle:
    """The matrix [[R, E], [0, B]], of shape (r + k, r + D - r)."""

    triangle: Array  # R, shape (r, r)
    edge: Array  # E, shape (r, D - r)
    diagonal: Array  # of B, whose shape is (k, D - r), shape (k,)
    above: Array  # to the right of it

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        r, rest = self.edge.shape
        return r + self.diagonal.size, r + rest

    def times(self, x: Array) -> Array:
        """The product with a vector from the right."""
        check_deadline()
        r, k, above = len(self.triangle), self.diagonal.size, self.above
        out = np.empty(r + k)
        out[:r] = self.triangle @ x[:r] + self.edge @ x[r:]
        out[r:] = self.diagonal * x[r : r + k]
        out[r : r + above.size] += above * x[r + 1 : r + 1 + above.size]
        return out

    def transposed(self, y: Array) -> Array:
        """The product of the transposed matrix with a vector."""
        r, k, above = len(self.triangle), self.diagonal.size, self.above
        out = np.empty(self.shape[1])
        out[:r] = self.triangle.T @ y[:r]
        out[r:] = self.edge.T @ y[:r]
        out[r : r + k] += self.diagonal * y[r:]
        out[r + 1 : r + 1 + above.size] += above * y[r : r + above.size]
        return out

    def dense(self) -> Array:
        """All of it."""
        r, k, above = len(self.triangle), self.diagonal.size, self.above
        matrix = np.zeros(self.shape)
        matrix[:r, :r], matrix[:r, r:] = self.triangle, self.edge
        matrix[r + np.arange(k), r + np.arange(k)] = self.diagonal
        at = np.arange(above.size)
        matrix[r + at, r + 1 + at] = above
        return matrix


def middle(triangle: Array, count: int, dimension: int, stream: Stream) -> Middle:
    """Draw the matrix in the middle of ``count`` samples in so many dimensions."""
    r = len(triangle)
    rows, columns = count - 1 - r, dimension - r
    k = min(rows, columns)
    chi = stream("bidiagonal")
    diagonal = np.sqrt(chi.chisquare(rows - np.arange(k, dtype=float)))
    # One entry more than rows where there are fewer rows than columns.
    width = k if rows < columns else max(0, k - 1)
    above = np.sqrt(chi.chisquare(columns - 1 - np.arange(width, dtype=float)))
    edge = normal_numbers(stream("edge"))(r * columns).reshape(r, columns)
    return Middle(triangle, edge, diagonal, above)


def leading(matrix: Middle, d: int, start: Array) -> tuple[Array, Array, Array]:
    """The d leading singular triplets: left vectors in columns, values, and right vectors.

    Lanczos iterations (ARPACK) to machine precision, from a given vector of length ``columns``;
    dense where the matrix is small. Refused if the iterations do not converge.
    """
    size = min(matrix.shape)
    with one_thread():
        if size <= max(DENSE, 2 * d):
            left, values, right = np.linalg.svd(matrix.dense(), full_matrices=False)
            return left[:, :d], values[:d], right[:d].T
        return _lanczos(matrix, d, start)


def _lanczos(matrix: Middle, d: int, start: Array) -> tuple[Array, Array, Array]:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    tall = matrix.shape[0] >= matrix.shape[1]
    both = (matrix.times, matrix.transposed)
    inner, outer = both if tall else both[::-1]
    start = start if tall else matrix.times(start)
    size = min(matrix.shape)
    operator = LinearOperator((size, size), matvec=lambda x: outer(inner(x.ravel())), dtype=float)
    try:
        ncv = min(size, max(4 * d + 1, 40))
        squares, near = eigsh(operator, k=d, which="LA", v0=start, ncv=ncv, maxiter=100_000)
    except ArpackNoConvergence as exc:
        raise HdicaError(
            f"the {d} leading principal components were not found ({exc}); fewer of them may be"
        ) from None
    squares, near = squares[::-1], near[:, ::-1]
    values = np.sqrt(squares)
    far = np.stack([inner(one) for one in near.T], axis=1) / values
    return (far, values, near) if tall else (near, values, far)


def frame_of(count: int, q: Array, size: int, stream: Stream) -> Array:
    """A uniformly random frame of orthonormal columns, (n, size), orthogonal to Q and to ones."""
    f = normal_numbers(stream("frame"))(count * size).reshape(count, size)
    for _ in range(2):  # once more, for what rounding leaves of Q in a long column
        f = f - np.mean(f, axis=0)
        f = f - q @ (q.T @ f)
    basis, triangle = np.linalg.qr(f)
    # Unique, and so uniformly distributed, with a positive diagonal (Mezzadri 2007).
    return basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def rotated(spiked: Spiked, d: int, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Whitened samples in the span of their d leading principal components, exact in law.

    As :func:`hdica.systems.subspace_ica.samples.principal` makes them of the samples; there are at
    least r + 2 of these, and more than d.
    """
    r = spiked.rank
    signal = spiked.signal(stream)(count)
    mean = np.mean(signal, axis=0)
    with one_thread():
        q, triangle = np.linalg.qr(signal - mean)
        matrix = middle(triangle, count, spiked.dimension, stream)
        start = stream("lanczos").standard_normal(matrix.shape[1])
        left, values, right = leading(matrix, d, start)
        turn = np.linalg.qr(left[r:])[1]
        y = np.sqrt(count) * (q @ left[:r] + frame_of(count, q, turn.shape[0], stream) @ turn)
    rows, variances = np.ascontiguousarray(right[:r]), values**2 / count
    # U'm of the sample mean m: noise has one that depends on nothing else.
    root = symmetric_root(np.eye(d) - product(rows.T, rows))
    noise = product(stream("mean").standard_normal((1, d)), root)[0] / np.sqrt(count)
    shift = product(mean[None], rows)[0] + noise
    if sample:
        frame = Frame(spiked, rows, variances**-0.5, sample=True)
    else:
        frame = Frame(spiked, rows, of_population(spiked, rows), sample=False)
        y, shift = frame.scaled(y * np.sqrt(variances) + shift), np.zeros(d)
    return Prepared(np.ascontiguousarray(y), frame, variances, renewal(frame, shift))
