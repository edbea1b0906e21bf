"""Escape times: runs that ended too early included, against theory: its record."""

from __future__ import annotations

from hdica.analysis.escape.settings import Escape
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

ESCAPE = register(
    Analysis(
        name="escape",
        compute=lazy("hdica.analysis.escape.compute:escape"),
        settings=Escape,
        sections=(
            Section("escape", "Escape times", lazy("hdica.analysis.escape.figure:escape"), 6),
        ),
        say=lazy("hdica.analysis.escape.say:escape"),
        rank=4,
    )
)
