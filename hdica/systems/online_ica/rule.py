"""Online ICA at finite n: all coordinates, and the chain of the overlap alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.vector import VectorRule
from hdica.finite.record import contiguous
from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """The update (2) of Wang and Lu 2017, with samples (1).

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

    def sources(self, rng: np.random.Generator) -> Callable[[int], Array]:
        """A function that continues the stream of sources."""
        return lambda size: contiguous(self.source.sample(rng, size))

    @property
    def vector(self) -> VectorRule:
        """The rule as the kernels on all coordinates take it."""
        from hdica.finite.projected.passes import PHI_OF_X, PLAIN, SIGN_OF_X
        from hdica.finite.projected.vector_kernels import NONLINEAR

        phi = self.regularizer
        slope, net = phi.slope_if_linear, phi.elastic_net
        if slope is not None:
            kind, numbers = PLAIN, (0.0, 1.0, slope, 0.0)
        elif net is not None:
            kind, numbers = SIGN_OF_X, (net[0], 1.0, net[1], 0.0)
        else:
            kind, numbers = PHI_OF_X, (1.0, 1.0, 0.0, 0.0)
        return VectorRule(
            model=NONLINEAR,
            sources=self.sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            phi=phi,
            kind=kind,
            numbers=lambda n: numbers,
            nonlinearity=self.nonlinearity,
        )

    @property
    def chain(self) -> ChainRule:
        """The rule as the kernel of chains takes it."""
        refusal = chain_refusal(self)
        if refusal:
            raise HdicaError(refusal)
        beta = self.regularizer.slope_if_linear or 0.0
        return ChainRule(
            sources=self.sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            nonlinearity=self.nonlinearity,
            parameters=lambda n: (-1 / n, 1.0, beta / n),
            r=beta,
        )


def chain_refusal(rule: Rule) -> str:
    """Empty if the reduction is exact for this rule, else the sentence that says why not."""
    if rule.regularizer.slope_if_linear is None:
        return (
            f"method 'chain' is exact only for the regularizers 0 and beta*x, "
            f"not for {rule.regularizer.text!r} (use method 'vector')"
        )
    return ""
