"""How far from Gaussian a direction is on patches that it was not found on.

Every loss is a mean of G less the same mean along random directions, averaged over these: below 0
where the projection has, for G = log cosh or -exp(-s^2/2), heavier tails and a sharper peak than
along a random direction. The paper ("Reduce and Conquer", Appendix A.1) says neither whether
projections of held-out patches have their variance made 1 again, nor in which space the random
directions lie; there are four ways, which are told apart by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.fastica.found import best
from hdica.finite.fastica.one_unit import fastica
from hdica.finite.random.streams import Stream
from hdica.ingredients.contrasts import Contrast
from hdica.systems.patch_ica.finite.patches import (
    Patches,
    Training,
    directions,
    one_thread,
    projections,
    standardised,
)

Array = NDArray[np.float64]


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
        The filter that is found, shape (D,).
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
        found = fastica(
            training.scores, starts, plan.contrast, tolerance=plan.tolerance,
            most=plan.iterations, path=True,
        )  # fmt: skip
    j = best(found)
    assert found.path is not None
    path = found.path[j][: int(found.iterations[j]) + 1]
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
        int(found.iterations[j]),
        bool(found.converged[j]),
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
