"""What the numbers say, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr
from markupsafe import Markup

from hdica.analysis.convergence.say import convergence
from hdica.analysis.decay.say import decay
from hdica.analysis.distances.say import distances, support
from hdica.analysis.escape.say import escape
from hdica.analysis.flow.say import flow
from hdica.analysis.learning.say import learning
from hdica.analysis.phase.say import phase
from hdica.analysis.potential.say import condensing, potential
from hdica.analysis.runs.say import runs
from hdica.analysis.slopes.say import slopes
from hdica.analysis.steady.say import steady
from hdica.analysis.transition.say import transition
from hdica.analysis.trapping.say import trapping

SENTENCES: dict[str, Callable[[xr.Dataset], list[str]]] = {
    "steady": steady,
    "transition": transition,
    "phase": phase,
    "escape": escape,
    "trapping": trapping,
    "decay": decay,
    "slopes": slopes,
    "convergence": convergence,
    "distances": distances,
    "support": support,
    "potential": potential,
    "condensing": condensing,
    "learning": learning,
    "flow": flow,
    "runs": runs,
}
"""By analysis, most important first."""


def findings(aggregate: xr.DataTree) -> list[Markup]:
    """Sentences of HTML for the top of a report, most important first."""
    out = [
        sentence
        for name, say in SENTENCES.items()
        if name in aggregate
        for sentence in say(aggregate[name].to_dataset())
    ]
    # Every part that a user wrote went through place() or escape().
    return [Markup(text) for text in out]


__all__ = ["findings"]
