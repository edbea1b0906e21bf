"""Robust regression on the sphere: a rule that none of the papers has, and its limit.

Samples y are standard normal and their labels c = xi.y/sqrt(n); the estimate follows

    x <- x + (tau/sqrt n) k tanh((c - u)/k) y,    u = x.y/sqrt(n),    then |x|^2 = n,

least mean squares with steps that outliers cannot make long. It is of the family of projected
rules, by the push G(u, c) = k tanh((c - u)/k): simulations and limits are those of the family.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hdica import plug_in as hd
from hdica.ingredients.contrasts import Push, parse_push
from hdica.systems import fields
from hdica.systems.projected import family
from hdica.systems.projected.pushed import pushed_methods


class RobustRegression(hd.Parameters):
    """Regression with a normalised estimate and bounded steps."""

    tau: fields.StepSize = Field(description=fields.SCHEDULE)
    scale: float = Field(1.0, gt=0, description="k: errors beyond it count no more than it")
    source: fields.SourceSpec = Field("gaussian", description="law of the label c")
    regularizer: fields.FormulaText = Field("0", description="phi, a formula in `x`")
    prior: fields.PriorSpec = Field("dense", description=fields.PRIORS)
    start: fields.StartSpec = Field({"overlap": 0.1}, description=fields.STARTS)
    constants: dict[str, float] = Field({}, description=fields.CONSTANTS)

    aliases: ClassVar = fields.ALIASES
    formulas: ClassVar = {"tau": "t", "regularizer": "x"}
    sized_by: ClassVar = {"feature": "prior"}

    def dims(self) -> dict[str, tuple[float, ...]]:
        """The value of xi in each group of entries."""
        return {"feature": tuple(fields.prior(self).group_values.tolist())}


def push(system: RobustRegression) -> Push:
    """G of the update."""
    return parse_push("k*tanh((c - u)/k)", {"k": system.scale})


SYSTEM = hd.System(
    parameters=RobustRegression,
    title="Robust regression on the sphere",
    papers=(hd.Paper("this example", "A rule of one's own"),),
    order_parameters=(family.OVERLAP, family.PENALTY),
    controls=(family.TAU,),
    dimensions=(family.FEATURE,),
    symbols=family.SYMBOLS,
    examples=({"tau": 0.3}, {"tau": 0.3, "regularizer": "0.2*sign(x)", "prior": {"sparse": 0.3}}),
    methods=pushed_methods(push, "robust regression on the sphere", "this example"),
)
