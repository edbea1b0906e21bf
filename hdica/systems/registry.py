"""Which systems there are: those that come with hdica, those of plug-ins, those registered here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError, suggestion
from hdica.systems import plugins
from hdica.systems.method import Method, shared_twin
from hdica.systems.system import System

GROUP = "hdica.systems"
"""Entry points of packages that bring systems of their own."""
_SYSTEMS: dict[str, System] = {}
_INSTALLED: set[str] = set()
"""Names of those that every process knows, because they come with a package."""


def register(system: Any) -> System:
    """Make a system known by its name, and return it.

    Parameters
    ----------
    system
        Its record.
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


def snake(name: str) -> str:
    """``TwoWords`` as ``two_words``, and ``AnICA`` as ``an_ica``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def load_plugins() -> None:
    """Load the systems of other packages, which may register analyses, too."""
    before = set(_SYSTEMS)
    plugins.load(GROUP, "system", System, register)
    _INSTALLED.update(set(_SYSTEMS) - before)


@cache
def _load() -> None:
    """Load what comes with hdica and with other packages; each record registers itself."""
    names = [name for name in vars(import_module("hdica.systems.built_in")) if name in _SYSTEMS]
    # In the order of that list, whichever of them was asked for first.
    for name in names:
        _SYSTEMS[name] = _SYSTEMS.pop(name)
    _INSTALLED.update(names)
    load_plugins()


@cache
def _load_one(name: str) -> None:
    """Load one system of hdica, whose folder has its name: OnlineICA that of online_ica.

    A study needs one of them, and all take twice as long to import.
    """
    folder = snake(name)
    if folder.isidentifier() and Path(__file__).with_name(folder).joinpath("record.py").is_file():
        import_module(f"{__package__}.{folder}.record")
        _INSTALLED.update({name} & set(_SYSTEMS))


def check_installed(name: str) -> None:
    """Refuse a system that other processes would not know."""
    if name in systems() and name not in _INSTALLED:
        raise HdicaError(
            f"system {name} is registered in this process alone (allowed elsewhere: what comes "
            f"with an installed package, by an entry point of the group {GROUP})"
        )


def systems() -> dict[str, System]:
    """Every system by name, in the order in which they became known."""
    _load()
    return _SYSTEMS


def offered() -> dict[str, Callable[[], Any]]:
    """What ``hdica`` offers of its systems, by name: their classes, and their own functions."""
    found: dict[str, Callable[[], Any]] = {}
    for record in systems().values():
        found[record.name] = partial(getattr, record, "parameters")
        for name, module in record.functions.items():
            found.setdefault(name, partial(_function, module, name))
    return found


def _function(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def lookup(name: object) -> System | None:
    """The record of the system of that name, if there is one."""
    _load_one(str(name))
    return _SYSTEMS.get(str(name)) or systems().get(str(name))


def system_named(name: str) -> System:
    """The record of a system."""
    record = lookup(name)
    if record is None:
        raise HdicaError(f"system = {name!r} is not known ({suggestion(name, list(systems()))})")
    return record


def built(name: str, text: str) -> Any:
    """The parameters of the system ``name`` that JSON says; a process builds them once."""
    return _built(system_named(name).parameters, text)


@lru_cache(maxsize=4096)
def _built(parameters: Any, text: str) -> Any:
    # By its own name: what is refused here, such as data that went, is said in one sentence.
    return parameters(**json.loads(text))


def record_of(parameters: Any) -> System:
    """The record behind the parameters of a problem."""
    name = type(parameters).__name__
    record = lookup(name)
    if record is None or not isinstance(parameters, record.parameters):
        raise HdicaError(f"system: a {name} is not allowed (allowed: {', '.join(systems())})")
    return record


def methods_of(name: str, noise: str = "own") -> dict[str, Method]:
    """The methods of a system, by name.

    With ``noise = "shared"`` those whose points of equal n and seed share their noise, where a
    method can: see :class:`hdica.systems.method.Simulation`.
    """
    methods = {method.name: method for method in system_named(name).methods}
    if noise == "own":
        return methods
    return {key: shared_twin(method) or method for key, method in methods.items()}
