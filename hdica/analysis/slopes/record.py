"""How the end of a run changes along a parameter: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

SLOPES = register(
    Analysis(
        name="slopes",
        compute=lazy("hdica.analysis.slopes.compute:slopes"),
        sections=(
            Section(
                "slopes", "Change along a parameter", lazy("hdica.analysis.slopes.figure:slopes"), 7
            ),
        ),
        say=lazy("hdica.analysis.slopes.say:slopes"),
        rank=7,
    )
)
