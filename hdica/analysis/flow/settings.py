"""What a picture of the drift may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import Needs, Settings


class Flow(Settings):
    """Drift of the limit and its fixed points."""

    method: Annotated[str, Needs(False, "drift", (("q",),), found=True)] = Field(
        default="", description="method that gives the drift"
    )
    fixed_points: Annotated[str | None, Needs(False)] = Field(
        default=None, description="method that gives fixed points (default: the first that does)"
    )
