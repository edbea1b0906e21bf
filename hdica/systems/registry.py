"""Which systems there are, and how each can be computed. A new system is one line here."""

from __future__ import annotations

from typing import Any

from hdica.errors import HdicaError
from hdica.systems import online_ica_methods
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method
from hdica.systems.online_ica import OnlineICA

__all__ = ["KERNEL_VERSION", "METHODS", "SYSTEMS", "methods_of", "system_class"]

SYSTEMS: dict[str, Any] = {"OnlineICA": OnlineICA}
METHODS: dict[str, dict[str, Method]] = {"OnlineICA": online_ica_methods.METHODS}


def system_class(name: str) -> Any:
    """The class of a system.

    Raises
    ------
    HdicaError
        If there is no such system.
    """
    if name not in SYSTEMS:
        raise HdicaError(f"system = {name!r} is not known (allowed: {', '.join(SYSTEMS)})")
    return SYSTEMS[name]


def methods_of(name: str) -> dict[str, Method]:
    """The methods of a system, by name.

    Raises
    ------
    HdicaError
        If there is no such system.
    """
    system_class(name)
    return METHODS[name]
