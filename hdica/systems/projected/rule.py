"""Rules of the family by their push: x <- x + n^-1/2 tau G(u, c) y - (tau/n) phi(x), |x|^2 = n.

G is any smooth formula of u = x.y/sqrt(n) and of c, the sample's component along the feature, whose
law is the source's; a rule of another paper is an instance with a G of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.vector import GivenRule, VectorRule
from hdica.finite.record import contiguous
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import STILL, Motion, Schedule
from hdica.ingredients.sources import Source
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]


def acting(phi: Formula) -> tuple[int, tuple[float, float, float]]:
    """How a regularizer times tau/n acts on x, and its numbers, as the kernels take them."""
    from hdica.finite.projected.passes import PHI_OF_X, PLAIN, SIGN_OF_X

    slope, net = phi.slope_if_linear, phi.elastic_net
    if slope is not None:
        return PLAIN, (0.0, 1.0, slope)
    if net is not None:
        return SIGN_OF_X, (net[0], 1.0, net[1])
    return PHI_OF_X, (1.0, 1.0, 0.0)


@dataclass(frozen=True)
class ProjectedRule:
    """A rule as the engines at finite n take it.

    Parameters
    ----------
    source, prior, start, schedule
        Laws of c, of the feature's entries and of the first estimate, and step sizes tau(k/n).
    push
        G as a formula in u and c; or f, a formula in u alone that is descended along: G = -f(u).
    regularizer
        phi.
    batch
        Samples over which G y is averaged in one update, all at the same x.
    motion
        How the feature moves.
    """

    source: Source
    prior: Prior
    start: Start
    schedule: Schedule
    push: Push | Formula
    regularizer: Formula
    batch: int = 1
    motion: Motion = STILL

    def sources(self, rng: np.random.Generator) -> Callable[[int], Array]:
        """A function that continues the stream of c."""
        return lambda size: contiguous(self.source.sample(rng, size))

    @property
    def sign(self) -> float:
        """-1 for a rule that descends along f, G = -f(u)."""
        return -1.0 if isinstance(self.push, Formula) else 1.0

    @property
    def vector(self) -> VectorRule:
        """The rule as the kernels on all coordinates take it."""
        from hdica.finite.projected.vector_kernels import NONLINEAR

        kind, numbers = acting(self.regularizer)
        return VectorRule(
            model=NONLINEAR,
            sources=self.sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            phi=self.regularizer,
            kind=kind,
            numbers=lambda n: (*numbers, self.sign),
            nonlinearity=self.push,
            batch=self.batch,
            motion=self.motion,
        )

    @property
    def given(self) -> GivenRule:
        """The rule as it acts on given samples, for a push G = -f(u)."""
        f, phi = self.push, self.regularizer
        if not isinstance(f, Formula):
            raise TypeError("a push of u and c cannot act on samples whose c is not known")

        def shrink(x: Array, moved: Array, tau: float) -> Array:
            return moved - tau / x.size * phi.value(x)

        return GivenRule(lambda u: np.asarray(-f.value(u)), shrink, self.schedule, phi, self.batch)

    @property
    def chain(self) -> ChainRule:
        """The rule as the kernel of chains takes it, exact in law for a linear phi."""
        refusal = chain_refusal(self.regularizer) or moving_chain_refusal(self.motion)
        if refusal:
            raise HdicaError(refusal)
        beta = self.regularizer.slope_if_linear or 0.0
        return ChainRule(
            sources=self.sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            nonlinearity=self.push,
            parameters=lambda n: (self.sign / n, 1.0, beta / n),
            r=beta,
            batch=self.batch,
        )


def chain_refusal(phi: Formula) -> str:
    """Empty if the overlap alone is a chain, else the sentence that says why not."""
    if phi.slope_if_linear is None:
        return (
            f"method 'chain' is exact only for the regularizers 0 and beta*x, "
            f"not for {phi.text!r} (use method 'vector')"
        )
    return ""


def moving_chain_refusal(motion: Motion) -> str:
    """Empty if the feature stays, else why the overlap alone is no chain."""
    if motion.moves:
        return (
            "method 'chain' is exact only for a feature that stays: where entries change places "
            "the overlap alone is no chain (use method 'vector')"
        )
    return ""
