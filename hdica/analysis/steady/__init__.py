"""Steady states over one parameter, ends of simulations, critical values: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import Horizontal, Methods, Needs, Settings, Swept, Variable, looked_at
from hdica.errors import HdicaError


class Steady(Settings):
    """Steady states of the limit and of simulations over one swept parameter."""

    suits: ClassVar = lazy(__name__, "compute:suits")

    x: Horizontal
    limits: Annotated[Methods, Needs(False, looked_at, ("fixed_point", "time"))] = Field(
        default=(), description="methods that give steady states, or limits at the last time"
    )
    branches: Annotated[str | None, Needs(False, looked_at, "branch_point")] = Field(
        default=None, description="method that gives whole branches"
    )
    critical: Annotated[str | None, Needs(False, "value", "transition")] = Field(
        default=None, description="method that gives transitions"
    )
    simulation: Annotated[Methods, Needs(True, looked_at, "time", n=True)] = Field(
        default=(), description="stochastic methods, at the last time"
    )
    variable: Variable = ""
    series: Annotated[str | None, Swept()] = Field(
        default=None, description="swept parameter that separates the simulation's series"
    )

    @model_validator(mode="after")
    def _something(self) -> Steady:
        if not (self.limits or self.branches or self.simulation):
            raise HdicaError("it needs limits, branches or simulation (something to draw)")
        if self.series == self.x:
            raise HdicaError(f"series = {self.series!r} is not allowed (it is x already)")
        return self


STEADY = question(
    __name__, "steady", Steady, "Steady states", 1, 1, module="compute", panels="figure:steady"
)


class Transition(Settings):
    """Where steady states appear or vanish, over one swept parameter."""

    suits: ClassVar = lazy(__name__, "transition:suits")

    x: Horizontal
    critical: Annotated[str, Needs(False, "value", "transition", first=True)] = Field(
        default="", description="method that gives transitions"
    )


TRANSITION = question(__name__, "transition", Transition, "Transitions", 2, 2)
