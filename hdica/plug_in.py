"""What others bring: systems and analyses of their own, and all that a record is made of."""

from __future__ import annotations

from typing import overload

from hdica.analysis import registry as analyses
from hdica.analysis.record import Analysis
from hdica.finite.record import steps_of
from hdica.systems import system as systems
from hdica.systems.method import (
    About,
    Cost,
    Limit,
    Output,
    Outputs,
    PointResult,
    Role,
    Scope,
    Simulation,
    States,
)
from hdica.systems.parameters import Parameters
from hdica.systems.system import Control, OrderParameter, Paper, System
from hdica.systems.trials import seeded

__all__ = [
    "About", "Analysis", "Control", "Cost", "Limit", "OrderParameter", "Output", "Outputs", "Paper",
    "Parameters", "PointResult", "Role", "Scope", "Simulation", "States", "System", "register",
    "seeded", "steps_of",
]  # fmt: skip


@overload
def register(record: Analysis) -> Analysis: ...
@overload
def register(record: System) -> System: ...
def register(record: object) -> Analysis | System:
    """Add a system or an analysis of one's own in this process, and return its record.

    A study names it like any other. What other processes need too, those of a cluster or of
    Snakemake, comes with an installed package, by an entry point of the group ``hdica.systems`` or
    ``hdica.analyses``.

    Parameters
    ----------
    record
        A :class:`hdica.System`, or a :class:`hdica.Analysis`.

    Raises
    ------
    HdicaError
        If it is neither, or another one has its name.
    """
    if isinstance(record, Analysis):
        return analyses.register(record)
    return systems.register(record)
