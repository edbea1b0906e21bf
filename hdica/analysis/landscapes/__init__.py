"""Drift of the limit, and potentials in which it moves: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from hdica.analysis.record import Analysis, Answer, Section, lazy
from hdica.analysis.settings import BY_X, Needs, Settings


class Flow(Settings):
    """Drift of the limit and its fixed points."""

    suits: ClassVar = lazy(__name__, "landscapes:flow_suits")

    method: Annotated[str, Needs(False, "drift", (("q",),), first=True)] = Field(
        default="", description="method that gives the drift"
    )
    fixed_points: Annotated[str | None, Needs(False)] = Field(
        default=None, description="method that gives fixed points (default: the first that does)"
    )


FLOW = Analysis(
    "flow",
    lazy(__name__, "landscapes:flow"),
    Flow,
    (Section("flow", "Flow of the limit", lazy(__name__, "landscapes:flow_panels"), 16),),
    answer=Answer(14, findings=lazy(__name__, "landscapes:flow_findings")),
)


class Potential(Settings):
    """The effective potential of one entry, at the snapshots."""

    limit: Annotated[str, Needs(False, "potential", (BY_X,), first=True)] = Field(
        default="", description="method that gives the potential"
    )


POTENTIAL = Analysis(
    "potential",
    lazy(__name__, "landscapes:potential"),
    Potential,
    (
        Section(
            "potential", "Effective potential", lazy(__name__, "landscapes:potential_panels"), 14
        ),
    ),
    answer=Answer(11, findings=lazy(__name__, "landscapes:potential_findings")),
)


class Trapping(Settings):
    """The potential that holds an overlap near zero, and its barrier."""

    limit: Annotated[str, Needs(False, "U", (("r",),), entries=True, first=True)] = Field(
        default="", description="method that gives the potential"
    )


TRAPPING = Analysis(
    "trapping",
    lazy(__name__, "landscapes:trapping"),
    Trapping,
    (Section("trapping", "Trapping potential", lazy(__name__, "landscapes:trapping_panels"), 4),),
    answer=Answer(
        5,
        findings=lazy(__name__, "landscapes:trapping_findings"),
        notes=lazy(__name__, "landscapes:trapping_notes"),
    ),
)
