"""Trajectories of several methods side by side: its record."""

from __future__ import annotations

from hdica.analysis.compare.settings import Compare
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

COMPARE = register(
    Analysis(
        name="compare",
        compute=lazy(__name__, "compute:compare"),
        settings=Compare,
        sections=(Section("compare", "Methods side by side", lazy(__name__, "figure:compare"), 8),),
    )
)
