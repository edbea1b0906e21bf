"""Averages of a push G(u, c) over samples of which c is the component along the feature.

With y = xi c/sqrt(n) + a, a normal and orthogonal to xi, Stein's identity gives
E[G y_i] = n^-1/2 (xi_i (<c G> - Q <G_u>) + x_i <G_u>): the limit needs <c G> - Q <G_u> and <G^2>.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import parse_formula
from hdica.ingredients.pushes import Push
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import Averages, smooth_parts
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.projected_drift import projected_drift

Array = NDArray[np.float64]


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

    smooth = parse_formula("x")
    gain, power = smooth_parts(sample, smooth, source, None)
    return Averages(gain.function, power.function, gain.error, power.error)


def pushed_drift(push: Push, source: Source) -> Drift:
    """Drift of the overlap: dQ/dt = tau (1 - Q^2) (<c G> - Q <G_u>) - tau^2 Q <G^2>/2."""
    return projected_drift(pushed_averages(push, source), lambda: None, zero=0)
