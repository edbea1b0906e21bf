"""What the metadata of a segment say about it, checked when it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hdica.sweep.files.sealed import SCHEMA_VERSION, SchemaError


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise ValueError("it is no name")
    return name


class Attributes(BaseModel):
    """Attributes of the Zarr group of a segment."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = Field(description="layout, see hdica.sweep.files.sealed")
    hdica_version: str = Field(description="what made it")
    id: str = Field(pattern=r"^[0-9a-f]{32}$", description="of its own, whatever it holds")
    system: str
    method: str
    n: int | None = Field(ge=1, description="dimension, None for a method without")
    times: tuple[float, ...]
    kernel: str = Field(description="version of the numerical code")
    noise: Literal["own", "shared"]
    block: int = Field(ge=1, description="places a block")
    outputs: tuple[Annotated[str, AfterValidator(_identifier)], ...]
    save: dict[str, Any] = Field(description="what is kept beyond the method's outputs")


def checked(attributes: dict[str, Any], path: Path) -> dict[str, Any]:
    """Attributes of a segment, if they are of this version.

    Parameters
    ----------
    attributes
        As they are stored.
    path
        Directory of the segment.
    """
    schema = attributes.get("schema_version")
    if isinstance(schema, int) and schema < SCHEMA_VERSION:
        raise SchemaError(
            f"{path} has schema {schema}, of an earlier version of hdica (remove it, and the next "
            "run computes it anew)"
        )
    return Attributes.model_validate(attributes).model_dump()
