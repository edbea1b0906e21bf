"""How long it takes to compile what methods compute with, as far as no cache holds it.

Most functions take a tenth of a second, some twenty: so the times are recorded for each method, in
``compiling.json`` beside the record of its system, by ``python -m benchmarks.compiling --write``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hdica.process.compiled import cold, is_cold

if TYPE_CHECKING:
    from hdica.systems.method import Method
    from hdica.systems.system import System

RECORDED = "compiling.json"
"""Seconds by method, and by the module in which a compilation begins."""
EACH = 0.5
"""Seconds that a function takes, on average, where no times are recorded."""


@cache
def recorded(parameters: type) -> Mapping[str, Mapping[str, float]]:
    """The times that are recorded for a system, of the class of its parameters; empty for none."""
    file = place(parameters)
    found: dict[str, dict[str, float]] = json.loads(file.read_text()) if file.is_file() else {}
    return found


def place(parameters: type) -> Path:
    """Where the times of a system are, or would be."""
    return Path(str(import_module(parameters.__module__).__file__)).parent / RECORDED


def compile_seconds(system: System, methods: Iterable[Method]) -> float:
    """Seconds until the first points of some methods are begun: of what is not compiled yet.

    Of a module that several of them use the longest time counts, because what they share is
    compiled once.
    """
    known = recorded(system.parameters)
    longest: dict[str, float] = {}
    unknown: set[str] = set()
    for method in methods:
        if method.name not in known:
            unknown |= set(method.engines)
        for module, seconds in known.get(method.name, {}).items():
            longest[module] = max(seconds, longest.get(module, 0.0))
    return sum(s for module, s in longest.items() if is_cold(module)) + EACH * cold(unknown)
