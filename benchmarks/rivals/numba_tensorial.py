"""Online tensorial ICA in Numba with ``np.random.Generator``: one seed after the other."""

from __future__ import annotations

import math
from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@numba.njit(fastmath=True, cache=True)
def _steps(v, steps, signs, eta, rng):  # type: ignore[no-untyped-def]
    d, half = v.size, math.sqrt(3.0)
    z = np.empty(d)
    for _ in range(steps):
        if signs:
            for low in range(0, d, 62):
                word = rng.integers(0, 2**62)
                for k in range(low, min(low + 62, d)):
                    z[k] = 1.0 - 2.0 * ((word >> (k - low)) & 1)
        else:
            for k in range(d):
                z[k] = rng.uniform(-half, half)
        y = 0.0
        for k in range(d):
            y += v[k] * z[k]
        push, square = -eta * y * y * y, 0.0
        for k in range(d):
            v[k] += push * z[k]
            square += v[k] * v[k]
        scale = 1.0 / math.sqrt(square)
        for k in range(d):
            v[k] *= scale


def tensorial(
    v: Array,
    steps: int,
    *,
    source: Literal["rademacher", "uniform"],
    eta: float,
    rng: np.random.Generator,
) -> Array:
    """As :func:`benchmarks.rivals.numpy_tensorial.tensorial`."""
    v = v.copy()
    for seed in range(v.shape[0]):
        _steps(v[seed], steps, source == "rademacher", eta, rng)
    return v
