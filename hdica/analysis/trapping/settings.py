"""What a picture of the trapping potential may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import Needs, Settings


class Trapping(Settings):
    """The potential that holds an overlap near zero, and its barrier."""

    limit: Annotated[str, Needs(False, "U", (("r",),), entries=True, found=True)] = Field(
        default="", description="method that gives the potential"
    )
