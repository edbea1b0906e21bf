"""Which systems there are: those that come with hdica, those of plug-ins, those registered here."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from hdica.errors import HdicaError, suggestion
from hdica.systems.method import Method, shared_twin
from hdica.systems.parameters import DESCRIBED, Parameters
from hdica.systems.system import S, System

GROUP = "hdica.systems"
"""Entry points of packages that bring systems of their own."""
_SYSTEMS: dict[str, System[Any]] = {}
BUILT_IN: dict[str, str] = import_module("hdica.systems.built_in").BUILT_IN
"""Modules of the records that come with hdica, by name; what it imports is for type checkers."""
_INSTALLED = set(BUILT_IN)
"""Names of those that every process has, because they come with a package."""


def register(system: object) -> System:
    """Add a system by its name, and return it.

    Parameters
    ----------
    system
        Its record.
    """
    if not isinstance(system, System):
        kind = type(system).__name__
        raise HdicaError(f"register: a {kind} is not allowed (a record: hdica.System)")
    other = _SYSTEMS.get(system.name) or _built_in(system.name)
    if other is not None and other.parameters.__module__ != system.parameters.__module__:
        raise HdicaError(
            f"register: the name {system.name} is taken (by {other.parameters.__module__})"
        )
    _SYSTEMS[system.name] = DESCRIBED[system.parameters] = system
    return system


def snake(name: str) -> str:
    """``TwoWords`` as ``two_words``, and ``AnICA`` as ``an_ica``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def load_entry_points(group: str, what: str, kind: type, register: Callable[[Any], object]) -> None:
    """Load the entry points of other packages in a group, and register the records among them.

    A warning names those that fail, and the others are loaded all the same. What is no record, of
    class ``kind``, registers by itself.
    """
    for point in entry_points(group=group):
        try:
            record = point.load()
            if isinstance(record, kind):
                register(record)
        except Exception as exc:  # another's package: say which, and go on without it
            text = f"the {what} {point.name} of {point.value} cannot be loaded ({exc})"
            warnings.warn(text, stacklevel=3)


@cache
def load_plugins() -> None:
    """Load the systems of other packages, which may register analyses, too."""
    before = set(_SYSTEMS)
    load_entry_points(GROUP, "system", System, register)
    _INSTALLED.update(set(_SYSTEMS) - before)


@cache
def _load() -> None:
    """Load the records that come with hdica, in the order of their list, and of other packages."""
    for name in BUILT_IN:
        _SYSTEMS[name] = _SYSTEMS.pop(name) if name in _SYSTEMS else _built_in(name)
    load_plugins()


def _built_in(name: str) -> Any:
    """A record that comes with hdica, None for another name.

    A study needs one of them, and all take twice as long to import.
    """
    if name not in BUILT_IN:
        return None
    record = import_module(BUILT_IN[name]).SYSTEM
    DESCRIBED[record.parameters] = record
    return record


def check_installed(name: str) -> None:
    """Refuse a system that other processes would not have."""
    if name in systems() and name not in _INSTALLED:
        raise HdicaError(
            f"system {name} is registered in this process alone (allowed elsewhere: what comes "
            f"with an installed package, by an entry point of the group {GROUP})"
        )


def systems() -> dict[str, System[Any]]:
    """Every system by name: those of hdica, those of plug-ins, those registered here."""
    _load()
    return _SYSTEMS


def offered() -> dict[str, Callable[[], Any]]:
    """What ``hdica`` offers of its systems, by name: their classes, and their own functions."""
    names: dict[str, Callable[[], Any]] = {}
    for record in systems().values():
        names[record.name] = partial(getattr, record, "parameters")
        for name, module in record.functions.items():
            names.setdefault(name, partial(_function, module, name))
    return names


def _function(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def lookup(name: object) -> System | None:
    """The record of the system of that name, if there is one."""
    key = str(name)
    return _SYSTEMS.get(key) or _built_in(key) or systems().get(key)


def system_named(name: str) -> System:
    """The record of a system."""
    record = lookup(name)
    if record is None:
        raise HdicaError(f"system = {name!r} is not known ({suggestion(name, list(systems()))})")
    return record


def built(name: str, text: str) -> Parameters:
    """The parameters of the system ``name`` that JSON says; a process builds them once."""
    parameters: type[Parameters] = system_named(name).parameters
    return _built(parameters, text)


@lru_cache(maxsize=4096)
def _built(parameters: type[Parameters], text: str) -> Parameters:
    # By its own name: what is refused here, such as data that went, is said in one sentence.
    return parameters(**json.loads(text))


def record_of(parameters: S) -> System[S]:
    """The record behind the parameters of a problem."""
    name = type(parameters).__name__
    record: System[Any] | None = lookup(name)
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
