"""Hebbian ICA: the rule (13) of Rattray 2002 and its simulation at finite n.

M. Rattray, "Stochastic trapping in a solvable model of on-line independent component analysis",
Neural Computation 14 (2002). Its N is called n here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hdica.errors import HdicaError, speaking_of
from hdica.systems.fields import (
    CONSTANTS,
    LAWS,
    SCHEDULE,
    FormulaText,
    Rate,
    SourceSpec,
    check_real,
    formula,
    is_number,
)
from hdica.systems.hebbian_ica.fields import (
    Beginning,
    Sigma,
    check_start,
    given_rate,
    in_unit,
    signs,
    sources,
    start_overlap,
)
from hdica.systems.hebbian_ica.finite.rule import HebbianRule
from hdica.systems.parameters import Parameters


class HebbianICA(Parameters):
    """Hebbian ICA: K projections of data x = A_s s + A_n g with M sources s and n - M normals g.

    The weights follow W <- W + eta x phi(y)' Sigma + alpha W (I - W'W) with y = W'x (Rattray
    2002, eq. (13), Sigma on the right); the overlaps are R = W'A_s, shape (K, M), and Q = W'W.
    Time is t = k/n.

    Parameters
    ----------
    sources
        Laws of s, a list of at least one: see :func:`hdica.ingredients.sources.make_source`.
    projections
        K, at least 1.
    nonlinearity
        phi, a formula in x.
    sigma
        Diagonal of Sigma: K entries +1 or -1; ``"stability"``, which takes eq. (14), or
        ``"escape"``, which takes eq. (23), each for the source that a projection starts nearest
        to (source i mod M where it is near none); or ``"adaptive"``, the sign of a running mean
        of y phi(y) - phi'(y) (Hyvarinen and Oja 1998), in simulations of all coordinates only.
    mu, eta, nu
        The step size in one of three units, mu = n eta and nu = n^2 eta: a number > 0, a formula
        in t, or ``{"steps": {"times", "values"}}``.
    alpha
        Strength of the orthogonalisation, in (0, 2); from 1 on W'W = I is not approached evenly,
        and the limit holds for alpha < 1.
    start
        W at t = 0, always with W'W = I: ``{"overlap": R0}`` with a number (K = M = 1) or a
        K x M matrix; ``"zero"``, R = 0; or ``"random"``, a random rotation, with R of order
        n^-1/2.
    threshold
        Size of R_ij from which on projection i has found source j, in (0, 1): for escape times
        alone, nothing else depends on it.
    constants
        Numbers for named constants in the formulas.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    sources: list[SourceSpec] = Field(
        ["uniform"],
        min_length=1,
        description=f"a list of laws, one a source: {LAWS}",
    )
    projections: int = Field(1, ge=1, description="number of projections K")
    nonlinearity: FormulaText = Field("x**3", description="a formula in `x`")
    sigma: Sigma = Field(
        "stability",
        description=(
            "signs of the update, a list of +1 and -1; or the rule that decides them: "
            "`stability` (eq. 14), `escape` (eq. 23), `adaptive` (a running mean, `vector` "
            "only)"
        ),
    )
    mu: Rate = Field(
        None,
        description=f"μ = nη, one of the three is required: {SCHEDULE}. The limit `ode` needs it",
    )
    eta: Rate = Field(None, description="the step size η, likewise")
    nu: Rate = Field(None, description="ν = n²η, likewise: escape times as n → ∞ need it")
    alpha: float = Field(0.5, description="strength of the orthogonalisation, in (0, 2)")
    start: Beginning = Field(
        "random",
        description=(
            "`{overlap: R0}` with a number or a matrix (rows are projections), `zero`, or `random`"
        ),
    )
    threshold: float = Field(
        0.8,
        description="size of R_ij at which a source counts as found, for escape times alone",
    )
    constants: dict[str, float] = Field(
        {},
        description=(
            f"{CONSTANTS}; `{{mu: mu0/(t + 100)}}` with `mu0` in the grid sweeps an annealed rate"
        ),
    )

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {"R0": ("start", "overlap")}
    formulas: ClassVar[Mapping[str, str]] = {"mu": "t", "eta": "t", "nu": "t", "nonlinearity": "x"}
    sized_by: ClassVar[Mapping[str, str]] = {
        "projection": "projections",
        "other": "projections",
        "source": "sources",
        "row": "projections",
        "column": "sources",
    }

    @field_validator("alpha", "threshold", mode="before")
    @classmethod
    def _inside(cls, value: Any, info: ValidationInfo) -> Any:
        name, most = info.field_name, 2 if info.field_name == "alpha" else 1
        if not is_number(value) or not 0 < value < most:
            raise HdicaError(f"{name} = {value!r} is not allowed (0 < {name} < {most})")
        return float(value)

    @model_validator(mode="after")
    def _consistent(self) -> HebbianICA:
        given_rate(self)
        check_real(self, "nonlinearity")
        if formula(self, "nonlinearity").is_zero:
            text = "nonlinearity = 0 is not allowed (nothing would be learned)"
            raise HdicaError(text, ["nonlinearity"])
        with speaking_of("start"):
            check_start(self)
        if self.sigma != "adaptive":
            with speaking_of("sigma"):
                signs(self)
        return self

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: projections and sources, once more for Q and eigenmatrices."""
        projections = tuple(range(self.projections))
        numbers = tuple(range(len(self.sources)))
        return {
            "projection": projections,
            "other": projections,
            "source": numbers,
            "row": projections,
            "column": numbers,
        }


def rule(system: HebbianICA) -> HebbianRule:
    """The update (13), as the finite-n kernels take it."""
    return HebbianRule(
        sources=sources(system),
        projections=system.projections,
        nonlinearity=formula(system, "nonlinearity"),
        signs=None if system.sigma == "adaptive" else signs(system),
        step_size=cache(partial(in_unit, "eta", system)),
        alpha=system.alpha,
        start=start_overlap(system),
    )


def chain_refusal(system: HebbianICA) -> str:
    """Empty if the chain is exact for this system, else the sentence that says why not."""
    if system.sigma == "adaptive":
        return "method 'chain' needs fixed signs (sigma = 'adaptive': use method 'vector')"
    return ""
