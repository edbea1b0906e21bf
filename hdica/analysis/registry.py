"""Which analyses there are: those that come with hdica, and those registered by plug-ins."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from hdica.analysis.record import Analysis
from hdica.errors import HdicaError

_ANALYSES: dict[str, Analysis] = {}


def register(analysis: Any) -> Analysis:
    """Make an analysis known by its name, and return it.

    Parameters
    ----------
    analysis
        Its record.

    Raises
    ------
    HdicaError
        If it is no record of an analysis, or another one has its name.
    """
    if not isinstance(analysis, Analysis):
        kind = type(analysis).__name__
        raise HdicaError(f"register: a {kind} is not allowed (a record: hdica.analysis.record)")
    known = _ANALYSES.get(analysis.name)
    if known is not None and known.settings is not analysis.settings:
        raise HdicaError(f"register: the name {analysis.name} is taken (by another analysis)")
    _ANALYSES[analysis.name] = analysis
    return analysis


@cache
def _loaded() -> bool:
    """Load what comes with hdica; each record registers itself."""
    import_module("hdica.analysis.built_in")
    return True


def analyses() -> dict[str, Analysis]:
    """Every analysis by name, in the order in which they are computed."""
    _loaded()
    return _ANALYSES


def asked_for() -> dict[str, Analysis]:
    """Those that a study has to ask for."""
    return {name: one for name, one in analyses().items() if one.settings is not None}
