"""What was run: points, outcomes and time by method: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, lazy

RUNS = Analysis(
    name="runs",
    compute=lazy(__name__, "compute:runs"),
    say=lazy(__name__, "say:runs"),
    rank=15,
    topic="What was run",
)
