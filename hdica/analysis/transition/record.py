"""Critical values as another parameter varies: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register
from hdica.analysis.transition.settings import Transition

TRANSITION = register(
    Analysis(
        name="transition",
        compute=lazy("hdica.analysis.transition.compute:transition"),
        settings=Transition,
        sections=(
            Section(
                "transition", "Transitions", lazy("hdica.analysis.transition.figure:transition"), 2
            ),
        ),
        say=lazy("hdica.analysis.transition.say:transition"),
        rank=2,
    )
)
