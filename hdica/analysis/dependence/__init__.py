"""How a quantity depends on a swept parameter: settings and records."""

from __future__ import annotations

import math
import operator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import (
    Levels,
    Names,
    Needs,
    Outputs,
    Predicting,
    Runs,
    Settings,
    Swept,
    Variable,
)
from hdica.errors import HdicaError

BOUNDS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


def bound(text: str) -> tuple[str, float]:
    """The sign and the number of a bound such as ``>= 8``; a ValueError of anything else."""
    sign = max((one for one in BOUNDS if text.strip().startswith(one)), key=len, default="")
    number = float(text.strip().removeprefix(sign))
    if not sign or not math.isfinite(number):
        raise ValueError(text)
    return sign, number


class Dependence(Settings):
    """How a quantity depends on a swept parameter, as a mean over seeds beside theory."""

    suits: ClassVar = lazy(__name__, "dependence:suits")

    simulation: Runs
    over: Annotated[str | None, Swept()] = Field(
        default=None,
        description="swept parameter on the horizontal axis, numbers (default: the one with most "
        "values)",
    )
    variable: Variable = ""
    beside: Names = Field(
        default=(), description="further outputs of the simulations, a panel each"
    )
    theory: Predicting = None
    predicted: Names = Field(
        default=(),
        description="outputs of theory: one, or one for the variable and each output beside it "
        "(default: the same outputs)",
    )
    levels: Levels = Field(default={})
    control: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="share of the largest prediction by which the control is off: means agree with "
        "a prediction only where they reject such a wrong one (default: 0.1)",
    )
    where: Annotated[dict[str, str], Swept()] = Field(
        default={},
        description="part of the grid for which the study claims the prediction: a swept parameter "
        "and its bound, such as {tau: '<= 0.1'} (default: all of it)",
    )
    extreme: Literal["none", "largest", "smallest"] = Field(
        default="none",
        description="what the study asks for: where the mean is largest or smallest, among all "
        "values of swept words and of the parameter on the axis (default: none)",
    )
    log: Literal["none", "x", "y", "both"] = Field(
        default="none", description="logarithmic axes: x, y, both or none (default: none)"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Dependence:
        if self.predicted and not self.theory:
            raise HdicaError("theory is missing (predicted needs it)")
        many = 1 + len(self.beside)
        if self.predicted and len(self.predicted) not in {1, many}:
            raise HdicaError(
                f"predicted has {len(self.predicted)} outputs, not one or {many}, one a panel"
            )
        for name, text in self.where.items():
            try:
                bound(text)
            except ValueError:
                raise HdicaError(
                    f"where.{name} = {text!r} is no bound (allowed: <=, <, >= or > and a number)"
                ) from None
        if len({self.variable, *self.beside}) < many:
            raise HdicaError("beside has an output twice, which is not allowed")
        return self

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is drawn of the simulations."""
        return (self.variable, *self.beside)

    @property
    def of_theory(self) -> tuple[str, ...]:
        """What theory has for them, in their order, of all or of the first."""
        return self.predicted or self.outputs

    def _outputs(self, key: str, method: str, needs: Needs) -> Outputs:
        return [(one, ()) for one in (self.of_theory if key == "theory" else self.outputs)]


DEPENDENCE = question(__name__, "dependence", Dependence, "Along a parameter", 3.4, 3.4)


SLOPES = question(__name__, "slopes", None, "Change along a parameter", 7, 7)
