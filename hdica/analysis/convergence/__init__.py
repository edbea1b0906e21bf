"""Simulation against limit as n grows: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Answer, Section, lazy
from hdica.analysis.settings import (
    Band,
    Baselines,
    Control,
    Level,
    Methods,
    Needs,
    Settings,
    Variable,
    looked_at,
)


class Convergence(Settings):
    """Simulation against limit as n grows."""

    simulation: Annotated[Methods, Needs(True, looked_at, "time", n=True)] = Field(
        min_length=1, description="stochastic methods to compare"
    )
    limit: Annotated[str, Needs(False, looked_at, "time")] = Field(
        description="method that gives the limit"
    )
    variable: Variable = ""
    level: Level = 0.01
    control: Control = 0.02
    band: Band = 1.0
    baselines: Baselines = ()


TRAJECTORIES, SCALING = (
    lazy(__name__, f"figure:{name}") for name in ("trajectories", "fluctuation_and_bias")
)
SECTIONS = (
    Section("trajectories", "Trajectories and their limit", TRAJECTORIES, 10),
    Section("scaling", "Error against dimension", SCALING, 15),
)
FOUND = Answer(8, findings=lazy(__name__, "compute:findings"))
CONVERGENCE = Analysis(
    "convergence", lazy(__name__, "compute:convergence"), Convergence, SECTIONS, FOUND
)
