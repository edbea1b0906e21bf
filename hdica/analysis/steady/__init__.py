"""Steady states over one parameter, ends of simulations, critical values: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from hdica.analysis.record import Analysis, Answer, Section, lazy
from hdica.analysis.settings import (
    BRANCH_POINT,
    BY_TRANSITION,
    FIXED_POINT,
    TIME,
    Methods,
    Needs,
    Settings,
    Swept,
    SweptName,
    Variable,
    looked_at,
)
from hdica.errors import HdicaError


class Steady(Settings):
    """Steady states of the limit and of simulations over one swept parameter."""

    suits: ClassVar = lazy(__name__, "compute:suits")

    x: SweptName = Field(description="swept parameter on the horizontal axis")
    limits: Annotated[Methods, Needs(False, looked_at, (FIXED_POINT, TIME))] = Field(
        default=(), description="methods that give steady states, or limits at the last time"
    )
    branches: Annotated[str | None, Needs(False, looked_at, (BRANCH_POINT,))] = Field(
        default=None, description="method that gives whole branches"
    )
    critical: Annotated[str | None, Needs(False, "value", (BY_TRANSITION,))] = Field(
        default=None, description="method that gives transitions"
    )
    simulation: Annotated[Methods, Needs(True, looked_at, (TIME,), n=True)] = Field(
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


STEADY = Analysis(
    "steady",
    lazy(__name__, "compute:steady"),
    Steady,
    (Section("steady", "Steady states", lazy(__name__, "figure:steady"), 1),),
    answer=Answer(1, findings=lazy(__name__, "compute:findings")),
)


class Transition(Settings):
    """Where steady states appear or vanish, over one swept parameter."""

    suits: ClassVar = lazy(__name__, "transition:suits")

    x: SweptName = Field(description="swept parameter on the horizontal axis")
    critical: Annotated[str, Needs(False, "value", (BY_TRANSITION,), first=True)] = Field(
        default="", description="method that gives transitions"
    )


TRANSITION = Analysis(
    "transition",
    lazy(__name__, "transition:transition"),
    Transition,
    (Section("transition", "Transitions", lazy(__name__, "transition:panels"), 2),),
    answer=Answer(2, findings=lazy(__name__, "transition:findings")),
)
