"""What a picture of the effective potential may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import BY_X, Needs, Settings


class Potential(Settings):
    """The effective potential of one entry, at the snapshots."""

    limit: Annotated[str, Needs(False, "potential", (BY_X,), found=True)] = Field(
        default="", description="method that gives the potential"
    )
