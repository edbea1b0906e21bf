"""Drift of the limit, and potentials in which it moves: settings and records."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import BY_X, Needs, Settings


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


class Potential(Settings):
    """The effective potential of one entry, at the snapshots."""

    limit: Annotated[str, Needs(False, "potential", (BY_X,), found=True)] = Field(
        default="", description="method that gives the potential"
    )


POTENTIAL = Analysis(
    name="potential",
    compute=lazy(__name__, "potentials:potential"),
    settings=Potential,
    sections=(
        Section(
            "potential", "Effective potential", lazy(__name__, "potentials:potential_panels"), 14
        ),
    ),
    rank=11,
    findings=lazy(__name__, "potentials:potential_findings"),
)


class Trapping(Settings):
    """The potential that holds an overlap near zero, and its barrier."""

    limit: Annotated[str, Needs(False, "U", (("r",),), entries=True, found=True)] = Field(
        default="", description="method that gives the potential"
    )


TRAPPING = Analysis(
    name="trapping",
    compute=lazy(__name__, "potentials:trapping"),
    settings=Trapping,
    sections=(
        Section("trapping", "Trapping potential", lazy(__name__, "potentials:trapping_panels"), 4),
    ),
    rank=5,
    findings=lazy(__name__, "potentials:trapping_findings"),
    notes=lazy(__name__, "potentials:trapping_notes"),
)
