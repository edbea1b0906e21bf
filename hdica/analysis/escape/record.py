"""Escape times: runs that ended too early included, against theory: its record."""

from __future__ import annotations

from hdica.analysis.escape.settings import Escape
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

ESCAPE = register(
    Analysis(
        name="escape",
        compute=lazy(__name__, "compute:escape"),
        settings=Escape,
        sections=(Section("escape", "Escape times", lazy(__name__, "figure:escape"), 6),),
        say=lazy(__name__, "say:escape"),
        rank=4,
    )
)
