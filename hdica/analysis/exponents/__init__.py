"""Powers of swept parameters as which a quantity falls or grows: settings and record."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import (
    ALONE,
    TIME,
    Methods,
    Needs,
    Settings,
    Swept,
    Variable,
    looked_at,
    names,
)
from hdica.errors import HdicaError


class Exponents(Settings):
    """As which powers of swept parameters a quantity falls or grows."""

    simulation: Annotated[Methods, Needs(True, looked_at, (ALONE, TIME))] = Field(
        min_length=1, description="stochastic methods, at the last time"
    )
    over: Annotated[tuple[str, ...], BeforeValidator(names), Swept()] = Field(
        min_length=1,
        max_length=3,
        description="one swept parameter or up to three, their values positive numbers",
    )
    variable: Variable = ""
    statistic: Literal["median", "mean"] = Field(default="median", description="of the seeds")
    theory: Annotated[str | None, Needs(False, looked_at, (ALONE, TIME))] = Field(
        default=None, description="method without seeds that predicts the variable"
    )

    @model_validator(mode="after")
    def _once(self) -> Exponents:
        if len(set(self.over)) < len(self.over):
            raise HdicaError(f"over = {', '.join(self.over)} is not allowed (each once)")
        return self


EXPONENTS = Analysis(
    name="exponents",
    compute=lazy(__name__, "exponents:exponents"),
    settings=Exponents,
    sections=(Section("exponents", "Power laws", lazy(__name__, "exponents:panels"), 3.5),),
    rank=3.5,
    findings=lazy(__name__, "exponents:findings"),
)
