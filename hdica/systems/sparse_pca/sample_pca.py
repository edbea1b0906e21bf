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
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
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


def leading_vector(covariance: Array) -> Array:
    """The unit eigenvector of the largest eigenvalue, shape (n,)."""
    from scipy.linalg import eigh

    last = len(covariance) - 1
    _, vectors = eigh(covariance, subset_by_index=(last, last), driver="evr")
    return np.asarray(vectors[:, 0])


def covariances(rule: PCARule, xi: Array, times: Array, stream: Stream) -> Iterator[Array | None]:
    """Covariance of the first m t n samples (batches of m) at each time; None before the first."""
    n, first, omega = xi.size, 0, rule.omega.constant
    assert omega is not None
    blocks = _blocks(omega, xi, stream)
    full, block = np.zeros((n, n)), np.empty((0, n))
    for count in rule.batch * steps_of(times, n):
        while first + len(block) < count:
            check_deadline()
            full += block.T @ block
            first += len(block)
            block = next(blocks)
        part = block[: count - first]
        yield (full + part.T @ part) / count if count else None


def run_sample_pca(
    rule: PCARule, times: Array, n: int, stream: Stream
) -> tuple[dict[str, Array], str]:
    """Overlap of the leading eigenvector of the sample covariance of the first t n samples.

    The offline estimate that an online rule is measured against: it needs n^2 numbers of memory,
    n^2 operations a sample and n^3 an output time. Of the rule only omega and the prior matter;
    with a batch of m these are the m t n samples that the rule has seen.
    ``Q`` = |xi.v|/sqrt(n) with the unit eigenvector v is NaN before the first sample, and has the
    same bits for any number of BLAS threads; a divergence there is none.
    """
    xi = rule.prior.feature(stream("start"), n)
    overlap = np.full(times.size, np.nan)
    with one_thread():
        for index, covariance in enumerate(covariances(rule, xi, times, stream)):
            if covariance is not None:
                overlap[index] = abs(dot(xi, leading_vector(covariance))) / math.sqrt(n)
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
