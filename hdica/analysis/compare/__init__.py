"""Trajectories of several methods side by side: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import (
    FIXED_POINT,
    TIME,
    Band,
    Methods,
    Needs,
    Settings,
    Variable,
    looked_at,
)


class Compare(Settings):
    """Trajectories of several methods in one panel: simulations with bands, limits as lines."""

    curves: Annotated[Methods, Needs(None, looked_at, (TIME, FIXED_POINT))] = Field(
        min_length=1, description="methods, stochastic or not"
    )
    variable: Variable = ""
    band: Band = 1.0
    steady: Annotated[str | None, Needs(False, looked_at, (FIXED_POINT,))] = Field(
        default=None, description="method that gives steady states"
    )


COMPARE = Analysis(
    name="compare",
    compute=lazy(__name__, "compare:compare"),
    settings=Compare,
    sections=(Section("compare", "Methods side by side", lazy(__name__, "compare:panels"), 8),),
    findings=lazy(__name__, "compare:findings"),
    suits=lazy(__name__, "compare:suits"),
)
