"""Recovery of the feature's support by thresholding: settings and record."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.settings import BY_THRESHOLD, Control, Level, Methods, Needs, Settings


class Support(Settings):
    """Recovery of the feature's support by thresholding the estimate."""

    simulation: Annotated[Methods | None, Needs(True, "tpr", (BY_THRESHOLD,), n=True)] = Field(
        default=None, description="stochastic methods"
    )
    limit: Annotated[str, Needs(False, "tpr", (BY_THRESHOLD,), found=True)] = Field(
        default="", description="method that gives the limiting rates"
    )
    level: Level = 0.01
    control: Control = 0.02


SUPPORT = Analysis(
    name="support",
    compute=lazy(__name__, "support:support"),
    settings=Support,
    sections=(Section("support", "Support recovery", lazy(__name__, "support:panels"), 13),),
    rank=10,
    findings=lazy(__name__, "support:findings"),
    suits=lazy(__name__, "support:suits"),
)
