"""Critical values as another parameter varies: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import BY_TRANSITION, Needs, Settings, SweptName


class Transition(Settings):
    """Where steady states appear or vanish, over one swept parameter."""

    x: SweptName = Field(description="swept parameter on the horizontal axis")
    critical: Annotated[str, Needs(False, "value", (BY_TRANSITION,), found=True)] = Field(
        default="", description="method that gives transitions"
    )


TRANSITION = Analysis(
    name="transition",
    compute=lazy(__name__, "transition:transition"),
    settings=Transition,
    sections=(Section("transition", "Transitions", lazy(__name__, "transition:panels"), 2),),
    rank=2,
    findings=lazy(__name__, "transition:findings"),
    suits=lazy(__name__, "transition:suits"),
)
