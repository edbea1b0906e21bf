"""The mean field of a rule from averages of its push: b = -tau gain, g = tau^2 power/2, B = tau.

Wang and Lu 2017, (6)-(10), with the sign of G corrected; any other push has its own averages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start
from hdica.limits.averages.expectations import Averages
from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.numerics.packed import packed, scaled

Array = NDArray[np.float64]


def field_of(
    mean: Averages, prior: Prior, start: Start, schedule: Schedule, phi: Formula
) -> MeanField:
    """The limit of x <- x + n^-1/2 F(u, c) y - (tau/n) phi(x), of F by its averages over tau."""
    errors = _errors(mean)
    gain, power = packed(mean.gain), packed(mean.power)

    def value(series: Array, q: float) -> float:
        return _value_at()(series, min(1.0, max(-1.0, float(q))))

    return MeanField(
        prior=prior,
        start=start,
        schedule=schedule,
        phi=phi,
        pull=Scaled(lambda q, tau: -tau * value(gain, q), scaled(mean.gain, -1.0), 1, errors[0]),
        diffusion=Scaled(
            lambda q, tau: tau**2 * value(power, q) / 2, scaled(mean.power, 0.5), 2, errors[1] / 2
        ),
        strength=lambda tau: tau,
    )


@cache
def _value_at() -> Callable[[Array, float], float]:
    """Loaded when a limit is solved: who only asks whether there is one need not wait for it."""
    from hdica.limits.numerics.compiled import value_at

    function: Callable[[Array, float], float] = value_at
    return function


def _errors(mean: Averages) -> tuple[float, float]:
    """Errors of gain and power; 0 where both are known to rounding, in closed form."""
    if isinstance(mean.gain, Chebyshev):
        return 0.0, 0.0
    return mean.gain_error, mean.power_error
