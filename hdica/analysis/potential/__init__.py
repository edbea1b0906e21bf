"""The effective potential of one entry: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import BY_X, Needs, Settings


class Potential(Settings):
    """The effective potential of one entry, at the snapshots."""

    limit: Annotated[str, Needs(False, "potential", (BY_X,), found=True)] = Field(
        default="", description="method that gives the potential"
    )


POTENTIAL = Analysis(
    name="potential",
    compute=lazy(__name__, "potential:potential"),
    settings=Potential,
    sections=(Section("potential", "Effective potential", lazy(__name__, "potential:panels"), 14),),
    rank=11,
    findings=lazy(__name__, "potential:findings"),
)
