"""The drift as a curve, with its zeros: its record."""

from __future__ import annotations

from hdica.analysis.flow.settings import Flow
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

FLOW = register(
    Analysis(
        name="flow",
        compute=lazy(__name__, "compute:flow"),
        settings=Flow,
        sections=(Section("flow", "Flow of the limit", lazy(__name__, "figure:flow"), 16),),
        say=lazy(__name__, "say:flow"),
        rank=14,
    )
)
