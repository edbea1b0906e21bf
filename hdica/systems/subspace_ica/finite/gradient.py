"""Gradient steps on the sphere, and their flow, on whitened samples: Reduce and Conquer 2025 (B.5).

w <- w + eta s P mean(g(w.y) y) with P = I - w w', then over its length; the sign s is 1 for ascent
of the mean of the contrast G, g = G', and -1 for descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.fastica.one_unit import accumulate
from hdica.finite.record import steps_of
from hdica.ingredients.contrasts import Contrast
from hdica.process.progress import check_deadline
from hdica.systems.subspace_ica.finite.draws import Take

Array = NDArray[np.float64]
_NUMBERS = 2**20
"""Numbers of samples that are taken at once, if a batch is not more."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def cyclic(y: Array) -> Take:
    """Samples in order, beginning again when they are used up: ``take(count)``, (count, d)."""
    first = 0

    def take(count: int) -> Array:
        nonlocal first
        start, first = first, (first + count) % len(y)
        if start + count <= len(y):
            return y[start : start + count]
        return np.take(y, np.arange(start, start + count), axis=0, mode="wrap")

    return take


def descend(
    take: Take, w: Array, contrast: Contrast, rate: float, batch: int, times: Array, unit: float
) -> tuple[Array, str]:
    """W at the output times, shape (T, d); and why it diverged, or nothing.

    Parameters
    ----------
    take
        Samples, ``batch`` of them a step.
    w
        Unit vector at t = 0, shape (d,).
    contrast
        G.
    rate
        Step size eta, with the sign of the direction.
    batch
        B.
    times, unit
        Output times, and the time of one step.
    """
    from hdica.systems.subspace_ica.finite.kernels import projected_steps, slope_of

    code, address = slope_of(contrast)
    w, path, now = w.copy(), np.full((times.size, w.size), np.nan), 0
    at_once = max(1, _NUMBERS // (batch * w.size))
    for place, end in enumerate(steps_of(times / unit, 1).tolist()):
        while now < end:
            check_deadline()
            steps = min(at_once, end - now)
            y = np.ascontiguousarray(take(steps * batch))
            done = projected_steps(w, y, batch, rate, code, address)
            now += done
            if done < steps:
                return path, f"w was no longer finite at step {now} (time {now * unit:g})"
        path[place] = w
    return path, ""


def flow(y: Array, w: Array, contrast: Contrast, sign: int, times: Array) -> Array:
    """w(t) of dw/dt = s P mean(g(w.y) y), shape (T, d), by Runge-Kutta steps of order 8.

    The mean is over the samples y, (n, d). The length of w, which the flow keeps, is restored
    where the errors of the steps (1e-9 of w) change it.

    Raises
    ------
    HdicaError
        If the integration fails.
    """
    from scipy.integrate import solve_ivp

    slope = _mean_push(y, contrast)

    def rate(t: float, at: Array) -> Array:
        check_deadline()
        u = at / math.sqrt(float(np.sum(at * at)))
        push = slope(u)
        return np.asarray(sign * (push - float(np.sum(push * u)) * u))

    found = solve_ivp(
        rate,
        (0.0, max(float(times[-1]), 1e-300)),
        w,
        method="DOP853",
        t_eval=times,
        rtol=RELATIVE,
        atol=ABSOLUTE,
    )
    if not found.success:
        raise HdicaError(f"the gradient flow was not solved ({found.message})")
    path = found.y.T
    return np.asarray(path / np.sqrt(np.sum(path * path, axis=1, keepdims=True)))


def _mean_push(y: Array, contrast: Contrast) -> Callable[[Array], Array]:
    """Mean of g(w.y) y as a function of w."""
    y = np.ascontiguousarray(y)
    return lambda w: np.asarray(accumulate(y, w[None], contrast)[0][0] / len(y))
