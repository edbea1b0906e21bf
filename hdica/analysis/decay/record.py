"""Learning curves: how the distance to a target falls with time: its record."""

from __future__ import annotations

from hdica.analysis.decay.settings import Decay
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

DECAY = register(
    Analysis(
        name="decay",
        compute=lazy(__name__, "compute:decay"),
        settings=Decay,
        sections=(Section("decay", "Learning curves", lazy(__name__, "figure:decay"), 9),),
        say=lazy(__name__, "say:decay"),
        rank=6,
    )
)
