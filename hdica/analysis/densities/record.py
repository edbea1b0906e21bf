"""Densities of the estimate's entries, given the feature: its record."""

from __future__ import annotations

from hdica.analysis.densities.settings import Densities
from hdica.analysis.record import Analysis, Section, lazy
from hdica.analysis.registry import register

DENSITIES = register(
    Analysis(
        name="densities",
        compute=lazy(__name__, "compute:densities"),
        settings=Densities,
        sections=(
            Section(
                "densities", "Densities of the estimate", lazy(__name__, "figure:densities"), 11
            ),
        ),
    )
)
