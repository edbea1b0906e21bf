"""Whether the limits of a study learn anything at all: its record."""

from __future__ import annotations

from hdica.analysis.record import Analysis, lazy

LEARNING = Analysis(
    name="learning",
    compute=lazy(__name__, "compute:learning"),
    say=lazy(__name__, "say:learning"),
    rank=13,
    topic="Where nothing is learned",
    answer=lazy(__name__, "answer:answer"),
)
