"""Steady states over one parameter, and where simulations end: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register
from hdica.analysis.steady.settings import Steady

STEADY = register(
    Analysis(
        name="steady",
        compute=lazy("hdica.analysis.steady.compute:steady"),
        settings=Steady,
        sections=(
            Section("steady", "Steady states", lazy("hdica.analysis.steady.figure:steady"), 1),
        ),
        say=lazy("hdica.analysis.steady.say:steady"),
        rank=1,
    )
)
