"""How well Hebbian ICA of one projection and one source follows a source that drifts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import xarray as xr

from hdica.errors import HdicaError
from hdica.limits.averages.expectations import averages
from hdica.limits.moving.tracking import best
from hdica.limits.numerics.series import scaled
from hdica.limits.overlap.nonlinear import projected_drift
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, limited
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica.fields import fixed_signs, samples, signs, sources
from hdica.systems.hebbian_ica.motion import make_motion
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.labelled import described


@shown
@limited
def tracking(
    system: Any, *, timeout: float | None = USUAL, progress: bool | None = None
) -> xr.Dataset:
    """The constant step size that holds the largest overlap with a source that drifts.

    For K = M = 1 a steady overlap R > 0 obeys mu A(R) - mu^2 B(R)/m = drift R, with the learning
    A = sigma (<phi s> - R <phi y>) and the loss B = <phi^2> R/2 of (17) and m samples an update.
    The best mu at a given R is m A/(2 B), where the drift that can be borne is largest: the best
    overlap is the largest root of

        m A(R)^2 = 2 drift <phi^2> R^2,  with mu = m A(R)/(<phi^2> R).

    For a slow drift 1 - R^2 is sqrt(2 drift <phi(s)^2>/m)/xi and mu is sqrt(2 drift m/<phi(s)^2>),
    with xi = sigma <s phi(s) - phi'(s)>.

    Parameters
    ----------
    system
        Hebbian ICA with K = M = 1, fixed signs, single samples or batches, and
        ``motion={"drift": rate}`` with a rate > 0; its step size does not matter.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    xarray.Dataset
        ``mu``, the best step size; ``R``, the overlap that it holds; ``drift``, that of the system;
        and ``drift_critical``, from which on every step size loses the source.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the system is another one, or drifts too fast for any step size.

    Examples
    --------
    >>> import hdica
    >>> moving = hdica.HebbianICA(mu=0.1, sources=["rademacher"], sigma=[-1],
    ...                           motion={"drift": 1e-3})
    >>> best = hdica.tracking(moving)
    >>> round(float(best["mu"]), 4), round(float(best["R"]), 4)
    (0.0388, 0.9867)
    """
    rate, means = _drift_of(system), averages(formula(system, "nonlinearity"), sources(system)[0])
    flow = projected_drift(means, lambda: None)
    # That is of a rule which descends along phi, as Sigma = -1 does.
    flow = replace(flow, learning=scaled(flow.learning, -float(signs(system)[0])))
    found = best(flow.of_batch(int(samples(system))), rate)
    if not found.q > 0:
        raise HdicaError(
            f"motion: drift = {rate:g} is not allowed for tracking (no step size holds the source "
            f"from {found.fastest:.3g} on)",
            ["motion"],
        )
    values = {
        "mu": (found.tau, "step size that holds the largest overlap"),
        "R": (found.q, "overlap that it holds"),
        "drift": (rate, "rate of the drift"),
        "drift_critical": (found.fastest, "drift from which on no step size holds the source"),
    }
    data = {k: ((), float(v), {"long_name": about}) for k, (v, about) in values.items()}
    return described(xr.Dataset(data), system)


def _drift_of(system: Any) -> float:
    """The rate of the drift, or the sentence that says what is not allowed."""
    if not isinstance(system, HebbianICA) or (system.projections, len(system.sources)) != (1, 1):
        raise HdicaError(
            "system: tracking needs HebbianICA with one projection and one source (of others no "
            "closed form is known)"
        )
    motion = make_motion(system.motion)
    if motion is None or not motion.drift > 0 or motion.times:
        raise HdicaError(
            f"motion = {system.motion!r} is not allowed for tracking ({{drift: rate > 0}} alone)",
            ["motion"],
        )
    if not fixed_signs(system) or math.isinf(samples(system)):
        raise HdicaError(
            f"sigma = {system.sigma!r} with batch = {system.batch!r} is not allowed for tracking "
            "(signs that stay, and a number of samples)",
            ["sigma", "batch"],
        )
    return motion.drift
