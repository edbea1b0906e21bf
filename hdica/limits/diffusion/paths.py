"""Paths of a one-dimensional diffusion."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.diffusion.first_passage import Diffusion
from hdica.process.progress import check_deadline

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
    """Values of independent paths at given times, of weak order 2 in the step; shape (T, ...).

    ``start`` are values at time 0, of any shape: entries of a matrix are independent paths. Times
    increase and may begin with 0. ``step`` is the longest step, or a function that gives it from
    the values of the paths below ``bound``, the size at which a path stays for good. The same state
    of ``rng`` gives the same paths. Values are NaN or infinite after an explosion.
    """
    if not callable(step) and not 0 < step < math.inf:
        raise HdicaError(f"step: {step} is not allowed (a finite number above 0)")
    if times.size and not (times[0] >= 0 and np.all(np.diff(times) > 0)):
        raise HdicaError("times: they must increase and begin at 0 or later")
    x, now = np.asarray(start, dtype=float), 0.0
    found = np.empty((times.size, *x.shape))
    for k, time in enumerate(times.tolist()):
        while now < time:
            check_deadline()
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
