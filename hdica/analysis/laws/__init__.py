"""Laws of the estimate's entries beside those of the limit: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from hdica.analysis.record import Analysis, Answer, Section, lazy
from hdica.analysis.settings import (
    BY_EDGE,
    BY_STATE,
    BY_THRESHOLD,
    BY_X,
    Control,
    Level,
    Methods,
    Needs,
    Settings,
)


class Densities(Settings):
    """Densities of the estimate given the feature, at the snapshots."""

    suits: ClassVar = lazy(__name__, "densities:suits")

    simulation: Annotated[str | None, Needs(True, "density", (BY_X,), n=True)] = Field(
        default=None, description="stochastic method"
    )
    limit: Annotated[str, Needs(False, "density", (BY_X, BY_STATE), first=True)] = Field(
        default="",
        description=(
            "method that gives the limiting density; of steady states that of the stable one whose "
            "overlap is nearest to that of the runs, without runs the largest"
        ),
    )


DENSITIES = Analysis(
    "densities",
    lazy(__name__, "densities:densities"),
    Densities,
    (
        Section(
            "densities",
            "Densities of the estimate",
            lazy(__name__, "densities:panels"),
            11,
            films=lazy(__name__, "densities:films"),
        ),
    ),
    answer=Answer(9.5, findings=lazy(__name__, "densities:findings")),
)


class Distances(Settings):
    """Distance between the empirical density of the estimate and its limit as n grows."""

    suits: ClassVar = lazy(__name__, "distances:suits")

    simulation: Annotated[Methods, Needs(True, "cdf", (BY_EDGE,), n=True)] = Field(
        min_length=1, description="stochastic methods that keep densities"
    )
    limit: Annotated[str, Needs(False, "cdf", (BY_EDGE,), first=True)] = Field(
        default="", description="method that gives the limiting density"
    )
    level: Level = 0.01
    control: Control = 0.02


DISTANCES = Analysis(
    "distances",
    lazy(__name__, "distances:distances"),
    Distances,
    (
        Section(
            "distances",
            "Distance of laws against dimension",
            lazy(__name__, "distances:panels"),
            12,
        ),
    ),
    answer=Answer(9, findings=lazy(__name__, "distances:findings")),
)


class Support(Settings):
    """Recovery of the feature's support by thresholding the estimate."""

    suits: ClassVar = lazy(__name__, "support:suits")

    simulation: Annotated[Methods | None, Needs(True, "tpr", (BY_THRESHOLD,), n=True)] = Field(
        default=None, description="stochastic methods"
    )
    limit: Annotated[str, Needs(False, "tpr", (BY_THRESHOLD,), first=True)] = Field(
        default="", description="method that gives the limiting rates"
    )
    level: Level = 0.01
    control: Control = 0.02


SUPPORT = Analysis(
    "support",
    lazy(__name__, "support:support"),
    Support,
    (Section("support", "Support recovery", lazy(__name__, "support:panels"), 13),),
    answer=Answer(10, findings=lazy(__name__, "support:findings")),
)
