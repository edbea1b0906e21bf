"""Powers of swept parameters, and curves on which runs of every n lie: settings and records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from hdica.analysis.record import question
from hdica.analysis.settings import Level, Names, Needs, Predicting, Runs, Settings, Swept, Variable
from hdica.errors import HdicaError


class Exponents(Settings):
    """As which powers of swept parameters a quantity falls or grows."""

    simulation: Runs
    over: Annotated[Names, Swept()] = Field(
        min_length=1,
        max_length=3,
        description="one swept parameter or up to three, their values positive numbers",
    )
    variable: Variable = ""
    statistic: Literal["median", "mean"] = Field(default="median", description="of the seeds")
    theory: Predicting = None

    @model_validator(mode="after")
    def _once(self) -> Exponents:
        if len(set(self.over)) < len(self.over):
            raise HdicaError(f"over = {', '.join(self.over)} is not allowed (each once)")
        return self


EXPONENTS = question(__name__, "exponents", Exponents, "Power laws", 3.5, 3.5)


def _measured(settings: Collapse) -> str:
    """Passages of runs at a fold, elsewhere the order parameter over time."""
    return "first" if settings.kind == "fold" else settings.variable


class Collapse(Settings):
    """Whether runs of every n lie on one curve at a transition, with no exponent fitted."""

    kind: Literal["fold", "separatrix", "pitchfork"] = Field(
        description="fold: times of falls; separatrix: shares of runs that go up; pitchfork: the "
        "steady mean of the squared variable"
    )
    simulation: Annotated[str, Needs(True, _measured, ("", "time"), n=True)] = Field(
        description="stochastic method: first passages at a fold, else the variable over time"
    )
    theory: Annotated[str, Needs(False, "scaled", "", n=True)] = Field(
        description="method that gives the scaled control, the law there and the prediction at n"
    )
    variable: Variable = ""
    since: float | None = Field(
        default=None,
        ge=0,
        description="time from which on runs are steady (pitchfork; default: half of the last)",
    )
    level: Level = 0.01


COLLAPSE = question(__name__, "collapse", Collapse, "Runs of every n on one curve", 3.55, 3.55)
