"""What the numbers say, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr
from markupsafe import Markup

from hdica.report.findings.convergence import convergence
from hdica.report.findings.decay import decay
from hdica.report.findings.escape import escape
from hdica.report.findings.flow import flow
from hdica.report.findings.laws import distances, support
from hdica.report.findings.learning import learning
from hdica.report.findings.limits import condensing, potential
from hdica.report.findings.phase import phase
from hdica.report.findings.runs import runs
from hdica.report.findings.slopes import slopes
from hdica.report.findings.steady import steady
from hdica.report.findings.transition import transition
from hdica.report.findings.trapping import trapping

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
