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
    """A number, with what it is and how well it is known.

    Parameters
    ----------
    value
        The number, as printed where it is printed.
    what, where
        What it is, and its section, equation or figure.
    origin
        See :data:`Origin`.
    corrected
        What it should be, if an erratum corrects it.
    error
        Standard error, 0 for what is exact.
    rounding
        Half a unit of its last digit, or the tolerance with which it was computed.
    erratum
        The row of the errata that speaks of it.
    how
        How it was found.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    value: float
    what: str
    where: str
    origin: Origin
    corrected: float | None = None
    error: float = Field(default=0.0, ge=0)
    rounding: float = Field(default=0.0, ge=0)
    erratum: str = ""
    how: str = ""


class Reference(BaseModel):
    """Numbers of one paper, by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paper: str
    about: str = ""
    numbers: dict[str, Number] = Field(min_length=1)


def load_reference(path: str) -> Reference:
    """Numbers of a paper.

    Parameters
    ----------
    path
        Below the folder of data: ``"reference/wang2017.yaml"``.

    Raises
    ------
    HdicaError
        If there is no such file, or it is not what a file of numbers has to be.
    """
    file: Path = place(path)
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise HdicaError(f"{file} is no file of numbers (a mapping: paper, about, numbers)")
    try:
        return Reference.model_validate(content)
    except ValidationError as exc:
        raise from_validation(exc, str(file), Reference.model_fields) from exc
