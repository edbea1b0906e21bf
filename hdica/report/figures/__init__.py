"""Figures of the analyses, described as panels."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from hdica.report.figures.compare import compare
from hdica.report.figures.convergence import fluctuation_and_bias, trajectories
from hdica.report.figures.decay import decay
from hdica.report.figures.densities import densities
from hdica.report.figures.distances import distances
from hdica.report.figures.escape import escape
from hdica.report.figures.flow import flow
from hdica.report.figures.paths import paths
from hdica.report.figures.phase import phase
from hdica.report.figures.potential import potential
from hdica.report.figures.slopes import slopes
from hdica.report.figures.steady import steady
from hdica.report.figures.support import support
from hdica.report.figures.transition import transition
from hdica.report.figures.trapping import trapping
from hdica.report.panel import Panel

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
