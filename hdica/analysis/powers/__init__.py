"""Powers of swept parameters, and curves on which runs of every n lie: settings and records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from hdica.analysis.record import question
from hdica.analysis.settings import (
    Level,
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

    simulation: Annotated[Methods, Needs(True, looked_at, ("", "time"))] = Field(
        min_length=1, description="stochastic methods, at the last time"
    )
    over: Annotated[tuple[str, ...], BeforeValidator(names), Swept()] = Field(
        min_length=1,
        max_length=3,
        description="one swept parameter or up to three, their values positive numbers",
    )
    variable: Variable = ""
    statistic: Literal["median", "mean"] = Field(default="median", description="of the seeds")
    theory: Annotated[str | None, Needs(False, looked_at, ("", "time"))] = Field(
        default=None, description="method without seeds that predicts the variable"
    )

    @model_validator(mode="after")
    def _once(self) -> Exponents:
        if len(set(self.over)) < len(self.over):
            raise HdicaError(f"over = {', '.join(self.over)} is not allowed (each once)")
        return self


EXPONENTS = question(__name__, "exponents", Exponents, "Power laws", 3.5, 3.5)


@dataclass(frozen=True)
class Powers:
    """How the window of the control shrinks and what is measured grows: n^-window, n^size."""

    window: float
    size: float


RIGHT = {
    "fold": Powers(2 / 3, 1 / 3),
    "separatrix": Powers(1 / 2, 0.0),
    "pitchfork": Powers(1 / 2, -1 / 2),
}
"""Powers of n at each transition: of Q^2 at a pitchfork, whose Q goes as n^(-1/4)."""
WRONG = {
    "fold": Powers(1 / 2, 1 / 2),
    "separatrix": Powers(1 / 3, 0.0),
    "pitchfork": Powers(1.0, -1.0),
}
"""Powers of a control: at a pitchfork those of noise away from it, where Q^2 goes as 1/n.

The powers of a second one are wrong by as much to the other side."""


def _measured(settings: Collapse) -> str:
    """Passages of runs at a fold, elsewhere the order parameter over time."""
    return "first" if settings.kind == "fold" else settings.variable


class Collapse(Settings):
    """Whether runs of every n lie on one curve at a transition, with no exponent fitted."""

    kind: Literal["fold", "separatrix", "pitchfork"] = Field(
        description="fold: times of falls; separatrix: shares of runs that go up; pitchfork: the "
        "steady mean of the squared variable"
    )
    simulation: Annotated[str, Needs(True, _measured, ("", "time"), n=True)] = Field(
        description="stochastic method: first passages at a fold, else the variable over time"
    )
    theory: Annotated[str, Needs(False, "scaled", "", n=True)] = Field(
        description="method that gives the scaled control, the law there and the prediction at n"
    )
    variable: Variable = ""
    since: float | None = Field(
        default=None,
        ge=0,
        description="time from which on runs are steady (pitchfork; default: half of the last)",
    )
    wrong_window: float | None = Field(
        default=None,
        description="power of 1/n of the window in a control (default: fold 1/2, separatrix 1/3, "
        "pitchfork 1); a second control is wrong by as much to the other side",
    )
    wrong_size: float | None = Field(
        default=None,
        description="power of n of what is measured in that control (default: fold 1/2, separatrix "
        "0, pitchfork -1)",
    )
    level: Level = 0.01

    @property
    def wrong(self) -> Powers:
        """Powers of the control."""
        usual = WRONG[self.kind]
        window = usual.window if self.wrong_window is None else self.wrong_window
        return Powers(window, usual.size if self.wrong_size is None else self.wrong_size)


COLLAPSE = question(__name__, "collapse", Collapse, "Runs of every n on one curve", 3.55, 3.55)
