"""The drift as a curve, with its zeros: its record."""

from __future__ import annotations

from hdica.analysis.flow.settings import Flow
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

FLOW = register(
    Analysis(
        name="flow",
        compute=lazy("hdica.analysis.flow.compute:flow"),
        settings=Flow,
        sections=(
            Section("flow", "Flow of the limit", lazy("hdica.analysis.flow.figure:flow"), 16),
        ),
        say=lazy("hdica.analysis.flow.say:flow"),
        rank=14,
    )
)
