"""Single runs of a simulation: its record."""

from __future__ import annotations

from hdica.analysis.paths.settings import Paths
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

PATHS = register(
    Analysis(
        name="paths",
        compute=lazy("hdica.analysis.paths.compute:paths"),
        settings=Paths,
        sections=(Section("paths", "Single runs", lazy("hdica.analysis.paths.figure:paths"), 5),),
    )
)
