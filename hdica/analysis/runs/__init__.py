"""What was run: points, outcomes and time by method: its record."""

from hdica.analysis.record import Analysis, lazy

RUNS = Analysis(
    name="runs",
    compute=lazy(__name__, "runs:runs"),
    rank=15,
    notes=lazy(__name__, "runs:notes"),
    topic="What was run",
)
