"""Which systems there are: those that come with hdica, those of plug-ins, those registered here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from hdica.errors import HdicaError
from hdica.systems.method import Method
from hdica.systems.system import System

_SYSTEMS: dict[str, System] = {}


def register(system: Any) -> System:
    """Make a system known by its name, and return it.

    Parameters
    ----------
    system
        Its record.

    Raises
    ------
    HdicaError
        If it is no record of a system, or another one has its name.
    """
    if not isinstance(system, System):
        kind = type(system).__name__
        raise HdicaError(f"register: a {kind} is not allowed (a record: hdica.System)")
    known = _SYSTEMS.get(system.name)
    if known is not None and known.parameters.__module__ != system.parameters.__module__:
        raise HdicaError(
            f"register: the name {system.name} is taken (by {known.parameters.__module__})"
        )
    _SYSTEMS[system.name] = system
    return system


@cache
def _loaded() -> bool:
    """Load what comes with hdica; each record registers itself."""
    import_module("hdica.systems.built_in")
    return True


def systems() -> dict[str, System]:
    """Every system by name, in the order in which they became known."""
    _loaded()
    return _SYSTEMS


def system_named(name: str) -> System:
    """The record of a system.

    Raises
    ------
    HdicaError
        If there is no such system.
    """
    known = systems()
    if name not in known:
        raise HdicaError(f"system = {name!r} is not known (allowed: {', '.join(known)})")
    return known[name]


def record_of(parameters: Any) -> System:
    """The record behind the parameters of a problem.

    Raises
    ------
    HdicaError
        If they belong to no system.
    """
    name, known = type(parameters).__name__, systems()
    if name not in known or not isinstance(parameters, known[name].parameters):
        raise HdicaError(f"system: a {name} is not allowed (allowed: {', '.join(known)})")
    return known[name]


def methods_of(name: str, noise: str = "own") -> dict[str, Method]:
    """The methods of a system, by name.

    Parameters
    ----------
    name
        The system.
    noise
        ``"shared"`` for methods whose points of equal n and seed share their noise, where a
        method can: see :attr:`hdica.systems.method.Method.shared`.

    Raises
    ------
    HdicaError
        If there is no such system.
    """
    methods = {method.name: method for method in system_named(name).methods}
    if noise == "own":
        return methods
    return {key: method.shared or method for key, method in methods.items()}
