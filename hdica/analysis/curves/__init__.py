"""Several variables of one method over one dimension: settings and record."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import Named, Needs, Settings, names
from hdica.errors import HdicaError
from hdica.systems.system import System


class Curves(Settings):
    """Several variables of one method over one dimension, and which of them is half-way first."""

    method: Annotated[str, Needs(None, None)] = Field(description="method that gives the variables")
    variables: Annotated[tuple[str, ...], BeforeValidator(names)] = Field(
        min_length=1, max_length=6, description="its outputs, each in a panel of its own"
    )
    over: str = Field(default="time", description="the dimension of these outputs")
    theory: Annotated[str | None, Needs(False, None)] = Field(
        default=None, description="method without seeds whose outputs of the same names are drawn"
    )
    log: bool = Field(default=False, description="whether its axis is logarithmic")
    rises: bool = Field(
        default=False,
        description="whether to look for where each variable is half-way from its first to its "
        "last value",
    )

    @field_validator("variables")
    @classmethod
    def _once(cls, found: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(found)) < len(found):
            raise HdicaError(f"variables = {', '.join(found)} is not allowed (each once)")
        return found

    def named(self, system: System | None) -> list[Named]:
        """The method, once for each variable, and the theory, which may lack some."""
        found = super().named(system)
        own = next(one for one in found if one.key == "method")
        each = [replace(own, output=name, dims=((self.over,),)) for name in self.variables]
        return [*each, *(one for one in found if one.key == "theory")]


CURVES = Analysis(
    name="curves",
    compute=lazy(__name__, "curves:curves"),
    settings=Curves,
    sections=(Section("curves", "Variables side by side", lazy(__name__, "curves:panels"), 8.5),),
    rank=6.5,
    findings=lazy(__name__, "curves:findings"),
)
