"""Where learning stops, over two swept parameters: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import ALONE, TIME, Needs, Settings, SweptName, Variable, looked_at


class Phase(Settings):
    """Where learning stops, over two swept parameters."""

    simulation: Annotated[str, Needs(True, looked_at, (TIME,))] = Field(
        description="stochastic method"
    )
    x: SweptName = Field(description="swept parameter on the horizontal axis")
    y: SweptName = Field(description="swept parameter on the vertical axis")
    variable: Variable = ""
    limit: Annotated[str | None, Needs(False, looked_at, (TIME,))] = Field(
        default=None, description="method that gives the limit"
    )
    # An edge in the start, beside which a run goes up or not, is what odds are of.
    odds: Annotated[str | None, Needs(False, "edge", (ALONE,))] = Field(
        default=None, description="method that gives the probability of success at n"
    )
    success: float = Field(default=0.5, gt=0, description="threshold on |variable| at the end")


PHASE = Analysis(
    name="phase",
    compute=lazy(__name__, "compute:phase"),
    settings=Phase,
    sections=(Section("phase", "Where learning stops", lazy(__name__, "figure:phase"), 3),),
    rank=3,
    findings=lazy(__name__, "findings:findings"),
    suits=lazy(__name__, "compute:suits"),
)
