"""Online sparse PCA at finite dimension: all coordinates, and Oja's method by its overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.observe import Observation, observe
from hdica.finite.record import begin, not_finite, record
from hdica.finite.streams import Stream
from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.save import NOTHING, Save
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]
VARIANTS = ("linearised", "proximal")


@dataclass(frozen=True)
class PCARule:
    """The update (5) of Wang and Lu 2016, with samples (1) of a spiked covariance model.

    Parameters
    ----------
    omega
        Signal-to-noise ratio, >= 0.
    prior, start, schedule
        Laws of the feature and of the first estimate, and step sizes tau(k/n).
    regularizer
        phi of eta(x) = x - phi(x)/n, eq. (6); it is not multiplied by tau.
    variant
        ``"linearised"``: eta as in (6); ``"proximal"``: the proximal operator of Phi/n of which
        (6) is the linearisation, for phi = a*sign(x) + b*x.

    Raises
    ------
    HdicaError
        If omega or the variant is not allowed.
    """

    omega: float
    prior: Prior
    start: Start
    schedule: Schedule
    regularizer: Formula
    variant: str = "linearised"

    def __post_init__(self) -> None:
        if not 0 <= self.omega < math.inf:
            raise HdicaError(f"omega = {self.omega!r} is not allowed (a finite number >= 0)")
        if self.variant not in VARIANTS:
            raise HdicaError(f"variant = {self.variant!r} is not known (allowed: {VARIANTS})")


def proximal_refusal(rule: PCARule) -> str:
    """Empty if the proximal operator of Phi is known, else the sentence that says why not."""
    net = rule.regularizer.elastic_net
    if net is None or min(net) < 0:
        return (
            f"variant 'proximal' is not allowed for the regularizer {rule.regularizer.text!r} "
            f"(allowed: a*sign(x) + b*x with a, b >= 0, or variant 'linearised')"
        )
    return ""


def oja_chain_refusal(rule: PCARule) -> str:
    """Empty if the reduction to Q is exact for this rule, else the sentence that says why not."""
    if rule.regularizer.slope_if_linear is None:
        return (
            f"method 'chain' is exact only for the regularizers 0 and beta*x, "
            f"not for {rule.regularizer.text!r} (use method 'vector')"
        )
    return proximal_refusal(rule) if rule.variant == "proximal" else ""


def _check(refusal: str) -> None:
    if refusal:
        raise HdicaError(refusal)


def _sources(stream: Stream) -> Callable[[int], Array]:
    rng = stream("source")
    return lambda size: rng.standard_normal(size)


def run_pca_vector(
    rule: PCARule, times: Array, n: int, stream: Stream, save: Save = NOTHING
) -> tuple[dict[str, Array], str]:
    """All n coordinates of online sparse PCA, step by step: exact.

    Parameters
    ----------
    rule
        The problem.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension, p in the paper.
    stream
        ``stream(part)``: the generator of one part of the point.
    save
        What to keep beyond the order parameters.

    Returns
    -------
    values
        ``Q`` = xi.x/n, the cosine, since |xi|^2 = |x|^2 = n; ``R`` = mean of x phi(x) and
        ``largest`` = max x_i^2/n, each of shape (T,); and what ``save`` asks for: see
        :func:`hdica.finite.observe.observe`.
    diverged
        Empty, or why the point stopped.

    Raises
    ------
    HdicaError
        If the proximal operator is not known, ``save`` asks for a snapshot that is not one of
        the times, or for a functional that is no formula.
    """
    if rule.variant == "proximal":
        _check(proximal_refusal(rule))
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.pca_kernels import GENERAL, SHRINK, THRESHOLD, pca_vector_steps

    xi, x = begin(rule.prior, rule.start, n, stream)
    work, noise, phi = np.empty(n), stream("noise"), rule.regularizer
    a, b = phi.elastic_net or (0.0, 0.0)
    linearised = GENERAL if phi.elastic_net is None else SHRINK
    kind = THRESHOLD if rule.variant == "proximal" else linearised

    def advance(source: Array, tau: Array) -> int:
        return int(
            pca_vector_steps(x, xi, work, source, tau, rule.omega, kind, a, b, phi.compiled, noise)
        )

    def why() -> str:
        return not_finite() if np.any(work) else "eta sent every entry to zero"

    observation = observe(xi, x, rule.prior, phi, save)
    return record(advance, observation, _sources(stream), rule.schedule, times, n, why)


def run_oja_chain(
    rule: PCARule, times: Array, n: int, stream: Stream
) -> tuple[dict[str, Array], str]:
    """Oja's method by its overlap alone, at a cost per step that does not depend on n.

    Exact in law. A linear phi = beta*x scales x~ as a whole, by 1 - beta/n (linearised) or
    1/(1 + beta/n) (proximal), which the normalisation undoes: it changes nothing, unless the
    first factor is negative or zero (n <= beta).

    Parameters, returns
        As :func:`run_pca_vector`, without ``largest``; ``R`` = beta, since |x|^2 = n.

    Raises
    ------
    HdicaError
        If the regularizer is neither 0 nor beta*x, or n < 3.
    """
    _check(oja_chain_refusal(rule))
    if n < 3:
        raise HdicaError(f"n = {n} is not allowed for method 'chain' (n >= 3)")
    from hdica.finite.pca_kernels import oja_chain_steps

    xi, x = begin(rule.prior, rule.start, n, stream)
    q = dot(xi, x) / n
    state, noise = np.array([q, math.sqrt(max(0.0, 1.0 - q * q))]), stream("noise")
    beta = rule.regularizer.slope_if_linear or 0.0
    scaling = 1.0 / (1.0 + beta / n) if rule.variant == "proximal" else 1.0 - beta / n

    def advance(source: Array, tau: Array) -> int:
        return int(oja_chain_steps(state, n, source, tau, rule.omega, scaling, noise))

    def measure() -> dict[str, float]:
        return {"Q": float(state[0]), "R": beta}

    def why() -> str:
        return not_finite() if scaling else "eta sent every entry to zero"

    return record(advance, Observation(measure), _sources(stream), rule.schedule, times, n, why)
