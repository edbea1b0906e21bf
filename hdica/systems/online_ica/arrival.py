"""When the limit of online ICA in t = k/n finds the feature, in the units of escapes."""

from __future__ import annotations

import math

import numpy as np

from hdica.ingredients.save import Save
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.limits.overlap.nonlinear import drift_of
from hdica.systems.fields import averages, prior, source, start
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    NUMERICS,
    OVERLAP,
    About,
    Cost,
    Limit,
    Outputs,
    Role,
    Scope,
    Size,
    refusal,
)
from hdica.systems.online_ica.system import OnlineICA, learned
from hdica.systems.online_ica.trap import LAW, LEAST, MEAN, check, rate
from hdica.systems.outputs import AGES, Array, Output, PointResult, over_age
from hdica.systems.projected.simulation import OWN


def arrival(system: OnlineICA, tau: float) -> tuple[float, float]:
    """Time t at which the ODE reaches the threshold, and its error; infinite if it never does."""
    from scipy.integrate import quad

    begin, end = abs(start(system).overlap(prior(system))), system.threshold
    if begin >= end:
        return 0.0, 0.0
    moved = drift_of(learned(system), source(system))
    states = find_fixed_points(moved, tau)
    between = (states.q > begin - states.error) & (states.q < end + states.error)
    if between.any() or not moved.at(np.array(begin), tau) > 0:
        return math.inf, 0.0
    # In the logarithm of Q, of which the drift near 0 is the rate.
    ends = math.log(begin), math.log(end)

    def slowness(log: float) -> float:
        at = np.array([math.exp(log)])
        return float(at[0] / moved.at(at, tau)[0])

    time, error = quad(slowness, *ends, epsabs=0.0, epsrel=1e-10, limit=500)
    return float(time), float(error)


def _run(
    system: OnlineICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    check(system, n)
    time, error = arrival(system, rate(system, n))
    values = {
        "mean": time / float(n) ** 2,
        "sd": 0.0,
        # A limit is not random: all of it arrives at its one time. Its hazard is finite, so that
        # between ages it can be drawn.
        "survival": np.where(AGES <= 1, 1.0, np.finfo(float).tiny),
        "error": error / time if 0 < time < math.inf else 0.0,
    }
    return PointResult({name: np.asarray(value, dtype=float) for name, value in values.items()})


ESCAPE_ODE = Limit[OnlineICA](
    name="escape_ode",
    role=Role.ESCAPE,
    about=About(
        text="when the limit in t = k/n reaches the threshold from an informative start",
        accuracy="converged",
        equations=(
            "Wang and Lu 2017, dQ/dt below (11): the integral of dQ over it, as n -> infinity"
        ),
        engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, OWN, __package__),
    ),
    outputs=Outputs(
        (*MEAN, LAW, Output("error", (), "relative error of the mean")), coords=over_age
    ),
    cost=Cost(seconds=lambda system, n, last: 0.1, prepares=averages("drift")),
    scope=Scope(refuses=refusal(lambda system: check(system, LEAST)), n=Size.DIMENSION),
    run=_run,
)
