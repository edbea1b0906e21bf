"""All components of patches at once, as filters and as features, and what they look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.fastica.several import components
from hdica.finite.random.streams import Stream
from hdica.ingredients.contrasts import Contrast
from hdica.process.machine import one_thread
from hdica.systems.patch_ica.finite.patches import Training, directions

Array = NDArray[np.float64]


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
        As of :func:`hdica.finite.fastica.several.components`.
    """
    d = training.scores.shape[1]
    starts = directions(stream("starts"), d, d)
    with one_thread():
        found = components(
            training.scores, starts, contrast, symmetric=True, tolerance=tolerance,
            most=iterations,
        )  # fmt: skip
    order = np.argsort(-np.abs(found.score), kind="stable")[:kept]
    w, chance = found.w[order], directions(stream("chance"), len(order), d)
    return Bank(
        found.score[order],
        training.filters(w),
        training.features(w),
        training.filters(chance),
        training.features(chance),
        int(found.iterations.max()),
        bool(found.converged.all()),
    )
