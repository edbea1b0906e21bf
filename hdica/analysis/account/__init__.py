"""What was run, chosen and learned at the points of a study, in notes: records."""

from __future__ import annotations

from functools import partial

from hdica.analysis.record import question

_noted = partial(question, __name__, settings=None, rank=None, module="account", findings="")

RUNS = _noted("runs", heading="What was run", answer=15, notes="notes_of_runs")
CONDENSING = _noted("condensing", heading="Condensation", answer=12, notes="notes_of_condensing")
LEARNING = _noted(
    "learning", heading="Where nothing is learned", answer=13, notes="notes_of_learning"
)
CHOICES = _noted("choices", heading="Choices and data", answer=12.5, notes="notes_of_choices")
