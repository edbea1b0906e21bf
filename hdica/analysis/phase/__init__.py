"""Where learning stops, and where runs succeed, over two swept parameters: settings and records."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import Horizontal, Needs, Run, Settings, SweptName, Variable, looked_at
from hdica.errors import HdicaError


class Phase(Settings):
    """Where learning stops, over two swept parameters."""

    suits: ClassVar = lazy(__name__, "compute:suits")
    sides: ClassVar = lazy(__name__, "compute:sides")

    simulation: Run
    x: Horizontal
    y: SweptName = Field(description="swept parameter on the vertical axis")
    variable: Variable = ""
    limit: Annotated[str | None, Needs(False, looked_at, "time")] = Field(
        default=None, description="method that gives the limit"
    )
    # An edge in the start, beside which a run goes up or not, is what odds are of.
    odds: Annotated[str | None, Needs(False, "edge", "")] = Field(
        default=None, description="method that gives the probability of success at n"
    )
    success: float = Field(default=0.5, gt=0, description="threshold on |variable| at the end")


PHASE = question(
    __name__, "phase", Phase, "Where learning stops", 3, 3,
    module="compute", panels="figure:phase", findings="figure:findings",
)  # fmt: skip


BOUND = r"<= *-?\d+(\.\d+)?"
"""A law that bounds the boundary from above, as theorems on samples that suffice do."""


class Success(Settings):
    """Where runs succeed: the probability of an event over two swept parameters."""

    sides: ClassVar = lazy(__name__, "success:sides")

    simulation: Annotated[str, Needs(True, looked_at, ("", "time"))] = Field(
        description="stochastic method, at the last time"
    )
    x: SweptName = Field(description="swept parameter on the horizontal axis, positive numbers")
    y: SweptName = Field(description="swept parameter on the vertical axis, positive numbers")
    variable: Variable = ""
    below: float | None = Field(
        default=None, description="success is the variable at most this; or give above"
    )
    above: float | None = Field(
        default=None, description="success is the variable at least this; or give below"
    )

    powers: dict[str, float | str] = Field(
        default={},
        description="powers of x that laws have for the boundary, by the laws' names; `<= 0` of a "
        "law that says at most",
    )

    @field_validator("powers")
    @classmethod
    def _laws(cls, powers: dict[str, float | str]) -> dict[str, float | str]:
        for name, power in powers.items():
            if isinstance(power, str) and not re.fullmatch(BOUND, power):
                allowed = "a number, or '<= 0' of a law that says at most"
                raise HdicaError(f"{name} = {power!r} is not allowed ({allowed})")
        return powers

    @model_validator(mode="after")
    def _one_event(self) -> Success:
        if (self.below is None) == (self.above is None):
            raise HdicaError("it needs below or above (exactly one)")
        if self.x == self.y:
            raise HdicaError(f"y = {self.y!r} is not allowed (it is x already)")
        return self

    def event(self, values: Any) -> Any:
        """Where values are a success; NaN are none."""
        return values >= self.above if self.below is None else values <= self.below


SUCCESS = question(__name__, "success", Success, "Where runs succeed", 3.2, 3.2)
