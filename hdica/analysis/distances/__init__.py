"""Distance between the empirical law of the entries and the limit's: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import BY_EDGE, Control, Level, Methods, Needs, Settings


class Distances(Settings):
    """Distance between the empirical density of the estimate and its limit as n grows."""

    simulation: Annotated[Methods, Needs(True, "cdf", (BY_EDGE,), n=True)] = Field(
        min_length=1, description="stochastic methods that keep densities"
    )
    limit: Annotated[str, Needs(False, "cdf", (BY_EDGE,), found=True)] = Field(
        default="", description="method that gives the limiting density"
    )
    level: Level = 0.01
    control: Control = 0.02


DISTANCES = Analysis(
    name="distances",
    compute=lazy(__name__, "distances:distances"),
    settings=Distances,
    sections=(
        Section(
            "distances",
            "Distance of laws against dimension",
            lazy(__name__, "distances:panels"),
            12,
        ),
    ),
    rank=9,
    findings=lazy(__name__, "distances:findings"),
    suits=lazy(__name__, "distances:suits"),
)
