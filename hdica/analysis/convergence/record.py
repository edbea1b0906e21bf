"""Simulation against limit as n grows: its record."""

from __future__ import annotations

from hdica.analysis.convergence.settings import Convergence
from hdica.analysis.record import Analysis, Section, Verdicts, lazy
from hdica.analysis.registry import register

CONVERGENCE = register(
    Analysis(
        name="convergence",
        compute=lazy(__name__, "compute:convergence"),
        settings=Convergence,
        sections=(
            Section(
                "trajectories",
                "Trajectories and their limit",
                lazy(__name__, "figure:trajectories"),
                10,
            ),
            Section(
                "scaling", "Error against n", lazy(__name__, "figure:fluctuation_and_bias"), 15
            ),
        ),
        say=lazy(__name__, "say:convergence"),
        rank=8,
        verdicts=Verdicts(
            "Verdict of each comparison", lazy(__name__, "table:verdicts"), whole=True
        ),
    )
)
