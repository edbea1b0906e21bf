"""A landscape on the circle or the sphere, with its critical points: settings and record."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import FIXED_POINT, Named, Needs, Settings
from hdica.systems.system import System

BY_COMPONENT = ("fixed_point", "component")
BY_ANGLE, BY_ANGLES = ("azimuth",), ("polar", "azimuth")
JUDGED = ("stable", "unstable")
"""Of a critical point: whether it is stable, and its number of unstable directions."""


class Sphere(Settings):
    """Landscape on the circle (d = 2) or the sphere (d = 3), and its critical points."""

    states: Annotated[str, Needs(False, attrgetter("coordinates"), (BY_COMPONENT,))] = Field(
        description="method that gives critical points with `stable` and `unstable`, the number of "
        "unstable directions"
    )
    landscape: Annotated[str | None, Needs(False, attrgetter("value"), (BY_ANGLE, BY_ANGLES))] = (
        Field(default=None, description="method that gives the objective in every direction")
    )
    coordinates: str = Field(description="output of states with the coordinates of each")
    value: str = Field(
        default="value", description="output of the landscape over azimuth, or polar and azimuth"
    )

    def named(self, system: System | None) -> list[Named]:
        """Every method, that of critical points once for each output that is taken of it."""
        out = super().named(system)
        states = [one for one in out if one.key == "states"]  # none while it is left open
        judged = [replace(one, output=o, dims=(FIXED_POINT,)) for one in states for o in JUDGED]
        return [*out, *judged]


SPHERE = Analysis(
    name="sphere",
    compute=lazy(__name__, "sphere:sphere"),
    settings=Sphere,
    sections=(Section("sphere", "The landscape", lazy(__name__, "sphere:panels"), 16.6),),
    rank=13.6,
    findings=lazy(__name__, "sphere:findings"),
)
