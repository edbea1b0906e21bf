"""Which methods simulate, and with which noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdica.api.keeping import Asked
from hdica.errors import HdicaError, no_room, suggestion
from hdica.systems.method import Method, Role, shared_twin
from hdica.systems.points import check_steps, refused_n
from hdica.systems.system import System

MOST_PLANNED = 100.0
"""How many times longer than the cost model says a simulation may take."""


def able(record: System) -> list[Method]:
    """Methods that can be named: simulations first, then whatever else has seeds."""
    ranked = record.with_role(Role.SIMULATION)
    return ranked + [m for m in record.methods if m.stochastic and m not in ranked]


def auto(asked: Asked) -> Callable[[System], list[Method]]:
    """Methods to try; where densities are asked for, those that keep any."""
    return lambda record: asked.first(
        [
            m
            for m in record.with_role(Role.SIMULATION)
            if m.rank and (asked.plain or m.outputs.keeps)
        ]
    )


def with_noise(method: Method, noise: str) -> Method:
    """The method with noise of each trial's own, or shared by trials of equal n and seed."""
    if isinstance(noise, str) and noise == "own":
        return method
    shared = shared_twin(method)
    if not isinstance(noise, str) or noise != "shared" or shared is None:
        names = ("own", "shared") if shared else ("own",)
        near = suggestion(noise, names)
        raise HdicaError(f"noise = {noise!r} is not allowed with method {method.name!r} ({near})")
    return shared


def check_n_of(method: Method, n: int | None, last: float) -> None:
    """Refuse a method without the n that it needs, or with one where it has none.

    ``last`` is the time of the last step.
    """
    if method.takes_n and n is None:
        raise HdicaError(f"n is missing (method {method.name!r} needs it: a whole number >= 3)")
    if not method.takes_n and n is not None:
        raise HdicaError(f"n = {n} is not allowed (method {method.name!r} has no n)")
    if n is not None:
        check_steps(n, last)


def check_dimension(method: Method, system: Any, n: int | None) -> None:
    """Refuse an n in which the system has no feature or first estimate."""
    refusal = "" if n is None or method.counts else refused_n(system, n)
    if refusal:
        raise HdicaError(refusal, ["n"])


def check_enough(method: Method, system: Any, last: float) -> None:
    """Refuse times until which given samples are not enough."""
    refusal = method.scope.beyond(system, last) if method.scope.beyond else ""
    if refusal:
        raise HdicaError(refusal, ["times"])


def at_size(n: int | None) -> str:
    """What follows "simulate" in a sentence: the dimension, if there is any."""
    return "" if n is None else f" with n = {n}"


def about_step(n: int | None) -> dict[str, str]:
    """Attributes of the step behind each time."""
    return {"long_name": "step k = floor(t)" if n is None else "step k = floor(t n)"}


def too_large(method: Method, n: int | None) -> HdicaError:
    """That a point could not be held while it was computed."""
    return no_room(f"method {method.name!r}{at_size(n)}")
