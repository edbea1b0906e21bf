"""Which methods simulate, and with which noise."""

from __future__ import annotations

from collections.abc import Callable

from hdica.errors import HdicaError
from hdica.systems.method import Method, Role
from hdica.systems.system import System

MOST_PLANNED = 100.0
"""How many times longer than the cost model says a simulation may take."""


def able(record: System) -> list[Method]:
    """Methods that can be named: simulations first, then whatever else has seeds."""
    ranked = record.with_role(Role.SIMULATION)
    return ranked + [m for m in record.methods if m.stochastic and m not in ranked]


def auto(plain: bool) -> Callable[[System], list[Method]]:
    """Methods to try; where densities are asked for, those that keep any."""
    return lambda record: [
        m for m in record.with_role(Role.SIMULATION) if m.rank and (plain or m.keeps)
    ]


def with_noise(method: Method, noise: str) -> Method:
    """The method with noise of each trial's own, or shared by trials of equal n and seed."""
    if isinstance(noise, str) and noise == "own":
        return method
    if not isinstance(noise, str) or noise != "shared" or method.shared is None:
        allowed = "'own' or 'shared'" if method.shared else f"'own' for method {method.name!r}"
        raise HdicaError(f"noise = {noise!r} is not allowed ({allowed})")
    return method.shared
