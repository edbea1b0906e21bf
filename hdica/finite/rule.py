"""Projected stochastic gradient with a rank-one feature, at finite n: vector and chain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.observe import Observation, observe
from hdica.finite.record import begin, contiguous, record
from hdica.finite.streams import Stream
from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.save import NOTHING, Save
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """What the finite-n kernels need of a problem.

    Parameters
    ----------
    source, prior, start, schedule
        Laws and step sizes.
    nonlinearity, regularizer
        f and phi of the update.
    """

    source: Source
    prior: Prior
    start: Start
    schedule: Schedule
    nonlinearity: Formula
    regularizer: Formula


def _sources(rule: Rule, stream: Stream) -> Callable[[int], Array]:
    rng = stream("source")
    return lambda size: contiguous(rule.source.sample(rng, size))


def run_vector(
    rule: Rule, times: Array, n: int, stream: Stream, save: Save = NOTHING
) -> tuple[dict[str, Array], str]:
    """All n coordinates, step by step: exact.

    Parameters
    ----------
    rule
        The problem.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension.
    stream
        ``stream(part)``: the generator of one part of the point.
    save
        What to keep beyond the order parameters.

    Returns
    -------
    values
        ``Q`` = xi.x/n, ``R`` = mean of x phi(x) and ``largest`` = max x_i^2/n, each of shape
        (T,), and what ``save`` asks for: see :func:`hdica.finite.observe.observe`.
    diverged
        Empty, or why the point stopped.

    Raises
    ------
    HdicaError
        If ``save`` asks for a snapshot that is not one of the times, or a functional that is
        no formula.
    """
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.kernels import GENERAL, LINEAR, NO_REGULARIZER, vector_steps

    xi, x = begin(rule.prior, rule.start, n, stream)
    work, noise = np.empty(n), stream("noise")
    phi = rule.regularizer
    beta = phi.slope_if_linear
    kind = GENERAL if beta is None else (LINEAR if beta else NO_REGULARIZER)

    def advance(source: Array, tau: Array) -> int:
        f = rule.nonlinearity.compiled
        return int(
            vector_steps(x, xi, work, source, tau, kind, beta or 0.0, f, phi.compiled, noise)
        )

    observation = observe(xi, x, rule.prior, phi, save)
    return record(advance, observation, _sources(rule, stream), rule.schedule, times, n)


def chain_refusal(rule: Rule) -> str:
    """Empty if the reduction is exact for this rule, else the sentence that says why not."""
    if rule.regularizer.slope_if_linear is None:
        return (
            f"method 'chain' is exact only for the regularizers 0 and beta*x, "
            f"not for {rule.regularizer.text!r} (use method 'vector')"
        )
    return ""


def run_chain(rule: Rule, times: Array, n: int, stream: Stream) -> tuple[dict[str, Array], str]:
    """The overlap alone, at a cost per step that does not depend on n: exact in law.

    Parameters, returns
        As :func:`run_vector`; ``R`` = beta, since |x|^2 = n.

    Raises
    ------
    HdicaError
        If the regularizer is neither 0 nor beta*x, or n < 3.
    """
    refusal = chain_refusal(rule)
    if refusal:
        raise HdicaError(refusal)
    if n < 3:
        raise HdicaError(f"n = {n} is not allowed for method 'chain' (n >= 3)")
    from hdica.finite.kernels import chain_steps

    xi, x = begin(rule.prior, rule.start, n, stream)
    q = dot(xi, x) / n
    state = np.array([q, math.sqrt(max(0.0, 1.0 - q * q))])
    beta, noise = rule.regularizer.slope_if_linear or 0.0, stream("noise")
    f = rule.nonlinearity.compiled

    def advance(source: Array, tau: Array) -> int:
        return int(chain_steps(state, n, source, tau, beta, f, noise))

    def measure() -> dict[str, float]:
        return {"Q": float(state[0]), "R": beta}

    sources = _sources(rule, stream)
    return record(advance, Observation(measure), sources, rule.schedule, times, n)
