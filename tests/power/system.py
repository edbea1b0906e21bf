"""The toy system without sleep, in which points at one step size fail while there is no luck."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.sweep import toy

UNLUCKY = "POWER_UNLUCKY"
"""Set in the environment while points at :data:`TAU` fail."""
TAU = 0.3


def moody(run: Callable[..., Any]) -> Callable[..., Any]:
    def compute(system: toy.Toy, *arguments: Any) -> Any:
        found = run(system, *arguments)
        if system.tau == TAU and UNLUCKY in os.environ:
            raise ZeroDivisionError(f"the step size {TAU} has no luck")
        return found

    return compute


def register() -> None:
    """Make the system known to this process, for good."""
    toy.register()
    toy.time = SimpleNamespace(sleep=lambda seconds: None)
    walk = toy.registry.methods_of("Toy")["walk"]
    toy.put(replace(walk, run=moody(walk.run)))


@contextmanager
def luck(unlucky: bool) -> Iterator[None]:
    """Whether points fail in the body, and in processes that it starts."""
    if unlucky:
        os.environ[UNLUCKY] = "1"
    try:
        yield
    finally:
        os.environ.pop(UNLUCKY, None)
