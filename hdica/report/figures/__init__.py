"""Figures of the analyses, described as panels."""

from __future__ import annotations

import xarray as xr

from hdica.report.figures.convergence import fluctuation_and_bias, trajectories
from hdica.report.figures.flow import flow
from hdica.report.figures.phase import phase
from hdica.report.panel import Panel


def panels(aggregate: xr.DataTree) -> dict[str, list[Panel]]:
    """All panels of a report by section, in reading order."""
    out: dict[str, list[Panel]] = {}
    if "convergence" in aggregate:
        data = aggregate["convergence"].to_dataset()
        out["trajectories"] = trajectories(data)
        out["scaling"] = fluctuation_and_bias(data)
    if "phase" in aggregate:
        out["phase"] = phase(aggregate["phase"].to_dataset())
    if "flow" in aggregate:
        out["flow"] = flow(aggregate["flow"].to_dataset())
    return {section: found for section, found in out.items() if found}


__all__ = ["panels"]
