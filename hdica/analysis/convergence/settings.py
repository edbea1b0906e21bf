"""What a comparison of simulations with their limit may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import TIME, Band, Level, Methods, Needs, Settings, Variable, looked_at


class Convergence(Settings):
    """Simulation against limit as n grows."""

    simulation: Annotated[Methods, Needs(True, looked_at, (TIME,))] = Field(
        min_length=1, description="stochastic methods to compare"
    )
    limit: Annotated[str, Needs(False, looked_at, (TIME,))] = Field(
        description="method that gives the limit"
    )
    variable: Variable = ""
    level: Level = 0.01
    band: Band = 1.0
