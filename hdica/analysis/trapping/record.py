"""The potential that holds an overlap near zero: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register
from hdica.analysis.trapping.settings import Trapping

TRAPPING = register(
    Analysis(
        name="trapping",
        compute=lazy(__name__, "compute:trapping"),
        settings=Trapping,
        sections=(Section("trapping", "Trapping potential", lazy(__name__, "figure:trapping"), 4),),
        say=lazy(__name__, "say:trapping"),
        rank=5,
    )
)
