"""Where learning stops, over two swept parameters: its record."""

from __future__ import annotations

from hdica.analysis.phase.settings import Phase
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

PHASE = register(
    Analysis(
        name="phase",
        compute=lazy("hdica.analysis.phase.compute:phase"),
        settings=Phase,
        sections=(
            Section("phase", "Where learning stops", lazy("hdica.analysis.phase.figure:phase"), 3),
        ),
        say=lazy("hdica.analysis.phase.say:phase"),
        rank=3,
    )
)
