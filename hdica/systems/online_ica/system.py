"""Online ICA: the rule (1)-(2) of Wang and Lu 2017 and its limit (6)-(14).

C. Wang and Y. M. Lu, "The scaling limit of high-dimensional online independent component
analysis", NIPS 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averages, check_finite
from hdica.limits.mean_field.family import MeanField
from hdica.limits.moving.path import Moving, moving_of
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.nonlinear import drift_of
from hdica.systems.fields import (
    ALIASES,
    CONSTANTS,
    LAWS,
    MOTIONS,
    MOVING,
    PRIORS,
    SCHEDULE,
    STARTS,
    FormulaText,
    MotionSpec,
    PriorSpec,
    SourceSpec,
    StartSpec,
    StepSize,
    check_real,
    closed_refusal,
    formula,
    motion,
    prior,
    schedule,
    source,
)
from hdica.systems.parameters import Parameters
from hdica.systems.projected.pushed import pushed_field, pushed_rule
from hdica.systems.projected.rule import ProjectedRule

Array = NDArray[np.float64]


class OnlineICA(Parameters):
    """Online ICA with one feature: y = xi c/sqrt(n) + a, a normal with covariance I - xi xi'/n.

    The estimate follows x <- x - (tau/sqrt n) f(y.x/sqrt n) y - (tau/n) phi(x), then
    |x|^2 = n (Wang and Lu 2017, eq. (1)-(2)); time is t = k/n.

    Parameters
    ----------
    tau
        Step size: a number > 0, a formula in t, or ``{"steps": {"times", "values"}}``.
    source
        Law of c, standardised to mean 0 and variance 1: see
        :func:`hdica.ingredients.sources.make_source`. With f = +x^3 the feature is found for
        sub-Gaussian sources (fourth moment below 3), with f = -x^3 for super-Gaussian ones.
    nonlinearity
        f, a formula in x.
    regularizer
        phi, a formula in x, applied to each entry of the estimate.
    prior
        Law of the entries of the feature: see :func:`hdica.ingredients.priors.make_prior`.
    start
        Law of the estimate at t = 0: see :func:`hdica.ingredients.starts.make_start`.
    motion
        How the feature moves: see :func:`hdica.ingredients.motions.make_motion`. None: it stays;
        ``{"exchange": delta}``: each entry changes places with another at the rate delta per unit
        of time; ``{"jumps": {"times", "share"}}``: at each time a share of them is permuted.
    constants
        Numbers for named constants in the formulas.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    tau: StepSize = Field(description=SCHEDULE)
    source: SourceSpec = Field("uniform", description=LAWS)
    nonlinearity: FormulaText = Field(
        "x**3",
        description="a formula in `x`: `tanh(x)`, `x**3 - 3*x`",
    )
    regularizer: FormulaText = Field(
        "0",
        description="a formula in `x` and constants: `beta*sign(x)`",
    )
    prior: PriorSpec = Field("dense", description=PRIORS)
    start: StartSpec = Field({"overlap": 0.5}, description=STARTS)
    motion: MotionSpec = Field(None, description=MOTIONS)
    constants: dict[str, float] = Field({}, description=CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {**ALIASES, **MOVING}
    formulas: ClassVar[Mapping[str, str]] = {"tau": "t", "nonlinearity": "x", "regularizer": "x"}
    sized_by: ClassVar[Mapping[str, str]] = {"feature": "prior"}

    @model_validator(mode="after")
    def _formulas(self) -> OnlineICA:
        schedule(self)
        motion(self)
        for name in ("nonlinearity", "regularizer"):
            check_real(self, name)
        if formula(self, "nonlinearity").is_zero:
            text = "nonlinearity = 0 is not allowed (nothing would be learned)"
            raise HdicaError(text, ["nonlinearity"])
        return self

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the value of xi in each group of entries."""
        return {"feature": tuple(prior(self).group_values.tolist())}


def rule(system: OnlineICA) -> ProjectedRule:
    """The update (2), as the finite-n kernels take it."""
    return pushed_rule(system, formula(system, "nonlinearity"))


def limit_refusal(system: OnlineICA) -> str:
    """Empty if the overlap alone closes the limit, else the sentence that says why not."""
    return closed_refusal(system) or without_limit(system)


@lru_cache(maxsize=256)
def infinite_averages(f: Formula, law: Source) -> str:
    """Empty if the averages of f and a source are finite, else the sentence that says so.

    For all overlaps they are found when first used: whoever checks a study need not wait.
    """
    try:
        check_finite(f, law)
    except HdicaError as exc:
        return str(exc)
    return ""


def without_limit(system: OnlineICA) -> str:
    """Empty if the limit exists for any phi, else the sentence that says why not."""
    return infinite_averages(formula(system, "nonlinearity"), source(system))


def drift(system: OnlineICA) -> Drift:
    """Drift of Q for phi = 0 or beta x: dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2.

    G = tau (<c f(u)> - Q <f'(u)>) has the sign opposite to the printed (11), as (12) and (14)
    need; Lambda = tau^2 <f(u)^2> is (9). A linear phi is inert, because |x|^2 = n.
    """
    refusal = limit_refusal(system)
    if refusal:
        raise HdicaError(refusal)
    return drift_of(formula(system, "nonlinearity"), source(system))


def moving(system: OnlineICA) -> Moving | None:
    """The limit of Q where xi moves; None where it does not."""
    if not motion(system).moves:
        return None
    return moving_of(mean_field(system), drift(system))


def mean_field(system: OnlineICA) -> MeanField:
    """The limit (6)-(10) for any phi: b = -G(Q), g = Lambda(Q)/2, B = tau.

    Gamma = x [Q G + tau R - Lambda/2] - xi G - tau phi(x) is (10), with the sign of G corrected.
    """
    return pushed_field(system, averages(formula(system, "nonlinearity"), source(system)))
