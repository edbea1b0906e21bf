"""What the recovery of the support may name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.settings import BY_THRESHOLD, Level, Methods, Needs, Settings


class Support(Settings):
    """Recovery of the feature's support by thresholding the estimate."""

    simulation: Annotated[Methods | None, Needs(True, "tpr", (BY_THRESHOLD,))] = Field(
        default=None, description="stochastic methods"
    )
    limit: Annotated[str, Needs(False, "tpr", (BY_THRESHOLD,), found=True)] = Field(
        default="", description="method that gives the limiting rates"
    )
    level: Level = 0.01
