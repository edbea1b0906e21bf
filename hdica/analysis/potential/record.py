"""The effective potential of one entry: its record."""

from __future__ import annotations

from hdica.analysis.potential.settings import Potential
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

POTENTIAL = register(
    Analysis(
        name="potential",
        compute=lazy("hdica.analysis.potential.compute:potential"),
        settings=Potential,
        sections=(
            Section(
                "potential",
                "Effective potential",
                lazy("hdica.analysis.potential.figure:potential"),
                14,
            ),
        ),
        say=lazy("hdica.analysis.potential.say:potential"),
        rank=11,
    )
)
