"""The offline problem (7) of Wang and Lu 2016 on the samples so far: penalised PCA.

    minimise E(x) = -x'S x/2 + sum Phi(x_i)   over |x|^2 = n,

with S the covariance of the first t n samples and Phi' = phi/tau, so that one step of the rule
(5) is a stochastic step on E. It is not convex: what is computed is a stationary point, the best
of several starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream
from hdica.ingredients.quadrature import dot
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems.sparse_pca.rule import PCARule
from hdica.systems.sparse_pca.sample_pca import covariances, leading_vector

Array = NDArray[np.float64]
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


def soft(v: Array, a: float) -> Array:
    """Soft thresholding: the proximal operator of a|x|."""
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - a, 0.0))


def on_sphere(v: Array, a: float) -> Array:
    """The x with |x|^2 = n that maximises v'x - a sum |x_i|: soft thresholding, then the length.

    Where the threshold leaves nothing, one entry is best: that of the largest abs(v).
    """
    x = soft(v, a)
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
    """The best stationary point of (7) that is found, |x|^2 = n.

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
        found = iterated(covariance, penalty.a, start)
        value = objective(covariance, penalty, found)
        if value < lowest:
            best, lowest = found, value
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
    told = {k: np.full(times.size, np.nan) for k in ("Q", "objective", "residual", "nonzero")}
    with one_thread():
        for index, covariance in enumerate(covariances(rule, xi, times, stream)):
            if covariance is not None:
                x = penalised(covariance, penalty)
                told["Q"][index] = abs(dot(xi, x)) / n
                told["objective"][index] = objective(covariance, penalty, x)
                told["residual"][index] = residual(covariance, penalty.a, x)
                told["nonzero"][index] = np.count_nonzero(x) / n
    return told, ""
