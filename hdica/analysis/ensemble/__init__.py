"""The whole ensemble of runs in time, beside theory: settings and record."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator

from hdica.analysis.record import question
from hdica.analysis.settings import Levels, Methods, Names, Needs, Outputs, Run, Settings, Variable
from hdica.errors import HdicaError

Values = Annotated[
    tuple[FiniteFloat, ...], BeforeValidator(lambda v: (v,) if isinstance(v, int | float) else v)
]


class Ensemble(Settings):
    """All runs in time, and when each first goes below a value, beside theory."""

    simulation: Run
    variable: Variable = ""
    theory: Annotated[Methods, Needs(False, over=("time", ""))] = Field(
        default=(), description="methods that predict the variable, over time or as one level"
    )
    predicted: Names = Field(
        default=(),
        description="outputs of theory: one, or one for each method or each of one method "
        "(default: the variable)",
    )
    bound: Annotated[str | None, Needs(False, over=("time", ""))] = Field(
        default=None, description="method that gives bounds, or terms of one"
    )
    terms: Names = Field(default=(), description="outputs of bound, a curve each")
    power: float = Field(
        default=1.0, gt=0, description="power to which terms are raised before they are drawn"
    )
    levels: Levels = Field(default={})
    log: bool | Literal["both"] = Field(
        default=True,
        description="logarithmic axis of the variable; both: of time too (default: true)",
    )
    runs: int = Field(default=12, ge=0, le=12, description="single runs that are drawn, 0 to 12")
    crossings: Values = Field(
        default=(), description="values that runs reach: when each first goes below"
    )
    times: Annotated[str | None, Needs(False, over="")] = Field(
        default=None, description="method that predicts when runs go below the crossings"
    )
    stages: Names = Field(default=(), description="outputs of times, one for each of the crossings")
    within: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="part of a prediction by which runs may miss it and still agree, such as what "
        "is left out at their finite size (default: 0)",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Ensemble:
        for method, key in (("bound", "terms"), ("times", "stages")):
            if bool(getattr(self, method)) != bool(getattr(self, key)):
                given, missing = (key, method) if getattr(self, key) else (method, key)
                raise HdicaError(f"{missing} is missing ({given} needs it)")
        many, outputs = len(self.theory), len(self.predicted)
        if outputs and outputs != many and 1 not in (many, outputs):
            raise HdicaError(f"predicted has {outputs} outputs, not one or {many}, one a method")
        if self.predicted and not self.theory:
            raise HdicaError("theory is missing (predicted needs it)")
        if len(set(self.crossings)) < len(self.crossings):
            raise HdicaError("crossings has a value twice, which is not allowed")
        if self.stages and len(self.stages) != len(self.crossings):
            counts = f"{len(self.stages)} outputs, not {len(self.crossings)}"
            raise HdicaError(f"stages has {counts} (one for each of the crossings)")
        return self

    def predictions(self) -> list[tuple[str, str]]:
        """Pairs of a method of theory and its output."""
        outputs = self.predicted or (self.variable,)
        many = max(len(self.theory), len(outputs)) if self.theory else 0
        methods = self.theory * (many if len(self.theory) == 1 else 1)
        return list(zip(methods, outputs * (many if len(outputs) == 1 else 1), strict=True))

    def _outputs(self, key: str, method: str, needs: Needs) -> Outputs:
        predicted = tuple(output for name, output in self.predictions() if name == method)
        taken = {"theory": predicted, "bound": self.terms, "times": self.stages}
        return [(output, ()) for output in taken.get(key, (self.variable,))]


ENSEMBLE = question(
    __name__, "ensemble", Ensemble, "The ensemble in time", 4.6, 3.6,
    module="compute", panels="figure:ensemble",
)  # fmt: skip
