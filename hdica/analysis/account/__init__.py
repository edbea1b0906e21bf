"""What was run, chosen and learned at the points of a study, in notes: records."""

from __future__ import annotations

from hdica.analysis.record import Analysis, Answer, lazy

RUNS = Analysis(
    "runs",
    lazy(__name__, "account:runs"),
    answer=Answer(15, notes=lazy(__name__, "account:notes_of_runs"), topic="What was run"),
)


CONDENSING = Analysis(
    "condensing",
    lazy(__name__, "account:condensing"),
    answer=Answer(12, notes=lazy(__name__, "account:notes_of_condensing"), topic="Condensation"),
)


LEARNING = Analysis(
    "learning",
    lazy(__name__, "account:learning"),
    answer=Answer(
        13, notes=lazy(__name__, "account:notes_of_learning"), topic="Where nothing is learned"
    ),
)


CHOICES = Analysis(
    "choices",
    lazy(__name__, "account:choices"),
    answer=Answer(12.5, notes=lazy(__name__, "account:notes_of_choices"), topic="Choices and data"),
)
