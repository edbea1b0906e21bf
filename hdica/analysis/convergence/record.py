"""Simulation against limit as n grows: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, Verdicts, lazy
from hdica.analysis.settings import TIME, Band, Level, Methods, Needs, Settings, Variable, looked_at


class Convergence(Settings):
    """Simulation against limit as n grows."""

    simulation: Annotated[Methods, Needs(True, looked_at, (TIME,), n=True)] = Field(
        min_length=1, description="stochastic methods to compare"
    )
    limit: Annotated[str, Needs(False, looked_at, (TIME,))] = Field(
        description="method that gives the limit"
    )
    variable: Variable = ""
    level: Level = 0.01
    band: Band = 1.0


CONVERGENCE = Analysis(
    name="convergence",
    compute=lazy(__name__, "compute:convergence"),
    settings=Convergence,
    sections=(
        Section(
            "trajectories",
            "Trajectories and their limit",
            lazy(__name__, "figure:trajectories"),
            10,
        ),
        Section(
            "scaling", "Error against dimension", lazy(__name__, "figure:fluctuation_and_bias"), 15
        ),
    ),
    say=lazy(__name__, "say:convergence"),
    rank=8,
    verdicts=Verdicts("Verdict of each comparison", lazy(__name__, "say:table"), whole=True),
    answer=lazy(__name__, "answer:answer"),
    decides=lazy(__name__, "answer:decides"),
)
