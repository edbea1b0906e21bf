"""Online sparse PCA at finite dimension: all coordinates, and Oja's method by its overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.vector import VANISHED, GivenRule, VectorRule
from hdica.finite.random.streams import normal_numbers
from hdica.finite.record import not_finite
from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import STILL, Motion, Schedule
from hdica.ingredients.starts import Start
from hdica.systems.projected.family import chain_refusal, moving_chain_refusal


@dataclass(frozen=True)
class PCARule:
    """The update (5) of Wang and Lu 2016, with samples (1) of a spiked covariance model.

    ``"linearised"``: eta(x) = x - phi(x)/n as in (6), phi not multiplied by tau; ``"proximal"``:
    the proximal operator of Phi/n of which (6) is the linearisation, for phi = a*sign(x) + b*x.
    """

    omega: Schedule  # signal-to-noise ratio, >= 0, as a function of time
    prior: Prior
    start: Start
    schedule: Schedule
    regularizer: Formula
    variant: str = "linearised"
    batch: int = 1  # samples over which y y'x is averaged in one update
    motion: Motion = STILL
    noise: Source | None = None  # law of the entries of a; None for the normal one

    @property
    def vector(self) -> VectorRule:
        """The rule as the kernels on all coordinates take it."""
        from hdica.finite.projected.passes import PHI_OF_MOVED, PLAIN, SIGN_OF_MOVED, THRESHOLD
        from hdica.finite.projected.vector_kernels import LINEAR

        a, b = self.regularizer.elastic_net or (0.0, 0.0)
        if self.regularizer.elastic_net is None:
            kind = PHI_OF_MOVED
        elif self.regularizer.is_zero:
            kind = PLAIN
        else:
            kind = THRESHOLD if self.variant == "proximal" else SIGN_OF_MOVED

        # Where omega varies, the source is multiplied instead of the kernel: a single sample's by
        # the root of omega at rate 1, those of a batch, whole components along xi, by that of
        # 1 + omega at rate 0.
        fixed, more = self.omega.constant, float(self.batch > 1)
        rate = 1.0 - more if fixed is None else fixed

        def numbers(n: int) -> tuple[float, float, float, float]:
            if kind == PHI_OF_MOVED:
                return 1 / n, 1.0, 0.0, rate
            return a / n, 1 / (1 + b / n) if kind == THRESHOLD else 1 - b / n, 0.0, rate

        return VectorRule(
            model=LINEAR,
            sources=normal_numbers,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            phi=self.regularizer,
            kind=kind,
            numbers=numbers,
            batch=self.batch,
            amplitude=None if fixed is not None else _root(self.omega, more),
            motion=self.motion,
            noise=self.noise,
        )

    @property
    def on_data(self) -> GivenRule:
        """The rule as it acts on given samples."""
        phi, (a, b) = self.regularizer, self.regularizer.elastic_net or (0.0, 0.0)

        def shrink(x: Array, moved: Array, tau: float) -> Array:
            if self.variant == "linearised":
                return moved - phi.value(moved) / x.size
            left = np.maximum(np.abs(moved) - a / x.size, 0.0) / (1 + b / x.size)
            return np.asarray(np.copysign(left, moved))

        return GivenRule(lambda u: u, shrink, self.schedule, phi, self.batch)

    @property
    def chain(self) -> ChainRule:
        """Oja's method as the kernel of chains takes it, exact in law.

        A linear phi = beta*x scales x~ as a whole, by 1 - beta/n (linearised) or 1/(1 + beta/n)
        (proximal), which the normalisation undoes: it changes nothing, unless the first factor
        is negative or zero (n <= beta). The sample's component along xi is sqrt(1 + omega) c.
        """
        refusal = oja_chain_refusal(self)
        if refusal:
            raise HdicaError(refusal)
        beta, fixed = self.regularizer.slope_if_linear or 0.0, self.omega.constant
        signal = 1.0 if fixed is None else math.sqrt(1 + fixed)

        def scaling(n: int) -> float:
            return 1 / (1 + beta / n) if self.variant == "proximal" else 1 - beta / n

        def sources(rng: np.random.Generator) -> Callable[[int], Array]:
            draw = normal_numbers(rng)
            return lambda size: signal * draw(size)

        return ChainRule(
            sources=sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            nonlinearity=None,
            parameters=lambda n: (scaling(n) / n, scaling(n), 0.0),
            r=beta,
            batch=self.batch,
            why=lambda n: not_finite() if scaling(n) else VANISHED,
            amplitude=None if fixed is not None else _root(self.omega, 1.0),
        )


def _root(omega: Schedule, more: float) -> Schedule:
    """The root of omega plus a number, as a function of time."""
    return Schedule(lambda t: np.sqrt(omega.value(t) + more), None, omega.breaks)


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
    proximal = proximal_refusal(rule) if rule.variant == "proximal" else ""
    return chain_refusal(rule.regularizer) or proximal or moving_chain_refusal(rule.motion)
