"""Online tensorial ICA in plain NumPy: all seeds at once, samples in blocks of steps."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NUMBERS = 2**18
"""Of a block, which stays in the second or third cache."""
_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
"""The eight signs of every byte."""


def _samples(source: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if source == "uniform":
        return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
    size = math.prod(shape)
    octets = np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8)
    return np.take(_SIGNS, octets, axis=0).reshape(-1)[:size].reshape(shape)


def tensorial(
    v: Array,
    steps: int,
    *,
    source: Literal["rademacher", "uniform"],
    eta: float,
    rng: np.random.Generator,
) -> Array:
    """Steps of the rule of Li and Jordan for sources with E Z^4 < 3.

    Parameters
    ----------
    v
        Shape (seeds, d): vectors of length one at the start.
    steps
        Number of steps.
    source
        Law of Z.
    eta
        Step size.
    rng
        Generator.

    Returns
    -------
    numpy.ndarray
        The vectors at the end, of the same shape and of length one.
    """
    v, moved = v.copy(), np.empty_like(v)
    most = max(1, _NUMBERS // v.size)
    for first in range(0, steps, most):
        for z in _samples(source, (min(most, steps - first), *v.shape), rng):
            y = np.einsum("sk,sk->s", v, z)
            np.multiply(z, (-eta * y * y * y)[:, None], out=moved)
            v += moved
            v /= np.sqrt(np.einsum("sk,sk->s", v, v))[:, None]
    return v
