"""Where learning stops, over two swept parameters: its record."""

from __future__ import annotations

from hdica.analysis.phase.settings import Phase
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

PHASE = register(
    Analysis(
        name="phase",
        compute=lazy(__name__, "compute:phase"),
        settings=Phase,
        sections=(Section("phase", "Where learning stops", lazy(__name__, "figure:phase"), 3),),
        say=lazy(__name__, "say:phase"),
        rank=3,
    )
)
