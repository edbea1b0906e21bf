"""Filters as pictures, and a landscape on the circle or the sphere: settings and records."""

from __future__ import annotations

from itertools import product
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import Field, field_validator

from hdica.analysis.record import question
from hdica.analysis.settings import Names, Needs, Outputs, Settings
from hdica.errors import HdicaError

BY_PIXEL = ("row", "column")
"""Dimensions of a picture; red, green and blue lie along ``channel``."""
NUMBER, CHANNEL = "component", "channel"
TIMES = ((), ("time",))
PIXELS = tuple(
    (*time, *number, *BY_PIXEL, *colour)
    for time, number, colour in product(TIMES, ((), (NUMBER,)), ((), (CHANNEL,)))
)
BY_NUMBER = tuple((*time, NUMBER) for time in TIMES)


class Shown(Settings):
    """Outputs over the pixels of a picture, each drawn as pictures beside one another."""

    method: Annotated[str, Needs(None, None)] = Field(description="method that gives the pictures")
    show: Names = Field(
        description="its outputs over `row` and `column` (with `component` several pictures, with "
        "`channel` in colour, of `time` the last), on request in `save.extra`"
    )
    by: str | None = Field(
        default=None,
        description="its output over `component` by which pictures are sorted, the least first, "
        "and named",
    )
    against: str | None = Field(
        default=None, description="its output over `component` that `by` is compared with"
    )
    unsorted: Names = Field(
        default=(), description="those of `show` whose components have an order of their own"
    )
    scale: Literal["each", "together"] = Field(
        default="each",
        description="`each` picture from black to white about its grey zero, or all `together`",
    )
    most: int = Field(default=64, ge=1, le=400, description="pictures of an output at most")

    @field_validator("show")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value):
            raise HdicaError(
                f"show = {list(value)} is not allowed (at least one output, each only once)"
            )
        return value

    def _outputs(self, key: str, method: str, needs: Needs) -> Outputs:
        numbers = [(name, BY_NUMBER) for name in (self.by, self.against) if name is not None]
        return [*((name, PIXELS) for name in self.show), *numbers]


PICTURES = question(__name__, "pictures", Shown, "Pictures", 16.8, 13.8)


BY_STATE = (("fixed_point",),)
COORDINATES = Needs(False, attrgetter("coordinates"), "fixed_point component")
LANDSCAPE = Needs(False, attrgetter("value"), ("azimuth", "polar azimuth"))
JUDGED = ("stable", "unstable")
"""Of a critical point: whether it is stable, and its number of unstable directions."""


class Sphere(Settings):
    """Landscape on the circle (d = 2) or the sphere (d = 3), and its critical points."""

    states: Annotated[str, COORDINATES] = Field(
        description="method that gives critical points with `stable` and `unstable`, the number of "
        "unstable directions"
    )
    landscape: Annotated[str | None, LANDSCAPE] = Field(
        default=None, description="method that gives the objective in every direction"
    )
    coordinates: str = Field(description="output of states with the coordinates of each")
    value: str = Field(
        default="value", description="output of the landscape over azimuth, or polar and azimuth"
    )

    def _outputs(self, key: str, method: str, needs: Needs) -> Outputs:
        judged = [(output, BY_STATE) for output in JUDGED if key == "states"]
        return [*super()._outputs(key, method, needs), *judged]


SPHERE = question(__name__, "sphere", Sphere, "The landscape", 16.6, 13.6)
