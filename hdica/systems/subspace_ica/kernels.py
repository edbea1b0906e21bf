"""Projected gradient steps, compiled; imported when one is first made."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import types

from hdica.finite.fastica.functions import EXP, FORMULA, HE4, KINDS, KURTOSIS, LOGCOSH
from hdica.finite.jit import call_scalar
from hdica.ingredients.contrasts import Contrast

_MATRIX, _FLOATS = types.float64[:, ::1], types.float64[::1]


def slope_of(contrast: Contrast) -> tuple[int, int]:
    """How the kernel computes g = G': a code, and the address of a formula if it is one."""
    code = KINDS.get(contrast.name, FORMULA)
    compiled: Any = contrast.formula.derivative.compiled if code == FORMULA else None
    return code, 0 if compiled is None else compiled.address


@numba.njit(inline="always")
def _slope(s, code, address):  # type: ignore[no-untyped-def]
    """g(s)."""
    if code == EXP:
        return s * math.exp(-0.5 * s * s)
    if code == LOGCOSH:
        return math.tanh(s)
    if code == KURTOSIS:
        return 4.0 * s * s * s
    if code == HE4:
        return 4.0 * s * s * s - 12.0 * s
    return call_scalar(address, s)


@numba.njit(
    types.int64(_FLOATS, _MATRIX, types.int64, types.float64, types.int64, types.int64),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def projected_steps(w, y, batch, rate, code, address):  # type: ignore[no-untyped-def]
    """Steps of w, (d,), on the rows of y, ``batch`` a step; returns how many were finite.

    ``rate`` is the step size with the sign of the direction.
    """
    d = w.size
    push = np.empty(d)
    for step in range(y.shape[0] // batch):
        push[:] = 0.0
        for i in range(step * batch, (step + 1) * batch):
            s = 0.0
            for k in range(d):
                s += w[k] * y[i, k]
            g = _slope(s, code, address)
            for k in range(d):
                push[k] += g * y[i, k]
        along = 0.0
        for k in range(d):
            along += push[k] * w[k]
        square = 0.0
        for k in range(d):
            push[k] = w[k] + rate * (push[k] - along * w[k]) / batch
            square += push[k] * push[k]
        if not 0.0 < square < math.inf:
            return step
        for k in range(d):
            w[k] = push[k] / math.sqrt(square)
    return y.shape[0] // batch
