"""What others bring: systems and analyses of their own, made known to this process."""

from __future__ import annotations

from typing import Any

from hdica.analysis import registry as analyses
from hdica.analysis.record import Analysis
from hdica.systems import registry as systems


def register(record: Any) -> Any:
    """Make a system or an analysis of one's own known to this process, and return its record.

    A study names it like any other. What other processes shall know too, those of a cluster or of
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
