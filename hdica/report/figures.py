"""Figures of the analyses, described as panels."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from hdica.analysis.compare.figure import compare
from hdica.analysis.convergence.figure import fluctuation_and_bias, trajectories
from hdica.analysis.decay.figure import decay
from hdica.analysis.densities.figure import densities
from hdica.analysis.distances.figure import distances
from hdica.analysis.escape.figure import escape
from hdica.analysis.flow.figure import flow
from hdica.analysis.paths.figure import paths
from hdica.analysis.phase.figure import phase
from hdica.analysis.potential.figure import potential
from hdica.analysis.show.panel import Panel
from hdica.analysis.slopes.figure import slopes
from hdica.analysis.steady.figure import steady
from hdica.analysis.support.figure import support
from hdica.analysis.transition.figure import transition
from hdica.analysis.trapping.figure import trapping

FIGURES: dict[str, tuple[str, Callable[[xr.Dataset], list[Panel]]]] = {
    "trajectories": ("convergence", trajectories),
    "scaling": ("convergence", fluctuation_and_bias),
    "phase": ("phase", phase),
    "slopes": ("slopes", slopes),
    "flow": ("flow", flow),
    "compare": ("compare", compare),
    "steady": ("steady", steady),
    "transition": ("transition", transition),
    "escape": ("escape", escape),
    "paths": ("paths", paths),
    "decay": ("decay", decay),
    "trapping": ("trapping", trapping),
    "densities": ("densities", densities),
    "distances": ("distances", distances),
    "support": ("support", support),
    "potential": ("potential", potential),
}
"""Sections: the analysis that they show, and the panels of it."""


def panels(aggregate: xr.DataTree) -> dict[str, list[Panel]]:
    """All panels of a report by section."""
    out = {
        section: draw(aggregate[analysis].to_dataset())
        for section, (analysis, draw) in FIGURES.items()
        if analysis in aggregate
    }
    return {section: found for section, found in out.items() if found}


__all__ = ["panels"]
