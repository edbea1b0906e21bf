"""Results beside the numbers that a paper prints: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hdica.analysis.record import question
from hdica.analysis.settings import Level, Named, Settings
from hdica.inputs.place import relative
from hdica.systems.system import System


class Place(BaseModel):
    """Where in the results a number is: a method, its output, and what to select of that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str
    variable: str
    sel: dict[str, int | float | str] = Field(default={})
    magnitude: bool = Field(default=False)


class Printed(Settings):
    """Results beside the numbers that a paper prints, or that were found apart from this code."""

    file: Annotated[str, AfterValidator(relative)] = Field(
        description="numbers, a path below the folder of data: `reference/wang2017.yaml`"
    )
    numbers: dict[str, Place] = Field(
        min_length=1,
        max_length=100,
        description=(
            "by name in the file, where ours is: `{method, variable}`, with `sel: {tau: 0.05, "
            "time: 10}` where there is more than one (default: "
            "the last time and the largest n), and `magnitude: true` for absolute values"
        ),
    )
    level: Level = 0.01

    def named(self, system: System | None) -> list[Named]:
        """The method of every number, which must have its output."""
        methods, out = () if system is None else system.methods, []
        known = [(output.name, output.dims) for m in methods for output in m.outputs_of()]
        for one in self.numbers.values():
            shapes = sorted({dims for name, dims in known if name == one.variable})
            dims = tuple(shapes) or (("time",), ())  # of an average of entries
            out.append(Named("numbers", one.method, None, one.variable, dims))
        return out


PRINTED = question(__name__, "printed", Printed, "Reference numbers", 0.5, 17.5, notes="notes")
