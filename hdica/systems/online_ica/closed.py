"""Method ``closed``: the overlap by the solution of (14) in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits.overlap.nonlinear import closed_overlap, closed_refusal
from hdica.systems.fields import formula, prior, resting_refusal, schedule, source, start
from hdica.systems.kernel import AVERAGES, COMMON, NUMERICS, OVERLAP
from hdica.systems.method import Array, Method, Output, PointResult, Role
from hdica.systems.online_ica.system import learned, limit_refusal
from hdica.systems.projected.simulation import OWN

WORST = 1e-8
"""Errors beyond which the closed form is refused: two of its roots all but coincide."""


def refuses(system: Any) -> str:
    """Empty if there is a closed form for this system, else the sentence that says why not."""
    found = (
        limit_refusal(system)
        or closed_refusal(learned(system))
        or resting_refusal(system, "the closed form")
    )
    if found or schedule(system).constant is not None:
        return found
    return f"tau = {system.tau!r} is not allowed for the closed form (a constant step size)"


def _run(system: Any, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
    tau, begin = schedule(system).constant, start(system).overlap(prior(system))
    if tau is None:
        raise HdicaError(refuses(system))
    path = closed_overlap(learned(system), source(system), tau, begin, system.batch)
    with np.errstate(all="ignore"):
        q = path.at(times)
        overlap = math.copysign(1.0, begin) * np.sqrt(q)
        error = path.error(q) / (2 * np.sqrt(np.maximum(q, np.finfo(float).tiny)))
    if not np.all(error < WORST):
        raise HdicaError(
            f"tau = {system.tau!r} is not allowed for the closed form (two steady states all but "
            "coincide there, and their partial fractions cancel; use method 'ode')"
        )
    beta = formula(system, "regularizer").slope_if_linear or 0.0
    return PointResult({"Q": overlap, "R": np.full(times.size, beta), "Q_error": error})


CLOSED = Method(
    name="closed",
    about="Q by the implicit solution of dQ/dt for odd polynomials f and a constant τ",
    engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    role=Role.LIMIT,
    accuracy="exact",
    closed=True,
    outputs=(
        Output("Q", ("time",), "overlap Q = xi.x/n"),
        Output("R", ("time",), "R, the mean of x phi(x)"),
        Output("Q_error", ("time",), "error of Q by rounding"),
    ),
    run=_run,
    refuses=refuses,
    seconds=lambda system, n, last: 0.03,
    equations="Wang and Lu 2017, (14) solved for t by partial fractions and inverted",
)
