"""What a distance between laws may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import BY_EDGE, Level, Methods, Needs, Settings


class Distances(Settings):
    """Distance between the empirical density of the estimate and its limit as n grows."""

    simulation: Annotated[Methods, Needs(True, "cdf", (BY_EDGE,))] = Field(
        min_length=1, description="stochastic methods that keep densities"
    )
    limit: Annotated[str, Needs(False, "cdf", (BY_EDGE,), found=True)] = Field(
        default="", description="method that gives the limiting density"
    )
    level: Level = 0.01
