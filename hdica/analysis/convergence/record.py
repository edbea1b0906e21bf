"""Simulation against limit as n grows: its record."""

from __future__ import annotations

from hdica.analysis.convergence.settings import Convergence
from hdica.analysis.record import Analysis, Section, Verdicts, lazy
from hdica.analysis.registry import register

CONVERGENCE = register(
    Analysis(
        name="convergence",
        compute=lazy("hdica.analysis.convergence.compute:convergence"),
        settings=Convergence,
        sections=(
            Section(
                "trajectories",
                "Trajectories and their limit",
                lazy("hdica.analysis.convergence.figure:trajectories"),
                10,
            ),
            Section(
                "scaling",
                "Error against n",
                lazy("hdica.analysis.convergence.figure:fluctuation_and_bias"),
                15,
            ),
        ),
        say=lazy("hdica.analysis.convergence.say:convergence"),
        rank=8,
        verdicts=Verdicts(
            "Verdict of each comparison",
            lazy("hdica.analysis.convergence.table:verdicts"),
            whole=True,
        ),
    )
)
