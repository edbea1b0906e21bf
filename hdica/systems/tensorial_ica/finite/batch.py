"""Offline baselines of online tensorial ICA: one component from all samples at once.

Samples are X = A Z with an orthonormal mixing A and Z of i.i.d. sources of unit variance. Both
algorithms look for a critical point of the empirical kurtosis of a projection y = w.X, |w| = 1:
FastICA with the cubic contrast (Hyvarinen and Oja 1997, Neural Comput. 9, eq. 17) and gradient
ascent with an exact line search (Zarzoso and Comon 2010, IEEE Trans. Neural Netw. 21). They see
the samples a block at a time, so that memory does not grow with their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.sources import Source
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems.tensorial_ica.finite.samples import (
    IN_MEMORY,
    Blocks,
    Samples,
    whitening_of,
)

Array = NDArray[np.float64]
TOLERANCE = 1e-14
"""Of 1 - abs(w'.w) of the last two iterates: half of the squared angle between them."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """One component found offline.

    ``vector`` u is the unit vector, shape (d,), whose projection u.X of the observed samples is the
    estimate of a source, up to scale; ``tan2`` is the squared tangent of the angle between u and
    the nearest column of the mixing matrix, of index ``component``.
    """

    vector: Array
    tan2: float
    component: int
    iterations: int
    converged: bool


def nearest_axis(v: Array) -> tuple[float, int]:
    """Squared tangent of the angle to the nearest axis, and the index of that axis.

    The other squares are summed: 1 - v_m^2 would have no digits near the axis.
    """
    m = int(np.argmax(np.abs(v)))
    squares = v**2
    largest = float(squares[m])
    squares[m] = 0.0
    return float(np.sum(squares)) / largest, m


def batch_fastica(
    blocks: Blocks,
    start: Array,
    mixing: Array | None = None,
    *,
    whiten: bool = True,
    tolerance: float = TOLERANCE,
    most: int = 200,
) -> Estimate:
    """One-unit FastICA with the cubic contrast: w <- Pi{mean(y^3 x) - 3 mean(y^2) w}.

    The iteration of the first component of ``sklearn.decomposition.FastICA(algorithm="deflation",
    fun="cube")``, which itself always extracts as many components as it keeps dimensions and does
    not say which of them converged.

    Parameters
    ----------
    blocks
        Passes over the observed samples X, as ``passes`` of the module ``samples`` makes them.
    start
        First w, shape (d,), not zero.
    mixing
        The true A, shape (d, d), that the error is measured against; None for the identity.
    whiten
        Whether the sample mean and covariance are made 0 and I first; else x = X, which the model
        allows, as it has mean 0 and covariance I in expectation.
    tolerance, most
        The iteration has converged once 1 - abs(w'.w) is below the tolerance, and is given up after
        ``most`` iterations.

    Raises
    ------
    HdicaError
        If the start is no direction, or the sample covariance has no inverse.
    """

    def update(samples: Samples, w: Array) -> Array:
        push, square, _ = samples.cubic(w)
        return push - 3 * square * w

    return _iterate(update, blocks, start, mixing, whiten, tolerance, most)


def batch_gradient(
    blocks: Blocks,
    start: Array,
    mixing: Array | None = None,
    *,
    sign: float | None = None,
    whiten: bool = True,
    tolerance: float = TOLERANCE,
    most: int = 1000,
) -> Estimate:
    """Gradient ascent of sgn mean(y^4) on the sphere, with an exact line search.

    The direction is that of the online rule averaged over all samples, sgn mean(y^3 x) without its
    part along w. Along a great circle the objective is a quartic form in cosine and sine, whose
    highest point is found exactly, from a second pass: there is no step size to choose.

    Parameters
    ----------
    blocks, start, mixing, whiten, tolerance, most
        As in :func:`batch_fastica`.
    sign
        sgn = sign(mu4 - 3), 1 or -1; None for that of the empirical kurtosis of the first
        projection, mean(y^4) - 3 mean(y^2)^2.

    Raises
    ------
    HdicaError
        If the start is no direction, the sign is neither, or the covariance has no inverse.
    """
    if sign not in (None, 1, -1):
        raise HdicaError(f"sign = {sign} is not allowed (1, -1, or None to estimate it)")
    known = sign

    def update(samples: Samples, w: Array) -> Array:
        nonlocal known
        push, square, fourth = samples.cubic(w)
        if known is None:
            known = math.copysign(1.0, fourth - 3 * square * square)
        along = push - float(np.sum(push * w)) * w
        size = math.sqrt(float(np.sum(along * along)))
        if size == 0:
            return w
        direction = known * along / size
        angle = highest(known * samples.quartic(w, direction))
        return math.cos(angle) * w + math.sin(angle) * direction

    return _iterate(update, blocks, start, mixing, whiten, tolerance, most)


def highest(form: Array) -> float:
    """Angle in [-pi/2, pi/2] at which sum_j form_j cos^(4-j) sin^j is largest, shape (5,).

    With t = tan(angle) the form is P(t)/(1 + t^2)^2; where its derivative vanishes,
    P'(t) (1 + t^2) = 4 t P(t), of which the terms t^5 cancel.
    """
    a, b, c, d, e = form
    slopes = [-d, 4 * e - 2 * c, 3 * (d - b), 2 * c - 4 * a, b]
    with np.errstate(all="ignore"):
        roots = np.roots(slopes)
    # A double root may come out as a pair with imaginary parts of the root of the rounding.
    angles = np.append(np.arctan(roots.real[np.abs(roots.imag) < 1e-6 * (1 + abs(roots))]), 0.5)
    angles[-1] = math.pi / 2
    powers = np.arange(5)[:, None]
    terms = form[:, None] * np.cos(angles) ** (4 - powers) * np.sin(angles) ** powers
    return float(angles[int(np.argmax(np.sum(terms, axis=0)))])


def _iterate(
    update: Callable[[Samples, Array], Array],
    blocks: Blocks,
    start: Array,
    mixing: Array | None,
    whiten: bool,
    tolerance: float,
    most: int,
) -> Estimate:
    """Iterate w <- Pi update(w) until it stands still, up to its sign, and measure its error."""
    w = unit(start)
    converged, iterations = False, 0
    with one_thread():
        samples = Samples(blocks, whitening_of(blocks) if whiten else None)
        while iterations < most and not converged:
            check_deadline()
            new = unit(update(samples, w))
            converged = abs(abs(float(np.sum(new * w))) - 1) < tolerance
            w, iterations = new, iterations + 1
        u = unit(samples.unmixing(w))
        tan2, component = nearest_axis(u if mixing is None else mixing.T @ u)
    return Estimate(u, tan2, component, iterations, converged)


def unit(w: Array) -> Array:
    """A vector over its length.

    Raises
    ------
    HdicaError
        If it is zero or not finite.
    """
    size = math.sqrt(float(np.sum(w * w)))
    if not 0 < size < math.inf:
        raise HdicaError(f"start of length {size} is not allowed (a direction: finite, not zero)")
    return np.asarray(w / size)


def all_components(
    blocks: Blocks,
    starts: Array,
    mixing: Array | None = None,
    *,
    algorithm: str = "deflation",
    tolerance: float = TOLERANCE,
    most: int = 200,
) -> list[Estimate]:
    """All d components from whitened samples by scikit-learn's FastICA with the cubic contrast.

    What recovery of all components online is measured against. The samples are kept in memory.

    Parameters
    ----------
    blocks, mixing, tolerance, most
        As in :func:`batch_fastica`.
    starts
        First iterates in whitened coordinates, one a row, shape (d, d).
    algorithm
        ``"deflation"``, one component after another, or ``"parallel"``, all with symmetric
        orthogonalisation.

    Returns
    -------
    The components in the order of the rows; ``iterations`` is the largest number that one needed,
    and ``converged`` says whether that is below ``most``.

    Raises
    ------
    HdicaError
        If the samples are more than are kept in memory, the starts of another shape, or the
        algorithm is neither.
    """
    if algorithm not in ("deflation", "parallel"):
        raise HdicaError(
            f"algorithm = {algorithm!r} is not allowed "
            f"({suggestion(algorithm, ('deflation', 'parallel'))})"
        )
    observed = np.concatenate(list(blocks()))
    if observed.size > IN_MEMORY:
        raise HdicaError(
            f"samples times dimension = {observed.size} is not allowed for all components "
            f"(at most {IN_MEMORY}: they are kept in memory)"
        )
    if starts.shape != 2 * observed.shape[1:]:
        raise HdicaError(
            f"starts of shape {starts.shape} are not allowed (one row a component: "
            f"{2 * observed.shape[1:]})"
        )
    from sklearn.decomposition import FastICA  # a second, and only this baseline needs it

    with one_thread():
        white = whitening_of(blocks)
        ica = FastICA(
            algorithm=algorithm, whiten=False, fun="cube", max_iter=most, tol=tolerance,
            w_init=starts,
        )  # fmt: skip
        ica.fit((observed - white.centre) @ white.matrix)
        found = [unit(row) for row in ica.components_ @ white.matrix]
        errors = [nearest_axis(u if mixing is None else mixing.T @ u) for u in found]
    done = ica.n_iter_ < most
    return [
        Estimate(u, tan2, m, int(ica.n_iter_), done)
        for u, (tan2, m) in zip(found, errors, strict=True)
    ]


def batch_level(source: Source, dimension: int, count: int, *, whiten: bool) -> float:
    """Mean tan^2 of both estimators, (d - 1) V/T to first order in 1/T.

    Let w = e_1 + omega with omega orthogonal to e_1 in the coordinates of the sources, and D the
    error of the sample covariance. Critical points of mean(y^4) on the sphere satisfy
    mean(y^3 x) = lambda w, to first order for every k > 1

        no whitening:  mean(Z_1^3 Z_k) + 3 omega_k = mu4 omega_k,
        whitening:     mean((Z_1^3 - mu3) Z_k) + 3 omega_k - (3 + mu4) D_1k/2 = mu4 omega_k,

    and the unit vector u that unmixes has u_k = omega_k, with whitening u_k = omega_k - D_1k/2, so
    that (mu4 - 3) u_k is mean(Z_1^3 Z_k), with whitening mean((Z_1^3 - mu3 - mu4 Z_1) Z_k). The
    variances, times T, are

        no whitening:  V = mu6/(mu4 - 3)^2,
        whitening:     V = (mu6 - mu4^2 - mu3^2)/(mu4 - 3)^2,

    the second that of deflation FastICA (Ollila 2010, IEEE Trans. Signal Process. 58). Whitening
    never increases it. For sources of two values, whose centred cube is a multiple of themselves,
    V vanishes and so does the error: only that of an iteration which stops is left. Without
    whitening V is that of the online rule with eta = 1/(beta t), which averages the same
    Z_1^3 Z_k over the same samples and loses nothing; with a last step size eta = c ln T/(beta T)
    the error of the online rule is c ln(T)/2 times as large.

    Means of simulations over this are, for whitened and other samples, 0.988(16) and 1.021(16) for
    uniform sources, d = 10, T = 40000, and 1.031(24) and 1.037(24) for Laplace, T = 80000.

    Parameters
    ----------
    source, dimension, count
        The law of the sources, d and the number of samples T.
    whiten
        As in :func:`batch_fastica`.

    Raises
    ------
    HdicaError
        If the source has no sixth moment, or a fourth moment of 3.
    """
    mu3, mu4, mu6 = (source.moment(k) for k in (3, 4, 6))
    if not (math.isfinite(mu6) and abs(mu4 - 3) > 1e-12):
        raise HdicaError(
            f"source {source.label} is not allowed (a finite sixth moment, and a fourth moment "
            f"other than 3; they are {mu6:g} and {mu4:g})"
        )
    variance = mu6 - mu4**2 - mu3**2 if whiten else mu6
    return (dimension - 1) * max(variance, 0.0) / ((mu4 - 3) ** 2 * count)
