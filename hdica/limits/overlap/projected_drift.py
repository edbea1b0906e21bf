"""The drift of one overlap under a projected rule, from the averages of its push.

Of a push G(u, c) over samples of which c is the component along the feature, y = xi c/sqrt(n) + a,
a normal and orthogonal to xi, Stein's identity gives
E[G y_i] = n^-1/2 (xi_i (<c G> - Q <G_u>) + x_i <G_u>): the limit needs <c G> - Q <G_u> and <G^2>.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.ingredients.formula import parse_formula
from hdica.ingredients.pushes import Push
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import Averages, smooth_parts
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


@lru_cache(maxsize=64)
def pushed_averages(push: Push, source: Source) -> Averages:
    """The averages of a push for every overlap, each with its error.

    ``gain`` is Q <G_u> - <c G>, in the sign in which a descent along f = -G has it.
    """

    def sample(q: float):  # type: ignore[no-untyped-def]
        def integrand(c: Array, e: Array, u: Array) -> tuple[Array, Array]:
            value = push.value(u, c)
            return q * push.slope(u, c) - c * value, value * value

        return integrand

    gain, power = smooth_parts(sample, parse_formula("x"), source, None)
    return Averages(gain.function, power.function, gain.error, power.error)


def pushed_drift(push: Push, source: Source) -> Drift:
    """Drift of the overlap: dQ/dt = tau (1 - Q^2) (<c G> - Q <G_u>) - tau^2 Q <G^2>/2."""
    return projected_drift(pushed_averages(push, source), lambda: None, zero=0)
