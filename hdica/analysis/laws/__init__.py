"""Laws of the estimate's entries beside those of the limit: settings and records."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import Control, Level, Methods, Needs, Settings

BY_X = ("snapshot feature x", "fixed_point feature x")


class Densities(Settings):
    """Densities of the estimate given the feature, at the snapshots."""

    suits: ClassVar = lazy(__name__, "densities:suits")

    simulation: Annotated[str | None, Needs(True, "density", BY_X[0], n=True)] = Field(
        default=None, description="stochastic method"
    )
    limit: Annotated[str, Needs(False, "density", BY_X, first=True)] = Field(
        default="",
        description=(
            "method that gives the limiting density; of steady states that of the stable one whose "
            "overlap is nearest to that of the runs, without runs the largest"
        ),
    )


DENSITIES = question(
    __name__, "densities", Densities, "Densities of the estimate", 11, 9.5, films="films"
)


class Distances(Settings):
    """Distance between the empirical density of the estimate and its limit as n grows."""

    suits: ClassVar = lazy(__name__, "distances:suits")

    simulation: Annotated[Methods, Needs(True, "cdf", "snapshot feature edge", n=True)] = Field(
        min_length=1, description="stochastic methods that keep densities"
    )
    limit: Annotated[str, Needs(False, "cdf", "snapshot feature edge", first=True)] = Field(
        default="", description="method that gives the limiting density"
    )
    level: Level = 0.01
    control: Control = 0.02


DISTANCES = question(__name__, "distances", Distances, "Distance of laws against dimension", 12, 9)


class Support(Settings):
    """Recovery of the feature's support by thresholding the estimate."""

    suits: ClassVar = lazy(__name__, "support:suits")

    simulation: Annotated[Methods | None, Needs(True, "tpr", "snapshot threshold", n=True)] = Field(
        default=None, description="stochastic methods"
    )
    limit: Annotated[str, Needs(False, "tpr", "snapshot threshold", first=True)] = Field(
        default="", description="method that gives the limiting rates"
    )
    level: Level = 0.01
    control: Control = 0.02


SUPPORT = question(__name__, "support", Support, "Support recovery", 13, 10)
