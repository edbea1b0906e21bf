"""A perceptron that learns from a teacher: a rule of no family of hdica's, with its limit.

Samples y are standard normal, the teacher xi labels them by the sign of v = xi.y/sqrt(n). The
student x takes a step where its own label, the sign of u = x.y/sqrt(n), is another:

    x <- x + (tau/sqrt(n)) sign(v) y    if u v < 0.

As n -> infinity Q = xi.x/n and P = |x|^2/n follow, with the cosine c = Q/sqrt(P),

    dQ/dt = tau (1 - c)/sqrt(2 pi),  dP/dt = tau^2 arccos(c)/pi - 2 tau sqrt(P) (1 - c)/sqrt(2 pi).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.integrate import solve_ivp

from hdica import plug_in as hd

VERSION = 1  # raised with any change here that can change a number
Array = NDArray[np.float64]


class Perceptron(hd.Parameters):
    """A student x and a teacher xi with |xi|^2 = n."""

    tau: float = Field(gt=0, description="step size")
    cosine: float = Field(0.1, gt=-1, lt=1, description="cosine of student and teacher at t = 0")
    norm: float = Field(1.0, gt=0, description="|x|/sqrt(n) at t = 0")


def simulate(system: Perceptron, times: Array, n: int, stream, save):
    """All n coordinates; every direction of the teacher gives the same law."""
    rng, teacher = stream("samples"), np.ones(n)
    rest = rng.standard_normal(n)
    rest -= rest.mean()
    rest *= math.sqrt(n * (1 - system.cosine**2)) / np.linalg.norm(rest)
    student = system.norm * (system.cosine * teacher + rest)
    values, done = np.empty((2, times.size)), 0
    for row, end in enumerate(hd.steps_of(times, n)):
        for _ in range(done, end):
            y = rng.standard_normal(n)
            v = y.sum()
            if v * (student @ y) < 0:
                student += system.tau / math.sqrt(n) * math.copysign(1.0, v) * y
        q, p, done = student.mean(), student @ student / n, end
        values[:, row] = q / math.sqrt(p), p
    return {"cosine": values[0], "P": values[1]}, ""


def flow(tau: float, state: Array, factor: float = 1.0) -> list[float]:
    """The rates of Q and P; a factor other than 1 makes what is learned wrong."""
    q, p = state
    c = min(q / math.sqrt(p), 1.0)
    learned = factor * tau * (1 - c) / math.sqrt(2 * math.pi)
    return [learned, tau**2 * math.acos(c) / math.pi - 2 * math.sqrt(p) * learned]


def solve(system: Perceptron, times: Array, n, seed, save) -> hd.PointResult:
    """The limit, its error from a coarser run, and a control with the drift wrong by 2 %."""

    def path(tol: float, factor: float = 1.0) -> Array:
        begin = [system.norm * system.cosine, system.norm**2]
        rates = lambda t, state: flow(system.tau, state, factor)  # noqa: E731
        span = (0.0, float(times[-1]))
        q, p = solve_ivp(rates, span, begin, "DOP853", times, rtol=tol, atol=tol).y
        return np.array([q / np.sqrt(p), p])

    (c, p), coarse, wrong = path(1e-11), path(1e-9), path(1e-11, 1.02)
    return hd.PointResult(
        {"cosine": c, "P": p, "cosine_error": abs(c - coarse[0]), "cosine_control": wrong[0]}
    )


COSINE = hd.Output("cosine", ("time",), "cosine of student and teacher")
P = hd.Output("P", ("time",), "|x|^2/n of the student")
VECTOR = hd.Simulation[Perceptron](
    name="vector",
    role=hd.Role.SIMULATION,
    rank=1,
    about=hd.About(text="all n coordinates", accuracy="exact", engines=("perceptron",)),
    outputs=hd.Outputs((COSINE, P)),
    cost=hd.Cost(seconds=lambda system, n, last: last * n * (5e-6 + 1e-8 * n)),
    run=hd.seeded("vector", simulate),
)
ODE = hd.Limit[Perceptron](
    name="ode",
    role=hd.Role.LIMIT,
    rank=1,
    about=hd.About(text="dQ/dt and dP/dt", accuracy="converged", engines=("perceptron",)),
    outputs=hd.Outputs(
        (
            COSINE,
            P,
            hd.Output("cosine_error", ("time",), "error of the cosine"),
            hd.Output("cosine_control", ("time",), "cosine with the drift wrong by 2 %"),
        )
    ),
    cost=hd.Cost(seconds=lambda system, n, last: 0.02),
    run=solve,
)
SYSTEM = hd.System(
    parameters=Perceptron,
    title="A perceptron with a teacher",
    papers=(hd.Paper("Biehl and Riegler 1994", "On-line learning with a perceptron"),),
    order_parameters=(
        hd.OrderParameter("cosine", COSINE.long_name),
        hd.OrderParameter("P", P.long_name, low=0.0, high=math.inf, nothing=None),
    ),
    methods=(VECTOR, ODE),
    examples=({"tau": 1.0},),
    controls=(hd.Control("tau", step=True),),
)
