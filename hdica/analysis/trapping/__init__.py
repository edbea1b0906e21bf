"""The potential that holds an overlap near zero: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import Needs, Settings


class Trapping(Settings):
    """The potential that holds an overlap near zero, and its barrier."""

    limit: Annotated[str, Needs(False, "U", (("r",),), entries=True, found=True)] = Field(
        default="", description="method that gives the potential"
    )


TRAPPING = Analysis(
    name="trapping",
    compute=lazy(__name__, "trapping:trapping"),
    settings=Trapping,
    sections=(Section("trapping", "Trapping potential", lazy(__name__, "trapping:panels"), 4),),
    rank=5,
    findings=lazy(__name__, "trapping:findings"),
    notes=lazy(__name__, "trapping:notes"),
)
