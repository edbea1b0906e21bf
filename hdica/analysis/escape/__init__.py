"""Escape times: runs that ended too early included, against theory: settings and record."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from hdica.analysis.record import lazy, question
from hdica.analysis.settings import Level, Methods, Needs, Settings, SweptName
from hdica.errors import HdicaError
from hdica.ingredients.plain import is_number

MEANS = {"first": "mean", "last": "mean_last"}
"""Output with the mean in theory, by event."""
LAWS = {"first": "survival", "last": "survival_last"}
"""Output with the survival in theory over age, the time in multiples of that mean."""


class Escape(Settings):
    """Escape times, the runs that end too early included, against theory."""

    suits: ClassVar = lazy(__name__, "compute:suits")

    x: SweptName = Field(description="swept parameter on the horizontal axis, its values numbers")
    simulation: Annotated[Methods, Needs(True, lambda s: s.event, "", n=True)] = Field(
        default=(), description="stochastic methods that give escapes"
    )
    limits: Annotated[Methods, Needs(False, lambda s: MEANS[s.event], "")] = Field(
        default=(), description="methods that give mean escape times: at that n, or n → ∞"
    )
    event: Literal["first", "last"] = Field(
        default="first", description="escape of the first projection, or of the last"
    )
    level: Level = 0.01

    @model_validator(mode="after")
    def _something(self) -> Escape:
        if not (self.simulation or self.limits):
            raise HdicaError("it needs simulation or limits (something to draw)")
        return self


LEAST = 0.001
"""Chances nearer to 0 or 1 are none that runs could tell."""


class Samples(Settings):
    """How many samples are enough to escape, with a probability, by theory and by runs."""

    simulation: Annotated[str, Needs(True, "first", "", n=True)] = Field(
        description="stochastic method that gives first passages"
    )
    theory: Annotated[str, Needs(False, "mean", "", n=True)] = Field(
        description="method that gives their law at the same n"
    )
    limit: Annotated[str | None, Needs(False, "mean", "", n=False)] = Field(
        default=None, description="method that gives their law as n → ∞"
    )
    probabilities: tuple[float, ...] = Field(
        default=(0.95, 0.5),
        min_length=1,
        description="with which the samples are to be enough, the one that is asked for first "
        "(default: 0.95 and 0.5)",
    )
    control: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="share by which the samples of the control are wrong: runs agree with a "
        "probability only where they reject these (default: 0.2)",
    )
    level: Level = 0.01

    @field_validator("probabilities", mode="before")
    @classmethod
    def _between(cls, given: object) -> object:
        every = given if isinstance(given, list | tuple) else (given,)
        if not all(map(is_number, every)) or len(set(every)) < len(every):
            raise HdicaError(f"probabilities = {given!r} is not allowed (numbers, each once)")
        if not all(LEAST <= p <= 1 - LEAST for p in every):
            raise HdicaError(
                f"probabilities = {given!r} is not allowed (from {LEAST} to {1 - LEAST})"
            )
        return tuple(every)


SAMPLES = question(__name__, "samples", Samples, "How many samples", 5.9, 3.9)
ESCAPE = question(
    __name__, "escape", Escape, "Escape times", 6, 4,
    module="compute", panels="figure:escape", findings="figure:findings",
)  # fmt: skip
