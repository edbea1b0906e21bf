"""Training patches, whitened, what FastICA finds in them, and what other patches say about it.

Every held-out loss is a mean of G less the same mean along random directions, averaged over these:
below 0 where the projection has, for G = log cosh or -exp(-s^2/2), heavier tails and a sharper peak
than along a random direction. The paper ("Reduce and Conquer", Appendix A.1) says neither whether
projections of held-out patches have their variance made 1 again, nor in which space the random
directions lie; there are four ways, each with a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.fastica.iteration import best, components, fastica
from hdica.finite.fastica.whitening import Blocks, Whitened, sample_moments, whitened
from hdica.finite.random.streams import Stream
from hdica.ingredients.contrasts import Contrast
from hdica.inputs.images import Picture, kept_blocks, patch_blocks
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
IN_MEMORY = 2 * 10**8
"""Most numbers of training patches, n times D, in memory; more are streamed from disk."""


@dataclass(frozen=True, eq=False)
class Patches:
    """Where patches come from.

    Parameters
    ----------
    images
        Pictures, grey or in colour.
    width
        Pixels of a side.
    stream
        Random numbers by their part: ``"train"`` and ``"test"`` choose patches.
    """

    images: Sequence[Picture]
    width: int
    stream: Stream

    def blocks(self, part: str, count: int) -> Iterator[Array]:
        """The first ``count`` patches of a part, in blocks of shape (block, D)."""
        return patch_blocks(self.images, self.width, count, self.stream(part))

    @contextmanager
    def passes(self, part: str, count: int) -> Iterator[Blocks]:
        """Passes over the same patches, in memory or, if there are too many, on disk."""
        entries = self.width**2 * int(np.prod(self.images[0].pixels.shape[2:]))
        if count * entries > IN_MEMORY:
            with kept_blocks(self.blocks(part, count), count, entries) as stored:
                yield lambda: (np.array(block) for block in stored)
        else:
            blocks = list(self.blocks(part, count))
            yield lambda: blocks


@dataclass(frozen=True, eq=False)
class Training:
    """Training patches after whitening.

    Parameters
    ----------
    white
        Their mean and leading principal components.
    scores
        The whitened patches y, shape (n, d).
    passes
        Passes over the patches themselves.
    """

    white: Whitened
    scores: Array
    passes: Blocks

    def filters(self, w: Array) -> Array:
        """Filters on centred patches whose projections are w.y, shape (k, D), of w (k, d)."""
        with one_thread():
            return np.ascontiguousarray((self.white.unmixing @ w.T).T)

    def features(self, w: Array) -> Array:
        """What a unit of w.y adds to a patch, U Lambda^(1/2) w, shape (k, D), of w (k, d)."""
        with one_thread():
            mixing = self.white.directions * np.sqrt(self.white.variances)
            return np.ascontiguousarray((mixing @ w.T).T)

    def whitening_filters(self, v: Array) -> Array | None:
        """Filters of directions v, shape (k, D), in all D whitened coordinates.

        C = L L', and L^-1 (x - mean) is white: its coordinates are turned against those of the
        eigenvectors, which no uniform direction knows. None where C has no inverse.
        """
        import scipy.linalg

        with one_thread():
            try:
                root = np.linalg.cholesky(sample_moments(self.passes).covariance)
            except np.linalg.LinAlgError:
                return None
            filters = scipy.linalg.solve_triangular(root, v.T, lower=True, trans="T")
        return np.ascontiguousarray(filters.T) if np.all(np.isfinite(filters)) else None


@contextmanager
def trained(patches: Patches, count: int, rank: int) -> Iterator[Training]:
    """Draw and whiten ``count`` training patches in their ``rank`` leading components.

    Raises
    ------
    HdicaError
        If the patches vary in fewer directions.
    """
    with patches.passes("train", count) as passes:
        white = whitened(passes, rank)
        yield Training(white, white.all_scores(passes), passes)


def projections(patches: Patches, part: str, count: int, mean: Array, filters: Array) -> Array:
    """Projections a.(x - mean) of patches on filters a, shape (count, k)."""
    with one_thread():
        blocks = [(block - mean) @ filters.T for block in patches.blocks(part, count)]
    return np.concatenate(blocks)


def directions(rng: np.random.Generator, many: int, size: int) -> Array:
    """Uniform directions, shape (many, size)."""
    raw = rng.standard_normal((many, size))
    return np.asarray(raw / np.sqrt(np.sum(raw * raw, axis=1, keepdims=True)))


def standardised(s: Array) -> Array:
    """Projections, shape (count, k), with mean 0 and variance 1 each over the count."""
    centred = s - np.mean(s, axis=0)
    spread = np.sqrt(np.mean(centred * centred, axis=0))
    return np.asarray(centred / spread)


@dataclass(frozen=True, eq=False)
class Judged:
    """The directions of all iterations of the best start, on training and held-out patches.

    All losses have shape (iterations + 1,), from the start on.

    Parameters
    ----------
    test, raw
        Held-out mean of G less that of random directions of the space in which FastICA runs;
        projections have mean 0 and variance 1 over the held-out patches, or are as they are.
    test_ambient, raw_ambient
        The same less that of random directions of all D whitened dimensions; NaN where the
        covariance of the training patches has no inverse.
    train
        As ``test``, on the training patches.
    kurtosis
        Held-out excess kurtosis of the projection.
    filter
        The last filter, shape (D,).
    iterations, converged
        Of the best start.
    """

    test: Array
    raw: Array
    test_ambient: Array
    raw_ambient: Array
    train: Array
    kurtosis: Array
    filter: Array
    iterations: int
    converged: bool


@dataclass(frozen=True)
class Plan:
    """How FastICA runs, and on how much its result is judged.

    Parameters
    ----------
    contrast
        G.
    restarts, iterations, tolerance
        Starts, iterations at most and 1 - abs(w'.w) at which they end.
    test, random
        Numbers of held-out patches and of random directions.
    """

    contrast: Contrast
    restarts: int
    iterations: int
    tolerance: float
    test: int
    random: int


def judged(patches: Patches, training: Training, plan: Plan, stream: Stream) -> Judged:
    """Run FastICA on the training patches, and judge every iterate of its best start.

    Parameters
    ----------
    patches, training
        Patches, and those of them that were whitened.
    plan
        How.
    stream
        Random numbers of the starts and of the random directions.
    """
    d, size = training.scores.shape[1], training.white.mean.size
    starts = directions(stream("start"), plan.restarts, d)
    with one_thread():
        fit = fastica(
            training.scores, starts, plan.contrast, tolerance=plan.tolerance,
            most=plan.iterations, path=True,
        )  # fmt: skip
    j = best(fit)
    assert fit.path is not None
    path = fit.path[j][: int(fit.iterations[j]) + 1]
    around = directions(stream("directions"), plan.random, d)
    wide = _ambient(training, stream, plan.random) if d < size else None
    filters = [training.filters(path), training.filters(around)]
    filters += [] if wide is None else [wide]
    s = projections(patches, "test", plan.test, training.white.mean, np.concatenate(filters))
    test, raw = (_means(plan.contrast, one, len(path), plan.random) for one in (standardised(s), s))
    # In the whole space its directions and those of the subspace are the same.
    blind = d < size and wide is None
    ambient = [one[0] - one[-1] if not blind else np.full(len(path), np.nan) for one in (test, raw)]
    return Judged(
        test[0] - test[1],
        raw[0] - raw[1],
        ambient[0],
        ambient[1],
        _in_sample(training, path, around, plan.contrast),
        np.mean(standardised(s[:, : len(path)]) ** 4, axis=0) - 3,
        training.filters(path[-1:])[0],
        int(fit.iterations[j]),
        bool(fit.converged[j]),
    )


def _ambient(training: Training, stream: Stream, many: int) -> Array | None:
    """Filters of random directions of all D whitened dimensions."""
    v = directions(stream("ambient"), many, training.white.mean.size)
    return training.whitening_filters(v)


def _means(contrast: Contrast, s: Array, iterates: int, many: int) -> list[Array]:
    """Mean of G of each iterate, and over each set of ``many`` random directions."""
    mean = np.mean(contrast.value(s), axis=0)
    ends = range(iterates, mean.size, many)
    return [mean[:iterates], *(np.mean(mean[first : first + many]) for first in ends)]


def _in_sample(training: Training, path: Array, around: Array, contrast: Contrast) -> Array:
    """The loss on the training patches, whose projections have variance 1 as they are."""
    with one_thread():
        s = training.scores @ np.concatenate([path, around]).T
    first, random = _means(contrast, standardised(s), len(path), len(around))
    return np.asarray(first - random)


@dataclass(frozen=True, eq=False)
class Bank:
    """Components in the order of abs(score), the largest first.

    Parameters
    ----------
    score
        Mean of G over the training patches less E_N G, shape (k,).
    filters
        Filters on patches, shape (k, D).
    features
        What a unit of each component adds to a patch, shape (k, D): columns of the mixing matrix.
    chance_filters, chance_features
        The same of as many random directions in the same space.
    iterations, converged
        Of all components together.
    """

    score: Array
    filters: Array
    features: Array
    chance_filters: Array
    chance_features: Array
    iterations: int
    converged: bool


def bank(
    training: Training,
    contrast: Contrast,
    stream: Stream,
    *,
    kept: int,
    iterations: int,
    tolerance: float,
) -> Bank:
    """Find all d components by FastICA with symmetric decorrelation, and keep some of them.

    Parameters
    ----------
    training
        Whitened patches.
    contrast
        G.
    stream
        Random numbers of the starts and of the random directions.
    kept
        How many components are kept; all d if there are no more.
    iterations, tolerance
        As of :func:`hdica.finite.fastica.iteration.components`.
    """
    d = training.scores.shape[1]
    starts = directions(stream("starts"), d, d)
    with one_thread():
        fit = components(
            training.scores, starts, contrast, symmetric=True, tolerance=tolerance,
            most=iterations,
        )  # fmt: skip
    order = np.argsort(-np.abs(fit.score), kind="stable")[:kept]
    w, chance = fit.w[order], directions(stream("chance"), len(order), d)
    return Bank(
        fit.score[order],
        training.filters(w),
        training.features(w),
        training.filters(chance),
        training.features(chance),
        int(fit.iterations.max()),
        bool(fit.converged.all()),
    )
