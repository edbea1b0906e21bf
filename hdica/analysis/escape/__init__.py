"""Escape times: runs that ended too early included, against theory: settings and record."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import Level, Methods, Needs, Settings, SweptName
from hdica.errors import HdicaError

MEANS = {"first": "mean", "last": "mean_last"}
"""Output with the mean in theory, by event."""
LAWS = {"first": "survival", "last": "survival_last"}
"""Output with the survival in theory over age, the time in multiples of that mean."""


class Escape(Settings):
    """Escape times, the runs that end too early included, against theory."""

    suits: ClassVar = lazy(__name__, "compute:suits")

    x: SweptName = Field(description="swept parameter on the horizontal axis, its values numbers")
    simulation: Annotated[Methods, Needs(True, lambda s: s.event, "", n=True)] = Field(
        default=(), description="stochastic methods that give escapes"
    )
    limits: Annotated[Methods, Needs(False, lambda s: MEANS[s.event], "")] = Field(
        default=(), description="methods that give mean escape times: at that n, or n → ∞"
    )
    event: Literal["first", "last"] = Field(
        default="first", description="escape of the first projection, or of the last"
    )
    level: Level = 0.01

    @model_validator(mode="after")
    def _something(self) -> Escape:
        if not (self.simulation or self.limits):
            raise HdicaError("it needs simulation or limits (something to draw)")
        return self


ESCAPE = question(
    __name__, "escape", Escape, "Escape times", 6, 4,
    module="compute", panels="figure:escape", findings="figure:findings",
)  # fmt: skip
