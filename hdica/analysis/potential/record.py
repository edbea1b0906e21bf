"""The effective potential of one entry: its record."""

from __future__ import annotations

from hdica.analysis.potential.settings import Potential
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

POTENTIAL = register(
    Analysis(
        name="potential",
        compute=lazy(__name__, "compute:potential"),
        settings=Potential,
        sections=(
            Section("potential", "Effective potential", lazy(__name__, "figure:potential"), 14),
        ),
        say=lazy(__name__, "say:potential"),
        rank=11,
    )
)
