"""Least mean squares on the sphere: a rule that none of the papers has, and its limit.

Samples y are standard normal and their labels xi.y/sqrt(n) + noise e; the estimate follows
x <- x + (tau/sqrt n) (label - x.y/sqrt n) y, then |x|^2 = n. With c = xi.y/sqrt(n) this is
x <- x + n^-1/2 F y with F = tau (c + noise e - u), <c F> = tau (1 - Q), <F_u> = -tau and
<F^2> = tau^2 (2 (1 - Q) + noise^2), so that

    dQ/dt = tau (1 - Q^2) - tau^2 Q (2 (1 - Q) + noise^2)/2.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from pydantic import Field

from hdica.finite.record import steps_of
from hdica.ingredients.schedules import make_schedule
from hdica.limits.overlap.drift import Drift, solve
from hdica.systems.fields import StepSize
from hdica.systems.kernel import COMMON, FINITE, NUMERICS, OVERLAP
from hdica.systems.method import Method, Output, PointResult, Role
from hdica.systems.parameters import Parameters
from hdica.systems.system import Control, OrderParameter, Paper, System
from hdica.systems.trials import seeded


class SphereLMS(Parameters):
    """Least mean squares with a normalised estimate, from noisy labels."""

    tau: StepSize = Field(description="step size tau > 0, or a schedule in t")
    noise: float = Field(0.0, ge=0, description="standard deviation of the labels' noise")
    overlap: float = Field(0.0, gt=-1, lt=1, description="overlap Q at t = 0")
    constants: dict[str, float] = Field({}, description="named numbers used in the formulas")

    aliases: ClassVar = {"Q0": ("overlap",)}
    formulas: ClassVar = {"tau": "t"}


def _steps(system: SphereLMS, times: Any, n: int, stream: Any, save: Any) -> tuple[Any, str]:
    """All n coordinates; the feature is a vector of ones, as good as any other."""
    rng, xi = stream("noise"), np.ones(n)
    rest = rng.standard_normal(n)
    rest -= rest.mean()
    rest *= math.sqrt(n / (rest @ rest))
    x = system.overlap * xi + math.sqrt(1 - system.overlap**2) * rest
    schedule, found, made = make_schedule(system.tau, system.constants), [], 0
    for last in steps_of(times, n):
        for k in range(made, last):
            tau, y = float(schedule.value(np.array(k / n))), rng.standard_normal(n)
            label = (xi @ y) / math.sqrt(n) + system.noise * rng.standard_normal()
            x += tau / math.sqrt(n) * (label - x @ y / math.sqrt(n)) * y
            x *= math.sqrt(n / (x @ x))
        made = int(last)
        found.append(xi @ x / n)
    finite = bool(np.all(np.isfinite(found)))
    return {"Q": np.array(found)}, "" if finite else f"not finite after {made} steps"


def _limit(system: SphereLMS, times: Any, n: Any, seed: Any, save: Any) -> PointResult:
    q = Polynomial([0.0, 1.0])
    parts = (1 - q**2, -q * (2 * (1 - q) + system.noise**2) / 2)
    learning, loss = (part.convert(kind=Chebyshev) for part in parts)
    tau = make_schedule(system.tau, system.constants)
    path = solve(Drift(learning, loss), tau, system.overlap, 0.0, times)
    return PointResult({"Q": path.q, "Q_error": path.error, "Q_control": path.control})


Q = Output("Q", ("time",), "overlap Q = xi.x/n")
SYSTEM = System(
    parameters=SphereLMS,
    title="Least mean squares on the sphere",
    papers=(Paper("this example", "A rule of one's own"),),
    order_parameters=(OrderParameter("Q", "overlap Q = xi.x/n"),),
    controls=(Control("tau", step=True),),
    examples=({"tau": 0.3, "noise": 0.5},),
    methods=(
        Method(
            name="vector",
            role=Role.SIMULATION,
            rank=1,
            stochastic=True,
            accuracy="exact",
            outputs=(Q,),
            run=seeded("vector", _steps),
            seconds=lambda system, n, last: 1e-3 + 1e-5 * last * (n or 1) * (1 + 1e-3 * (n or 1)),
            engines=(*FINITE, __package__),
            equations="the rule at the top of own_system/regression.py",
        ),
        Method(
            name="ode",
            role=Role.LIMIT,
            rank=1,
            accuracy="converged",
            closed=True,
            outputs=(
                Q,
                Output("Q_error", ("time",), "error of Q"),
                Output("Q_control", ("time",), "overlap with the drift wrong by 2 %"),
            ),
            run=_limit,
            seconds=lambda system, n, last: 6e-3,
            engines=(*COMMON, NUMERICS, OVERLAP, __package__),
            equations="dQ/dt at the top of own_system/regression.py",
        ),
    ),
)
