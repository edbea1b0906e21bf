"""Numbers of papers, to be compared with: files of ``data/reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import HdicaError, from_validation
from hdica.inputs.place import place
from hdica.inputs.plain_yaml import read_yaml

Origin = Literal["setting", "printed", "formula", "derived", "simulated"]
"""Where a number comes from: a setting of an experiment or a result, both printed; what a printed
formula gives; a derivation or a simulation apart from this code."""


class Number(BaseModel):
    """A number, with what it is and how well it is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    value: float  # as printed where it is printed
    what: str  # what it is
    where: str  # section, equation or figure
    origin: Origin
    corrected: float | None = None  # what it should be, if an erratum corrects it
    error: float = Field(default=0.0, ge=0)  # standard error, 0 for what is exact
    rounding: float = Field(
        default=0.0, ge=0
    )  # half a unit of its last digit, or the tolerance of its computation
    erratum: str = ""  # the row of the errata about it
    how: str = ""  # how it was computed


class Reference(BaseModel):
    """Numbers of one paper, by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paper: str
    about: str = ""
    numbers: dict[str, Number] = Field(min_length=1)


def load_reference(path: str) -> Reference:
    """Numbers of a paper, of a path below the folder of data: ``"reference/wang2017.yaml"``.

    Refused if there is no such file, or it is not what a file of numbers has to be.
    """
    file: Path = place(path)
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise HdicaError(f"{file} is no file of numbers (a mapping: paper, about, numbers)")
    try:
        return Reference.model_validate(content)
    except ValidationError as exc:
        raise from_validation(exc, str(file), Reference.model_fields) from exc
