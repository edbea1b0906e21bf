"""Whether the limits of a study learn anything at all: its record."""

from hdica.analysis.record import Analysis, lazy

LEARNING = Analysis(
    name="learning",
    compute=lazy(__name__, "learning:learning"),
    rank=13,
    notes=lazy(__name__, "learning:notes"),
    topic="Where nothing is learned",
)
