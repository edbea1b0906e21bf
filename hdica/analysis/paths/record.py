"""Single runs of a simulation: its record."""

from __future__ import annotations

from hdica.analysis.paths.settings import Paths
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

PATHS = register(
    Analysis(
        name="paths",
        compute=lazy(__name__, "compute:paths"),
        settings=Paths,
        sections=(Section("paths", "Single runs", lazy(__name__, "figure:paths"), 5),),
    )
)
