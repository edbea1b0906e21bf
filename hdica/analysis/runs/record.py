"""What was run: points, outcomes and time by method: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, lazy
from hdica.analysis.registry import register

RUNS = register(
    Analysis(
        name="runs",
        compute=lazy("hdica.analysis.runs.compute:runs"),
        say=lazy("hdica.analysis.runs.say:runs"),
        rank=15,
    )
)
