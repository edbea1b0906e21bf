"""What a system chose of itself where a study left it to it: its record."""

from hdica.analysis.record import Analysis, lazy

CHOICES = Analysis(
    name="choices",
    compute=lazy(__name__, "choices:choices"),
    rank=12.5,
    notes=lazy(__name__, "choices:notes"),
    topic="Choices and data",
)
