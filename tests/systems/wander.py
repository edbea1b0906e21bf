"""A small system whose dimension is a field: a walk of d numbers, in steps, without any n."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from hdica.finite.random.streams import Stream
from hdica.finite.record import Observation, Track, Values, record
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import make_schedule
from hdica.systems import system as registry
from hdica.systems.method import (
    About,
    Array,
    Cost,
    Limit,
    Output,
    Outputs,
    PointResult,
    Role,
    Scope,
    Simulation,
    Size,
)
from hdica.systems.parameters import Parameters
from hdica.systems.system import Clock, Control, Dimension, OrderParameter, Paper, System
from hdica.systems.trials import seeded


class Wander(Parameters):
    """x <- (1 - eta) x + eta z with z normal, from x = 1: its mean falls like (1 - eta)^k."""

    dimension: int = Field(ge=1, description="d")
    eta: float = Field(gt=0, lt=1, description="step size")
    constants: dict[str, float] = Field({}, description="unused numbers")

    sized_by: ClassVar = {"component": "dimension"}

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Components are numbered."""
        return {"component": tuple(range(self.dimension))}


def wander(system: Wander, times: Array, n: int, stream: Stream, save: Save) -> Values:
    """The mean of x, and on request x; the kernel draws for itself."""
    assert n == 0
    x, rng = np.ones(system.dimension), stream("noise")

    def advance(source: Array, eta: Array) -> np.ndarray:
        assert not source.any()
        for (step,) in eta:
            x[:] = (1 - step) * x + step * rng.standard_normal(x.size)
        return np.array([len(eta)])

    def seen() -> dict[str, Any]:
        return {"m": float(x.mean())} | ({"x": x.copy()} if "x" in save.extra else {})

    track = Track(Observation(seen), None, make_schedule(system.eta, name="eta"))
    return record(advance, [track], times, 1)[0]


def sized(system: Wander, times: Array, n: int, stream: Stream, save: Save) -> Values:
    """A method with n beside it."""
    return {"m": np.exp(-times) + stream("noise").standard_normal(times.size) / n}, ""


def fade(system: Wander, times: Array, n: Any, seed: Any, save: Save) -> PointResult:
    """(1 - eta)^k."""
    m = (1 - system.eta) ** times
    extra = {"square": m**2} if "square" in save.extra else {}
    return PointResult({"m": m, "m_error": 0 * m, **extra})


MEAN = Output("m", ("time",), "mean of x")
ABOUT = About(accuracy="exact", equations="nobody 1900 (1)", version="1")
COST = Cost(seconds=lambda system, n, last: 1e-5 * last + 1e-6)
WANDER = Simulation(
    name="wander", role=Role.SIMULATION, rank=1, about=ABOUT, scope=Scope(n=Size.NONE),
    outputs=Outputs((MEAN,), extras=(Output("x", ("time", "component"), "all of x"),)),
    # So that a small system is too large.
    cost=replace(COST, memory=lambda system, n, last: system.dimension**8),
    run=seeded("wander", wander),
)  # fmt: skip
SIZED = Simulation(
    name="sized", role=Role.SIMULATION, about=replace(ABOUT, accuracy="approximate"),
    outputs=Outputs((MEAN,)), cost=COST, run=seeded("sized", sized),
)  # fmt: skip
FADE = Limit(
    name="fade", role=Role.LIMIT, rank=1, about=ABOUT, cost=COST, run=fade,
    outputs=Outputs(
        (MEAN, Output("m_error", ("time",), "error of m")),
        extras=(Output("square", ("time",), "m^2"),),
    ),
)  # fmt: skip
RECORD = System(
    parameters=Wander,
    title="A random walk",
    papers=(Paper("nobody 1900", "Nothing"),),
    order_parameters=(OrderParameter("m", "mean of x"),),
    methods=(WANDER, SIZED, FADE),
    examples=({"dimension": 4, "eta": 0.2},),
    controls=(Control("eta", step=True),),
    clock=Clock("time t = k", "steps"),
    dimensions=(Dimension("component", "component of x"),),
)


@contextmanager
def known(one: System = RECORD) -> Iterator[None]:
    """The system is registered."""
    registry.register(one)
    try:
        yield
    finally:
        registry.systems().pop(one.name, None)
