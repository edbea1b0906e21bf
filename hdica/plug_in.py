"""What others bring: systems and analyses of their own, and all that a record is made of."""

from __future__ import annotations

from typing import overload

from hdica.analysis import registry as analyses
from hdica.analysis.record import Analysis as Analysis
from hdica.finite.record import steps_of as steps_of
from hdica.systems import system as systems
from hdica.systems.method import About as About
from hdica.systems.method import Cost as Cost
from hdica.systems.method import Limit as Limit
from hdica.systems.method import Output as Output
from hdica.systems.method import Outputs as Outputs
from hdica.systems.method import PointResult as PointResult
from hdica.systems.method import Role as Role
from hdica.systems.method import Scope as Scope
from hdica.systems.method import Simulation as Simulation
from hdica.systems.method import States as States
from hdica.systems.parameters import Parameters as Parameters
from hdica.systems.system import Control as Control
from hdica.systems.system import OrderParameter as OrderParameter
from hdica.systems.system import Paper as Paper
from hdica.systems.system import System as System
from hdica.systems.trials import seeded as seeded


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
