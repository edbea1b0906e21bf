"""First passages of paths: a reference for their law."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.numerics.densities import _moved
from hdica.limits.numerics.first_passage import Diffusion

Array = NDArray[np.float64]


def passage_times(
    diffusion: Diffusion,
    start: Array,
    threshold: float,
    step: float,
    most: float,
    rng: np.random.Generator,
) -> tuple[Array, NDArray[np.bool_]]:
    """When paths first reach ``threshold`` or ``-threshold``; an error of the order of the step.

    Between two points inside, a path may have been outside: it is stopped with the probability
    of the Brownian bridge between them, without which the error is of the order of the root of
    the step.

    Parameters
    ----------
    diffusion
        Drift and variance.
    start
        Shape (paths,).
    threshold
        |X| at which a path ends.
    step
        Length of a step.
    most
        Time at which the others are given up.
    rng
        Where the noise comes from.

    Returns
    -------
    times, reached
        Shape (paths,); ``times`` of the others is where they were given up.
    """
    if not (0 < step < most < math.inf and threshold > 0):
        raise HdicaError(
            f"step: {step} up to {most} with threshold {threshold} is not allowed "
            "(0 < step < most, threshold above 0)"
        )
    x = np.array(start, dtype=float)
    times, reached = np.full(x.size, 0.0), np.abs(x) >= threshold
    alive = np.nonzero(~reached)[0]
    x = x[alive]
    for k in range(math.ceil(most / step)):
        if not alive.size:
            break
        noise = math.sqrt(step) * rng.standard_normal(x.size)
        with np.errstate(all="ignore"):
            moved = _moved(diffusion, x, step, noise)
            width = diffusion.variance(x) * step
            gaps = ((threshold - s * x) * (threshold - s * moved) for s in (1.0, -1.0))
            inside = math.prod(1 - np.exp(-2 * gap / width) for gap in gaps)
            over = ~(np.abs(moved) < threshold) | (rng.random(x.size) > inside)
        times[alive[over]] = (k + 0.5) * step
        reached[alive[over]] = True
        alive, x = alive[~over], moved[~over]
    times[alive] = most
    return times, reached
