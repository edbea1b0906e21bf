"""The baseline of online PCA: the leading eigenvector of the covariance of all samples so far.

Its overlap is computed at finite n, and in closed form as n goes to infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdica.finite.random.streams import RUN, Stream
from hdica.finite.record import steps_of
from hdica.ingredients.quadrature import dot
from hdica.process.threads import one_thread
from hdica.systems.sparse_pca.rule import PCARule

Array = NDArray[np.float64]
# Samples are added to the covariance in blocks of this many, aligned to the absolute sample, so
# that a trajectory does not depend on the times at which it is recorded. It divides RUN.
BLOCK = 256


def _blocks(omega: float, xi: Array, stream: Stream) -> Iterator[Array]:
    """Samples y = sqrt(omega/n) c xi + a, eq. (1) of Wang and Lu 2016, shape (BLOCK, n)."""
    source, noise = stream("source"), stream("noise")
    n = xi.size
    while True:
        run = source.standard_normal(RUN)
        for first in range(0, RUN, BLOCK):
            c = run[first : first + BLOCK]
            yield math.sqrt(omega / n) * c[:, None] * xi + noise.standard_normal((BLOCK, n))


def _leading(covariance: Array, xi: Array) -> float:
    """Absolute overlap of xi with the eigenvector of the largest eigenvalue."""
    from scipy.linalg import eigh

    last = xi.size - 1
    _, vectors = eigh(covariance, subset_by_index=(last, last), driver="evr")
    return abs(dot(xi, vectors[:, 0])) / math.sqrt(xi.size)


def run_sample_pca(
    rule: PCARule, times: Array, n: int, stream: Stream
) -> tuple[dict[str, Array], str]:
    """Overlap of the leading eigenvector of the sample covariance of the first t n samples.

    The offline estimate that an online rule is measured against: it needs n^2 numbers of memory,
    n^2 operations a sample and n^3 an output time. Of the rule only omega and the prior matter.
    ``Q`` = |xi.v|/sqrt(n) with the unit eigenvector v is NaN before the first sample, and has the
    same bits for any number of BLAS threads; a divergence there is none.
    """
    xi = rule.prior.feature(stream("start"), n)
    omega = rule.omega.constant
    assert omega is not None
    blocks = _blocks(omega, xi, stream)
    overlap = np.full(times.size, np.nan)
    full, block = np.zeros((n, n)), np.empty((0, n))
    first = 0
    with one_thread():
        for index, count in enumerate(steps_of(times, n)):
            while first + len(block) < count:
                full += block.T @ block
                first += len(block)
                block = next(blocks)
            if count:
                part = block[: count - first]
                overlap[index] = _leading((full + part.T @ part) / count, xi)
    return {"Q": overlap}, ""


def sample_pca_overlap(omega: float, t: ArrayLike) -> Array:
    """Overlap |Q| of the feature with the leading eigenvector of the sample covariance.

    For samples of covariance I + omega xi xi'/n, |xi|^2 = n, and k = t n of them, as n goes to
    infinity at fixed t,

        Q^2 = (1 - 1/(t omega^2)) / (1 + 1/(t omega))   if t omega^2 > 1, else 0.

    Transition: Baik, Ben Arous and Péché 2005, Ann. Probab. 33; eigenvector: Paul 2007, Stat.
    Sinica 17, and Benaych-Georges and Nadakuditi 2011, Adv. Math. 227.
    """
    times = np.asarray(t, dtype=float)
    above = np.maximum(times * omega**2 - 1, 0.0)
    # Below the transition the numerator is 0; the maximum avoids 0/0 at t omega (omega, t) = 0.
    return np.asarray(np.sqrt(above / np.maximum(times * omega**2 + omega, 1e-300)))
