"""The drift of one overlap under a projected gradient rule, from the averages of f and a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.limits.averages.expectations import Averages
from hdica.limits.numerics.halves import Halves, fitted
from hdica.limits.numerics.series import trimmed
from hdica.limits.overlap.drift import Drift, Noise

Array = NDArray[np.float64]
MORE = 32
"""Degree that products with Q and sqrt(1 - Q^2) add on a half."""


def projected_drift(mean: Averages, find_noise: Callable[[], Noise | None], zero: int = 1) -> Drift:
    """dQ/dt = -tau (1 - Q^2) gain - tau^2 Q power/2, with the errors of both orders.

    ``zero`` is the order of the zero that the learning has at Q = 0; 0 where it has none.
    """
    gain, power = mean.gain, mean.power
    if isinstance(gain, Chebyshev) and isinstance(power, Chebyshev):
        q = Chebyshev([0.0, 1.0])
        return Drift(trimmed((q * q - 1) * gain), trimmed(-0.5 * q * power), find_noise)
    assert isinstance(gain, Halves)
    assert isinstance(power, Halves)
    whole = replace(gain, over=0)

    def learned(q: Array) -> Array:
        # Where the gain is divided by sqrt(1 - Q^2) the factor Q^2 - 1 takes that away.
        square = (1 - q) * (1 + q)
        return -whole(q) * (np.sqrt(square) if gain.over else square)

    return Drift(
        fitted(learned, max(gain.above.size, gain.below.size) + MORE, zero=zero),
        fitted(
            lambda q: -0.5 * q * power(q), max(power.above.size, power.below.size) + MORE, zero=1
        ),
        find_noise,
        mean.gain_error,
        mean.power_error / 2,
    )
