"""Samples of the subspace model, and the same centred, projected and whitened, as ICA takes them.

Latent variables, spikes and noise have a stream each, and are drawn in blocks of rows that are
aligned to the first sample: the samples do not depend on the portions in which they are taken.

A direction w in d whitened coordinates y = K U'(x - m) is the filter f = U K w on the inputs, and
the direction U w in the whitened inputs Sx with S = C^-1/2. Of the orthonormal U, shape (D, d), the
r rows of the spikes are enough: C, and the non-Gaussian direction v, follow from the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hdica.finite.fastica.whitening import sample_moments, whitened
from hdica.finite.random.streams import Stream, normal_numbers
from hdica.ingredients.plain import Array
from hdica.ingredients.sources import Source
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Take = Callable[[int], Array]  # ``take(count)``: the next ``count`` samples, one a row
ROWS, _NUMBERS = 4096, 2**20  # of a block of spikes; of one of noise, if it has several rows


def portions(block: Callable[[], Array]) -> Take:
    """Blocks of rows, handed out in any portions."""
    left: Array | None = None

    def take(count: int) -> Array:
        nonlocal left
        parts: list[Array] = []
        while not parts or count > 0:
            check_deadline()
            rows = block() if left is None or not len(left) else left
            parts.append(rows[:count])
            left, count = rows[count:], count - len(parts[-1])
        return np.concatenate(parts)

    return take


def rows_of(dimension: int) -> int:
    """Rows of a block in many dimensions."""
    return max(1, min(ROWS, _NUMBERS // max(1, dimension)))


@dataclass(frozen=True, eq=False)
class Spiked:
    """The subspace model in the basis in which its spikes are the first axes."""

    dimension: int  # D
    beta: Array  # strengths of the spikes, shape (r,)
    alpha: Array  # coefficients of v, of length one, shape (r,)
    source: Source  # law of the latent variable h

    @property
    def rank(self) -> int:
        """Number of spikes r."""
        return self.alpha.size

    def signal(self, stream: Stream) -> Take:
        """Coordinates of samples in the span of the spikes, (count, r): the rest is noise alone.

        sqrt(beta_rho) g_rho + h alpha_rho + z_rho with the noise z of covariance I - alpha alpha'.
        """
        normal, latent = normal_numbers(stream("spikes")), stream("latent")
        root = np.sqrt(self.beta)

        def block() -> Array:
            h = np.asarray(self.source.sample(latent, ROWS), dtype=float)[:, None]
            g, z = normal(2 * ROWS * self.rank).reshape(2, ROWS, self.rank)
            z -= np.sum(z * self.alpha, axis=1, keepdims=True) * self.alpha
            return root * g + h * self.alpha + z

        return portions(block)

    def samples(self, stream: Stream) -> Take:
        """Samples (3) in D dimensions, (count, D); their first r entries are :meth:`signal`."""
        signal, normal = self.signal(stream), normal_numbers(stream("noise"))
        rest = self.dimension - self.rank
        rows = rows_of(rest)
        noise = portions(lambda: normal(rows * rest).reshape(rows, rest))

        def take(count: int) -> Array:
            samples = np.empty((count, self.dimension))
            samples[:, : self.rank] = signal(count)
            samples[:, self.rank :] = noise(count)
            return samples

        return take

    def whitened(self, stream: Stream) -> Take:
        """Samples y of the reduced model (4), (count, r): signal over sqrt(1 + beta)."""
        signal, scale = self.signal(stream), np.sqrt(1 + self.beta)
        return lambda count: signal(count) / scale


def product(one: Array, other: Array) -> Array:
    """``one @ other``, summed in the same order whatever the number of rows."""
    return np.einsum("ij,jk->ik", one, other)


@dataclass(frozen=True, eq=False)
class Frame:
    """Whitened coordinates of the subspace model."""

    spiked: Spiked
    rows: Array  # first r rows of U, shape (r, d)
    unmixing: Array  # K, shape (d,) if it is diagonal, else symmetric of shape (d, d)
    sample: bool  # whether K is that of the sample, or of the population

    @property
    def size(self) -> int:
        """D."""
        return self.rows.shape[1]

    def scaled(self, x: Array) -> Array:
        """X K, row by row, shape (k, d)."""
        if self.unmixing.ndim == 1:
            return x * self.unmixing
        return product(x, self.unmixing)

    def coordinates(self, w: Array) -> Array:
        """U w along the spikes u^rho for directions w, (k, d): shape (k, r)."""
        return product(w, self.rows.T)

    def overlap(self, w: Array) -> Array:
        """Overlaps |(U w).(Sv)|/|Sv| of unit directions w, (k, d), with the whitened v: (k,)."""
        a = self.spiked.alpha / np.sqrt(1 + self.spiked.beta)
        along = np.sum(self.coordinates(w) * a, axis=1)
        return np.abs(along) / math.sqrt(np.sum(a * a))

    def correlation(self, w: Array) -> Array:
        """Correlations of f.x over the population with the best projection C^-1 v.x, (k,).

        |f.v|/(f'Cf v'C^-1 v)^1/2: those with h itself over the largest that a filter has.
        """
        filters = self.scaled(w)
        along = self.coordinates(filters)
        variance = np.sum(filters**2, axis=1) + np.sum(self.spiked.beta * along**2, axis=1)
        gamma = np.sum(self.spiked.alpha**2 / (1 + self.spiked.beta))
        return np.abs(np.sum(along * self.spiked.alpha, axis=1)) / np.sqrt(variance * gamma)

    @property
    def length(self) -> float:
        """Length of the projection of v on the span of U."""
        inside = np.sum(self.spiked.alpha[:, None] * self.rows, axis=0)
        return math.sqrt(np.sum(inside * inside))

    @property
    def signal(self) -> Array:
        """The direction along which y carries h, of length one, shape (d,).

        Whitened by the population y = K U'x carries h along K U'v. In samples whitened by
        themselves U K^-1 is what regresses x on y, so that it is along K^-1 U'C^-1 v: Reduce and
        Conquer 2025 has U = u^rho, and for both Sv/|Sv|.
        """
        spiked = self.spiked
        if self.sample:
            inside = np.sum((spiked.alpha / (1 + spiked.beta))[:, None] * self.rows, axis=0)
            whole = self.unmixing.ndim == 2
            e = np.linalg.solve(self.unmixing, inside) if whole else inside / self.unmixing
        else:
            inside = np.sum(spiked.alpha[:, None] * self.rows, axis=0)
            e = self.scaled(inside[None])[0]
        return e / math.sqrt(np.sum(e * e))

    def along(self, w: Array) -> Array:
        """Overlaps |w.e| of unit directions w, (k, d), with :attr:`signal`, shape (k,)."""
        return np.abs(np.sum(w * self.signal, axis=1))


def inverse_root(covariance: Array) -> Array:
    """C^-1/2 of a positive definite matrix, shape (d, d)."""
    values, vectors = np.linalg.eigh(covariance)
    return product(vectors / np.sqrt(values), vectors.T)


def symmetric_root(matrix: Array) -> Array:
    """The root of a symmetric matrix, of which rounding may make eigenvalues negative: (d, d)."""
    values, vectors = np.linalg.eigh(matrix)
    return product(vectors * np.sqrt(np.maximum(values, 0.0)), vectors.T)


def of_population(spiked: Spiked, rows: Array) -> Array:
    """K of the population in the span of U: (U'CU)^-1/2 with C = I + sum beta u u', (d, d)."""
    return inverse_root(np.eye(rows.shape[1]) + product(rows.T * spiked.beta, rows))


IN_MEMORY = 20_000_000  # numbers of samples, n D, of which more are drawn anew in every pass


@dataclass(frozen=True, eq=False)
class Prepared:
    """Whitened samples."""

    y: Array  # shape (n, d)
    frame: Frame  # what directions in these coordinates mean
    variances: Array  # of samples along U, the largest first, shape (d,); () if it is not estimated
    renew: Callable[[Stream], Take]  # ``renew(stream)(count)``: new samples in these coordinates


def known(spiked: Spiked, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Whitened samples of the reduced model (4), in the span of the true spikes, shape (n, r)."""
    x, r = spiked.signal(stream)(count), spiked.rank
    mean, unmixing = np.zeros(r), 1 / np.sqrt(1 + spiked.beta)
    if sample:
        moments = sample_moments(x)
        mean, unmixing = moments.mean, inverse_root(moments.covariance)
    frame = Frame(spiked, np.eye(r), unmixing, sample)
    y = np.ascontiguousarray(frame.scaled(x - mean))

    def renew(new: Stream) -> Take:
        signal = spiked.signal(new)
        return lambda size: frame.scaled(signal(size) - mean)

    return Prepared(y, frame, np.empty(0), renew)


def ambient(spiked: Spiked, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Samples in all D dimensions, (n, D), whitened as for :func:`known`."""
    if sample:
        blocks = passes(spiked, count, stream)
        white = whitened(blocks)
        rows, variances = white.directions[: spiked.rank].copy(), white.variances
        frame = Frame(spiked, rows, variances**-0.5, sample=True)
        y = white.all_scores(blocks)
        return Prepared(y, frame, variances, lambda new: _like(spiked, new, white.scores))
    scale = np.ones(spiked.dimension)
    scale[: spiked.rank] += spiked.beta
    frame = Frame(spiked, np.eye(spiked.rank, spiked.dimension), scale**-0.5, sample=False)
    y = frame.scaled(spiked.samples(stream)(count))
    return Prepared(y, frame, np.empty(0), lambda new: _like(spiked, new, frame.scaled))


def _like(spiked: Spiked, stream: Stream, transform: Callable[[Array], Array]) -> Take:
    """New samples in the same coordinates; in blocks, so that portions do not change their bits."""
    take, rows = spiked.samples(stream), rows_of(spiked.dimension)

    def block() -> Array:
        with one_thread():
            return transform(take(rows))

    return portions(block)


def principal(spiked: Spiked, d: int, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Samples in the span of their d leading principal components, (n, d)."""
    blocks = passes(spiked, count, stream)
    white = whitened(blocks, d)
    rows = white.directions[: spiked.rank].copy()

    def project(x: Array) -> Array:
        with one_thread():
            return x @ white.directions

    if sample:
        y, mean = white.all_scores(blocks), project(white.mean)
        frame = Frame(spiked, rows, white.variances**-0.5, sample=True)
    else:
        frame, mean = Frame(spiked, rows, of_population(spiked, rows), sample=False), np.zeros(d)
        y = np.concatenate([frame.scaled(project(block)) for block in blocks()])
    return Prepared(y, frame, white.variances, renewal(frame, mean))


def renewal(frame: Frame, mean: Array) -> Callable[[Stream], Take]:
    """New samples in the span of directions U that do not depend on them, shape (n, d).

    Of the noise outside of the spikes they see U'z, which has covariance I - R'R with the rows R
    of the spikes: it is drawn as such. ``mean`` is what is taken off U'x, shape (d,).
    """
    spiked, rows, d = frame.spiked, frame.rows, frame.size
    root = symmetric_root(np.eye(d) - product(rows.T, rows))

    def renew(stream: Stream) -> Take:
        signal, normal = spiked.signal(stream), normal_numbers(stream("noise"))

        def block() -> Array:
            noise = product(normal(ROWS * d).reshape(ROWS, d), root)
            return frame.scaled(product(signal(ROWS), rows) + noise - mean)

        return portions(block)

    return renew


def passes(spiked: Spiked, count: int, stream: Stream) -> Callable[[], Iterator[Array]]:
    """Passes over the first ``count`` samples of a stream, some rows at a time."""
    rows = rows_of(spiked.dimension)

    def draw() -> Iterator[Array]:
        take = spiked.samples(stream)
        return (take(min(rows, count - first)) for first in range(0, count, rows))

    if count * spiked.dimension > IN_MEMORY:
        return draw
    stored = list(draw())
    return lambda: iter(stored)
