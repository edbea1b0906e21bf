"""Drift of the limit, and potentials in which it moves: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import Needs, Settings


class Flow(Settings):
    """Drift of the limit and its fixed points."""

    suits: ClassVar = lazy(__name__, "landscapes:flow_suits")

    method: Annotated[str, Needs(False, "drift", "q", first=True)] = Field(
        default="", description="method that gives the drift"
    )
    fixed_points: Annotated[str | None, Needs(False)] = Field(
        default=None, description="method that gives fixed points (default: the first that does)"
    )


FLOW = question(
    __name__, "flow", Flow, "Flow of the limit", 16, 14, module="landscapes", lead="flow_"
)


class Potential(Settings):
    """The effective potential of one entry, at the snapshots."""

    limit: Annotated[str, Needs(False, "potential", "snapshot feature x", first=True)] = Field(
        default="", description="method that gives the potential"
    )


POTENTIAL = question(
    __name__, "potential", Potential, "Effective potential", 14, 11,
    module="landscapes", lead="potential_",
)  # fmt: skip


class Trapping(Settings):
    """The potential that holds an overlap near zero, and its barrier."""

    limit: Annotated[str, Needs(False, "U", "r", entries=True, first=True)] = Field(
        default="", description="method that gives the potential"
    )


TRAPPING = question(
    __name__, "trapping", Trapping, "Trapping potential", 4, 5,
    module="landscapes", lead="trapping_", notes="notes",
)  # fmt: skip
