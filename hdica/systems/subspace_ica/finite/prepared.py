"""Samples of the subspace model, centred, projected and whitened, as ICA takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream, normal_numbers
from hdica.finite.whitening.moments import sample_moments
from hdica.finite.whitening.principal import Whitened, whitened
from hdica.process.machine import one_thread
from hdica.systems.subspace_ica.finite.draws import ROWS, Portions, Spiked, Take, rows_of
from hdica.systems.subspace_ica.finite.frame import (
    Frame,
    inverse_root,
    of_population,
    product,
    symmetric_root,
)

Array = NDArray[np.float64]
IN_MEMORY = 20_000_000
"""Most numbers of samples, n times D, that are kept; more are drawn anew in every pass."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Whitened samples.

    Parameters
    ----------
    y
        Samples, shape (n, d).
    frame
        What directions in these coordinates mean.
    variances
        Variances of the samples along U, largest first, shape (d,); of no size in a space that is
        not estimated.
    renew
        Begins a stream of new samples in the same coordinates: ``renew(stream)(count)``.
    """

    y: Array
    frame: Frame
    variances: Array
    renew: Callable[[Stream], Take]


def known(spiked: Spiked, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Samples in the span of the true spikes: the reduced model (4), (n, r).

    They are whitened by their own mean and covariance, or by those of the population.
    """
    x, r = spiked.signal(stream)(count), spiked.rank
    mean, unmixing, variances = np.zeros(r), 1 / np.sqrt(1 + spiked.beta), np.empty(0)
    if sample:
        moments = sample_moments(x)
        mean, unmixing = moments.mean, inverse_root(moments.covariance)
    frame = Frame(spiked, np.eye(r), unmixing, sample)
    y = np.ascontiguousarray(frame.scaled(x - mean))

    def renew(new: Stream) -> Take:
        signal = spiked.signal(new)
        return lambda size: frame.scaled(signal(size) - mean)

    return Prepared(y, frame, variances, renew)


def ambient(spiked: Spiked, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Samples in all D dimensions, (n, D), whitened as for :func:`known`."""
    if sample:
        blocks = passes(spiked, count, stream)
        found = whitened(blocks)
        frame = Frame(
            spiked, found.directions[: spiked.rank].copy(), found.variances**-0.5, sample=True
        )
        return Prepared(
            found.all_scores(blocks),
            frame,
            found.variances,
            lambda new: _like(spiked, new, found.scores),
        )
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

    return Portions(block).take


def principal(spiked: Spiked, d: int, count: int, stream: Stream, *, sample: bool) -> Prepared:
    """Samples in the span of their d leading principal components, (n, d)."""
    blocks = passes(spiked, count, stream)
    found = whitened(blocks, d)
    rows = found.directions[: spiked.rank].copy()
    if sample:
        y, mean = found.all_scores(blocks), _project(found, found.mean)
        frame = Frame(spiked, rows, found.variances**-0.5, sample=True)
    else:
        frame = Frame(spiked, rows, of_population(spiked, rows), sample=False)
        mean = np.zeros(d)
        y = np.concatenate([frame.scaled(_project(found, block)) for block in blocks()])
    return Prepared(y, frame, found.variances, renewal(frame, mean))


def _project(found: Whitened, x: Array) -> Array:
    """X U, shape (n, d), or (d,) of one sample."""
    with one_thread():
        return np.asarray(x @ found.directions)


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

        return Portions(block).take

    return renew


def passes(spiked: Spiked, count: int, stream: Stream) -> Callable[[], Iterator[Array]]:
    """Passes over the first ``count`` samples of a stream, some rows at a time."""
    rows = rows_of(spiked.dimension)

    def draw() -> Iterator[Array]:
        take = spiked.samples(stream)
        return (take(min(rows, count - first)) for first in range(0, count, rows))

    if count * spiked.dimension > IN_MEMORY:
        return draw
    kept = list(draw())
    return lambda: iter(kept)
