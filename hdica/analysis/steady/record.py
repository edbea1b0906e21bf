"""Steady states over one parameter, and where simulations end: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register
from hdica.analysis.steady.settings import Steady

STEADY = register(
    Analysis(
        name="steady",
        compute=lazy(__name__, "compute:steady"),
        settings=Steady,
        sections=(Section("steady", "Steady states", lazy(__name__, "figure:steady"), 1),),
        say=lazy(__name__, "say:steady"),
        rank=1,
    )
)
