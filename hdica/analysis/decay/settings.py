"""What a picture of learning curves may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import TIME, Methods, Needs, Settings, Variable, looked_at


class Decay(Settings):
    """Learning curves on doubly logarithmic axes: distance to a target against time."""

    curves: Annotated[Methods, Needs(None, looked_at, (TIME,))] = Field(
        min_length=1, description="methods, stochastic or not"
    )
    variable: Variable = ""
    target: float = Field(default=1.0, description="value that it tends to")
