"""Paths of a one-dimensional diffusion, and the times at which they first reach a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.diffusion.first_passage import Diffusion

Array = NDArray[np.float64]


def _moved(diffusion: Diffusion, x: Array, step: float, noise: Array) -> Array:
    """One step of Platen's explicit scheme of weak order 2 (Kloeden and Platen 1992, 15.1.1).

    For a constant variance it is Heun's method, of strong order 1.
    """
    b, spread = diffusion.drift(x), np.sqrt(diffusion.variance(x))
    moved, kick = x + b * step, spread * math.sqrt(step)
    plus, minus = (np.sqrt(diffusion.variance(moved + s * kick)) for s in (1.0, -1.0))
    slope = diffusion.drift(moved + spread * noise)
    return np.asarray(
        x
        + (slope + b) * step / 2
        + (plus + minus + 2 * spread) * noise / 4
        + (plus - minus) * (noise**2 - step) / (4 * math.sqrt(step))
    )


def paths(
    diffusion: Diffusion,
    start: Array,
    times: Array,
    step: float | Callable[[Array], float],
    rng: np.random.Generator,
    bound: float = math.inf,
) -> Array:
    """Values of independent paths at given times, of weak order 2 in the step.

    Parameters
    ----------
    diffusion
        Drift and variance, the same for every path.
    start
        Values at time 0, of any shape: entries of a matrix are independent paths.
    times
        Shape (T,), increasing; may begin with 0.
    step
        Longest step, or a function that gives it from the values of the paths below the bound.
    rng
        Where the noise comes from: the same state gives the same paths.
    bound
        Size at which a path stays for good.

    Returns
    -------
    ndarray
        Shape (T, ...); NaN or infinite after an explosion.

    Raises
    ------
    HdicaError
        If the step or the times are out of range.
    """
    if not callable(step) and not 0 < step < math.inf:
        raise HdicaError(f"step: {step} is not allowed (a finite number above 0)")
    if times.size and not (times[0] >= 0 and np.all(np.diff(times) > 0)):
        raise HdicaError("times: they must increase and begin at 0 or later")
    x, now = np.asarray(start, dtype=float), 0.0
    found = np.empty((times.size, *x.shape))
    for k, time in enumerate(times.tolist()):
        while now < time:
            free = np.abs(x) < bound
            if not free.any():
                break
            longest = step(x[free]) if callable(step) else step
            # What is left is cut evenly, so that no step is a scrap.
            h = (time - now) / math.ceil((time - now) / longest)
            noise = math.sqrt(h) * rng.standard_normal(x.shape)
            with np.errstate(all="ignore"):
                moved = _moved(diffusion, x, h, noise)
            x = np.where(free | np.isnan(x), np.clip(moved, -bound, bound), x)
            now = time if h >= time - now else now + h
        found[k], now = x, time
    return found


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

    Raises
    ------
    HdicaError
        If step, threshold or time are out of range.
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
