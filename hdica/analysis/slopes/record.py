"""How the end of a run changes along a parameter: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy

SLOPES = Analysis(
    name="slopes",
    compute=lazy(__name__, "compute:slopes"),
    sections=(Section("slopes", "Change along a parameter", lazy(__name__, "figure:slopes"), 7),),
    say=lazy(__name__, "say:slopes"),
    rank=7,
)
