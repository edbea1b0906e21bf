"""Arrays that kernels read in vectors as wide as a cache line."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_LINE = 64


def aligned_zeros(*shape: int) -> NDArray[np.float64]:
    """Zeros that begin with a cache line, so that no vector straddles two."""
    raw = np.zeros(8 * math.prod(shape) + _LINE - 1, dtype=np.uint8)
    first = -raw.__array_interface__["data"][0] % _LINE
    return raw[first : raw.size - _LINE + 1 + first].view(np.float64).reshape(shape)
