"""Single runs of a simulation: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import ALONE, TIME, Needs, Settings, Variable, looked_at


class Paths(Settings):
    """Single runs of a simulation."""

    simulation: Annotated[str, Needs(True, looked_at, (TIME,), entries=True)] = Field(
        description="stochastic method"
    )
    variable: Variable = ""
    runs: int = Field(default=4, ge=1, le=12, description="runs that are drawn, 1 to 12")
    threshold: float | None = Field(
        default=None,
        gt=0,
        description="lines at this value of either sign, and when runs reach it",
    )
    barrier: Annotated[str | None, Needs(False, "summit", (ALONE,), entries=True)] = Field(
        default=None,
        description="method whose `summit` is where r = √n R has its barrier: dashed lines there",
    )
    until: float | None = Field(default=None, gt=0, description="last time that is shown")


PATHS = Analysis(
    name="paths",
    compute=lazy(__name__, "paths:paths"),
    settings=Paths,
    sections=(Section("paths", "Single runs", lazy(__name__, "paths:panels"), 5),),
    rank=14.5,
    findings=lazy(__name__, "paths:findings"),
    notes=lazy(__name__, "paths:notes"),
)
