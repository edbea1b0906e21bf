"""Hebbian ICA of a source that drifts: the constant step size that tracks it best.

For K = M = 1 a steady overlap R > 0 obeys mu A(R) - mu^2 B(R)/m = drift R,
with the learning A = sigma (<phi s> - R <phi y>) and the loss B = <phi^2> R/2 of (17) and m samples
an update. The best mu at a given R is m A/(2 B), where the drift that can be borne is largest: the
best overlap is the largest root of

    m A(R)^2 = 2 drift <phi^2> R^2,  with mu = m A(R)/(<phi^2> R).

For a slow drift 1 - R^2 is sqrt(2 drift <phi(s)^2>/m)/xi and mu is sqrt(2 drift m/<phi(s)^2>).
"""

from __future__ import annotations

import math
from dataclasses import replace

from hdica.limits.averages.expectations import averages
from hdica.limits.mean_field.moving import best
from hdica.limits.numerics.series import scaled
from hdica.limits.overlap.nonlinear import projected_drift
from hdica.systems import method
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.escapes import ENGINES, IGNORED, PAPER
from hdica.systems.hebbian_ica.fields import make_motion
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import Output, PointResult
from hdica.systems.projected.best_step import outputs, point_of
from hdica.systems.projected.simulation import OWN

_FASTEST = "largest rate of the drift at which any step size tracks it"
_OUTPUTS = outputs("mu", "R", "source", Output("largest_drift", (), _FASTEST))


def _refusal(system: HebbianICA) -> str:
    if system.shape != (1, 1):
        return (
            f"projections = {system.shape[0]} with {system.shape[1]} sources is not allowed for "
            "the best step size (one of each: of others no closed form is known)"
        )
    motion = make_motion(system.motion)
    if motion is None or not motion.drift > 0 or motion.times:
        return (
            f"motion = {system.motion!r} is not allowed for the best step size ({{drift: rate > 0}}"
            " alone: a source that stays is found the better the smaller the step size)"
        )
    if not hebbian.fixed_signs(system) or math.isinf(hebbian.samples(system)):
        return (
            f"sigma = {system.sigma!r} with batch = {system.batch!r} is not allowed for the best "
            "step size (signs that stay, and a number of samples)"
        )
    return ""


def _best_step(system: HebbianICA) -> PointResult:
    motion = make_motion(system.motion)
    assert motion is not None
    means = averages(formula(system, "nonlinearity"), hebbian.sources(system)[0])
    flow = projected_drift(means, lambda: None)
    # That is of a rule which descends along phi, as Sigma = -1 does.
    flow = replace(flow, learning=scaled(flow.learning, -float(hebbian.signs(system)[0])))
    step = best(flow.of_batch(int(hebbian.samples(system))), motion.drift)
    return point_of(_OUTPUTS, step)


BEST_STEP = method.Limit[HebbianICA](
    name="best_step",
    role=method.Role.OTHER,
    about=method.About(
        text="the best constant step size for a source that drifts, and the fastest tracked",
        accuracy="converged",
        equations=f"{PAPER}, (17) with K = M = 1 and a drift; the largest root over all step sizes",
        engines=(*ENGINES, method.OVERLAP, method.MEAN_FIELD, OWN),
    ),
    outputs=method.Outputs(_OUTPUTS),
    cost=method.Cost(seconds=lambda system, n, last: 0.02),
    scope=method.Scope(refuses=_refusal, ignores=IGNORED | {"mu", "start"}),
    run=lambda system, times, n, seed, save: _best_step(system),
)
