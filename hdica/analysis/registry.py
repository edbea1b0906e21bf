"""Which analyses there are: those that come with hdica, and those registered by plug-ins."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from hdica.analysis.record import Analysis
from hdica.analysis.settings import Settings
from hdica.errors import HdicaError
from hdica.systems import plugins
from hdica.systems.registry import load_plugins

OWN = (
    "runs", "condensing", "learning", "choices", "slopes", "convergence", "phase", "success",
    "dependence", "exponents", "collapse", "flow", "densities", "distances", "support", "potential",
    "steady", "compare", "transition", "escape", "paths", "decay", "trapping", "ensemble", "sphere",
    "curves", "pictures", "printed",
)  # fmt: skip
"""Folders of the analyses that come with hdica, in the order in which they are computed."""
GROUP = "hdica.analyses"
"""Entry points of packages that bring analyses of their own."""
_ANALYSES: dict[str, Analysis] = {}


def register(analysis: Any) -> Analysis:
    """Make an analysis known by the name in its record, and return it."""
    if not isinstance(analysis, Analysis):
        kind = type(analysis).__name__
        raise HdicaError(f"register: a {kind} is not allowed (a record: hdica.analysis.record)")
    known = _ANALYSES.get(analysis.name)
    if known is not None and known.settings is not analysis.settings:
        raise HdicaError(f"register: the name {analysis.name} is taken (by another analysis)")
    _ANALYSES[analysis.name] = analysis
    return analysis


@cache
def _load_own() -> None:
    """Register what comes with hdica."""
    for name in OWN:
        register(getattr(import_module(f"hdica.analysis.{name}"), name.upper()))


@cache
def _load() -> None:
    """Register what comes with hdica and with other packages."""
    _load_own()
    load_plugins()  # a package that brings a system may bring analyses of it
    plugins.load(GROUP, "analysis", Analysis, register)


def analyses() -> dict[str, Analysis]:
    """Every analysis by name, in the order in which they are computed."""
    _load()
    return _ANALYSES


def at_hand() -> dict[str, Analysis]:
    """Those that are known without any system: what comes with hdica, and what is loaded."""
    _load_own()
    return _ANALYSES


def asked_for() -> dict[str, type[Settings]]:
    """Settings of those that a study has to ask for."""
    return {name: one.settings for name, one in analyses().items() if one.settings is not None}
