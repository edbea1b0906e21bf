"""Learning curves: how the distance to a target falls with time: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import TIME, Methods, Needs, Settings, Variable, looked_at


class Decay(Settings):
    """Learning curves on doubly logarithmic axes: distance to a target against time."""

    curves: Annotated[Methods, Needs(None, looked_at, (TIME,))] = Field(
        min_length=1, description="methods, stochastic or not"
    )
    variable: Variable = ""
    target: float = Field(default=1.0, description="value that it tends to")


DECAY = Analysis(
    name="decay",
    compute=lazy(__name__, "decay:decay"),
    settings=Decay,
    sections=(Section("decay", "Learning curves", lazy(__name__, "decay:panels"), 9),),
    rank=6,
    findings=lazy(__name__, "decay:findings"),
)
