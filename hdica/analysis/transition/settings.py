"""What a diagram of critical values may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import TRANSITION, Needs, Settings, SweptName


class Transition(Settings):
    """Where steady states appear or vanish, over one swept parameter."""

    x: SweptName = Field(description="swept parameter on the horizontal axis")
    critical: Annotated[str, Needs(False, "value", (TRANSITION,), found=True)] = Field(
        default="", description="method that gives transitions"
    )
