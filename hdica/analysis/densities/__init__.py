"""Densities of the estimate's entries, given the feature: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import BY_STATE, BY_X, Needs, Settings


class Densities(Settings):
    """Densities of the estimate given the feature, at the snapshots."""

    simulation: Annotated[str | None, Needs(True, "density", (BY_X,), n=True)] = Field(
        default=None, description="stochastic method"
    )
    limit: Annotated[str, Needs(False, "density", (BY_X, BY_STATE), found=True)] = Field(
        default="",
        description=(
            "method that gives the limiting density; of steady states that of the stable one whose "
            "overlap is nearest to that of the runs, without runs the largest"
        ),
    )


DENSITIES = Analysis(
    name="densities",
    compute=lazy(__name__, "densities:densities"),
    settings=Densities,
    sections=(
        Section(
            "densities",
            "Densities of the estimate",
            lazy(__name__, "densities:panels"),
            11,
            films=lazy(__name__, "densities:films"),
        ),
    ),
    rank=9.5,
    findings=lazy(__name__, "densities:findings"),
    suits=lazy(__name__, "densities:suits"),
)
