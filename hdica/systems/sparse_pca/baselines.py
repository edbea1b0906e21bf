"""Offline baselines of online PCA: the leading sample eigenvector, and penalised PCA.

The leading eigenvector of the covariance of all samples so far, its overlap at finite n and in
closed form as n goes to infinity; and problem (7) of Wang and Lu 2016 on the same samples,

    minimise E(x) = -x'S x/2 + sum Phi(x_i)   over |x|^2 = n,

with S the covariance of the first t n samples and Phi' = phi/tau, so that one step of the rule
(5) is a stochastic step on E. It is not convex: what is computed is a stationary point, the best
of several starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hdica.errors import HdicaError
from hdica.finite.random.streams import RUN, Stream
from hdica.finite.record import steps_of
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems.sparse_pca.rule import PCARule

# Samples are added to the covariance in blocks of this many, aligned to the absolute sample, so
# that a trajectory does not depend on the times at which it is recorded. It divides RUN.
BLOCK = 256


def sample_blocks(omega: float, xi: Array, stream: Stream) -> Iterator[Array]:
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
    return np.asarray(eigh(covariance, subset_by_index=(last, last), driver="evr")[1][:, 0])


def covariances(rule: PCARule, xi: Array, times: Array, stream: Stream) -> Iterator[Array | None]:
    """Covariance of the first m t n samples (batches of m) at each time; None before the first."""
    n, first, omega = xi.size, 0, rule.omega.constant
    assert omega is not None
    blocks = sample_blocks(omega, xi, stream)
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


CLOSE = 1e-10
"""Mean squared move of an entry at which the iteration ends."""
MOST = 20_000
"""Iterations of one start at most."""
COLUMNS = 4
"""Starts beside the leading eigenvector: the columns of S whose squared norms are largest."""


@dataclass(frozen=True)
class Penalty:
    """Phi(x) = a|x| + b x^2/2 with a, b >= 0; b is inert on the sphere."""

    a: float
    b: float

    def value(self, x: Array) -> float:
        """Sum of Phi over the entries of x."""
        return float(self.a * np.sum(np.abs(x)) + self.b * dot(x, x) / 2)


def penalty_of(rule: PCARule) -> Penalty:
    """Phi of a rule, or a sentence why (7) is not solved for it."""
    net, tau = rule.regularizer.elastic_net, rule.schedule.constant
    if net is None or min(net) < 0:
        raise HdicaError(
            "method 'penalised_pca' is not allowed for the regularizer "
            f"{rule.regularizer.text!r} (allowed: a*sign(x) + b*x with a, b >= 0)"
        )
    if tau is None:
        raise HdicaError(
            "method 'penalised_pca' is not allowed for a step size that varies (the penalty of (7) "
            "is that of phi/tau: give a number)"
        )
    return Penalty(net[0] / tau, net[1] / tau)


def on_sphere(v: Array, a: float) -> Array:
    """The x with |x|^2 = n that maximises v'x - a sum |x_i|: soft thresholding, then the length.

    Where the threshold leaves nothing, one entry is best: that of the largest abs(v).
    """
    x = np.sign(v) * np.maximum(np.abs(v) - a, 0.0)
    if not np.any(x):
        x = np.zeros(v.size)
        k = int(np.argmax(np.abs(v)))
        x[k] = 1.0 if v[k] >= 0 else -1.0
    return np.asarray(x * math.sqrt(v.size / dot(x, x)))


def iterated(covariance: Array, a: float, x: Array) -> Array:
    """A stationary point of E from a start, by soft thresholded power iterations.

    x <- the maximiser over the sphere of x'S x_k - a|x|_1, which apart from a constant is a lower
    bound of -E that touches it at x_k, because S is positive semidefinite: E never rises. It is
    the method ConGradU of Luss and Teboulle 2013 for an l1 penalty, and with a = 0 the power
    method.
    """
    for _ in range(MOST):
        check_deadline()
        moved = on_sphere(covariance @ x, a)
        change = dot(moved - x, moved - x) / x.size
        x = moved
        if change < CLOSE**2:
            break
    return x


def objective(covariance: Array, penalty: Penalty, x: Array) -> float:
    """E(x)/n of (7)."""
    return (penalty.value(x) - dot(x, covariance @ x) / 2) / x.size


def residual(covariance: Array, a: float, x: Array) -> float:
    """Largest departure from the conditions of a stationary point, of the size of S x.

    With the multiplier m = (x'S x - a|x|_1)/n: S x - a sign(x) = m x where x is not 0, and |S x|
    <= a where it is.
    """
    force = covariance @ x
    m = (dot(x, force) - a * float(np.sum(np.abs(x)))) / x.size
    inside = x != 0
    on = np.abs(force[inside] - a * np.sign(x[inside]) - m * x[inside])
    off = np.maximum(np.abs(force[~inside]) - a, 0.0)
    return float(np.max(np.concatenate([on, off]))) / max(float(np.max(np.abs(force))), 1e-300)


def penalised(covariance: Array, penalty: Penalty) -> Array:
    """The best stationary point of (7) from several starts, |x|^2 = n.

    Starts are the leading eigenvector and columns of S, as is usual for such methods;
    without a penalty the first is the solution.
    """
    n = len(covariance)
    first = leading_vector(covariance) * math.sqrt(n)
    if penalty.a == 0:
        return first
    norms = np.sum(covariance * covariance, axis=0)
    columns = np.argsort(-norms, kind="stable")[:COLUMNS]
    best, lowest = first, math.inf
    for start in (first, *(on_sphere(covariance[:, k], 0.0) for k in columns)):
        x = iterated(covariance, penalty.a, start)
        value = objective(covariance, penalty, x)
        if value < lowest:
            best, lowest = x, value
    return best


def run_penalised(
    rule: PCARule, times: Array, n: int, stream: Stream
) -> tuple[dict[str, Array], str]:
    """Penalised PCA of the first t n samples: what the online rule is measured against.

    ``Q`` is the overlap |xi.x|/n of the solution, ``objective`` E/n, ``residual`` that of its
    conditions and ``nonzero`` the share of entries that are not 0: NaN before the first sample.
    It needs n^2 numbers of memory and some hundred products of S with a vector a time.
    """
    penalty, xi = penalty_of(rule), rule.prior.feature(stream("start"), n)
    measures = {k: np.full(times.size, np.nan) for k in ("Q", "objective", "residual", "nonzero")}
    with one_thread():
        for index, covariance in enumerate(covariances(rule, xi, times, stream)):
            if covariance is not None:
                x = penalised(covariance, penalty)
                measures["Q"][index] = abs(dot(xi, x)) / n
                measures["objective"][index] = objective(covariance, penalty, x)
                measures["residual"][index] = residual(covariance, penalty.a, x)
                measures["nonzero"][index] = np.count_nonzero(x) / n
    return measures, ""
