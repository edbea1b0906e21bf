"""Whether a limit condenses: mass that no density can hold: its record."""

from hdica.analysis.record import Analysis, lazy

CONDENSING = Analysis(
    name="condensing",
    compute=lazy(__name__, "condensing:condensing"),
    rank=12,
    notes=lazy(__name__, "condensing:notes"),
    topic="Condensation",
)
