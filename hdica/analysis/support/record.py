"""Recovery of the feature's support by thresholding: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, Verdicts, lazy
from hdica.analysis.registry import register
from hdica.analysis.support.settings import Support

SUPPORT = register(
    Analysis(
        name="support",
        compute=lazy(__name__, "compute:support"),
        settings=Support,
        sections=(Section("support", "Support recovery", lazy(__name__, "figure:support"), 13),),
        say=lazy(__name__, "say:support"),
        rank=10,
        verdicts=Verdicts("Support recovery", lazy(__name__, "table:support")),
    )
)
