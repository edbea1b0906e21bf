"""Single runs, methods and variables over time, and learning curves: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import (
    Band,
    Baselines,
    Methods,
    Names,
    Needs,
    Outputs,
    Settings,
    Variable,
    looked_at,
)
from hdica.errors import HdicaError


class Paths(Settings):
    """Single runs of a simulation."""

    simulation: Annotated[str, Needs(True, looked_at, "time", entries=True)] = Field(
        description="stochastic method"
    )
    variable: Variable = ""
    runs: int = Field(default=4, ge=1, le=12, description="runs that are drawn, 1 to 12")
    threshold: float | None = Field(
        default=None, gt=0, description="lines at this value of either sign, and when runs reach it"
    )
    barrier: Annotated[str | None, Needs(False, "summit", "", entries=True)] = Field(
        default=None,
        description="method whose `summit` is where r = √n R has its barrier: dashed lines there",
    )
    until: float | None = Field(default=None, gt=0, description="last time that is shown")
    baselines: Baselines = ()


PATHS = question(
    __name__, "paths", Paths, "Single runs", 5, 14.5,
    module="runs", lead="paths_", notes="notes",
)  # fmt: skip


class Curves(Settings):
    """Several variables of one method over one dimension, and which of them is half-way first."""

    method: Annotated[str, Needs(None, None)] = Field(description="method that gives the variables")
    variables: Names = Field(
        min_length=1, max_length=6, description="its outputs, each in a panel of its own"
    )
    over: str = Field(default="time", description="the dimension of these outputs")
    theory: Annotated[str | None, Needs(False, None)] = Field(
        default=None, description="method without seeds whose outputs of the same names are drawn"
    )
    log: bool = Field(default=False, description="whether its axis is logarithmic")
    rises: bool = Field(
        default=False,
        description="whether to look for where each variable is half-way from its first to its "
        "last value",
    )

    @field_validator("variables")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise HdicaError(f"variables = {', '.join(value)} is not allowed (each once)")
        return value

    def _outputs(self, key: str, method: str, needs: Needs) -> Outputs:
        # A theory may lack some variables.
        each = [(name, ((self.over,),)) for name in self.variables]
        return each if key == "method" else super()._outputs(key, method, needs)


CURVES = question(
    __name__, "curves", Curves, "Variables side by side", 8.5, 6.5,
    module="runs", lead="curves_",
)  # fmt: skip


class Compare(Settings):
    """Trajectories of several methods in one panel: simulations with bands, limits as lines."""

    suits: ClassVar = lazy(__name__, "methods:compare_suits")

    curves: Annotated[Methods, Needs(None, looked_at, ("time", "fixed_point"))] = Field(
        min_length=1, description="methods, stochastic or not"
    )
    variable: Variable = ""
    band: Band = 1.0
    steady: Annotated[str | None, Needs(False, looked_at, "fixed_point")] = Field(
        default=None, description="method that gives steady states"
    )


COMPARE = question(
    __name__, "compare", Compare, "Methods side by side", 8, module="methods", lead="compare_"
)


class Decay(Settings):
    """Learning curves on doubly logarithmic axes: distance to a target against time."""

    curves: Annotated[Methods, Needs(None, looked_at, "time")] = Field(
        min_length=1, description="methods, stochastic or not"
    )
    variable: Variable = ""
    target: float = Field(default=1.0, description="value that it tends to")


DECAY = question(__name__, "decay", Decay, "Learning curves", 9, 6, module="methods", lead="decay_")
