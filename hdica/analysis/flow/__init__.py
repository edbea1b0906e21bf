"""The drift as a curve, with its zeros: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import Needs, Settings


class Flow(Settings):
    """Drift of the limit and its fixed points."""

    method: Annotated[str, Needs(False, "drift", (("q",),), found=True)] = Field(
        default="", description="method that gives the drift"
    )
    fixed_points: Annotated[str | None, Needs(False)] = Field(
        default=None, description="method that gives fixed points (default: the first that does)"
    )


FLOW = Analysis(
    name="flow",
    compute=lazy(__name__, "flow:flow"),
    settings=Flow,
    sections=(Section("flow", "Flow of the limit", lazy(__name__, "flow:panels"), 16),),
    rank=14,
    findings=lazy(__name__, "flow:findings"),
    suits=lazy(__name__, "flow:suits"),
)
