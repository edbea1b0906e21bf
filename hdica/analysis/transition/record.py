"""Critical values as another parameter varies: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register
from hdica.analysis.transition.settings import Transition

TRANSITION = register(
    Analysis(
        name="transition",
        compute=lazy(__name__, "compute:transition"),
        settings=Transition,
        sections=(Section("transition", "Transitions", lazy(__name__, "figure:transition"), 2),),
        say=lazy(__name__, "say:transition"),
        rank=2,
    )
)
