"""What was run, chosen and learned at the points of a study, in notes: records."""

from __future__ import annotations

from hdica.analysis.record import Analysis, lazy

RUNS = Analysis(
    name="runs",
    compute=lazy(__name__, "account:runs"),
    rank=15,
    notes=lazy(__name__, "account:notes_of_runs"),
    topic="What was run",
)


CONDENSING = Analysis(
    name="condensing",
    compute=lazy(__name__, "account:condensing"),
    rank=12,
    notes=lazy(__name__, "account:notes_of_condensing"),
    topic="Condensation",
)


LEARNING = Analysis(
    name="learning",
    compute=lazy(__name__, "account:learning"),
    rank=13,
    notes=lazy(__name__, "account:notes_of_learning"),
    topic="Where nothing is learned",
)


CHOICES = Analysis(
    name="choices",
    compute=lazy(__name__, "account:choices"),
    rank=12.5,
    notes=lazy(__name__, "account:notes_of_choices"),
    topic="Choices and data",
)
