"""One overlap at finite n as a diffusion: drift and variance from the moments of one step.

For K = M = 1 and W'W = 1 one step of the rule moves R on average by

    b = eta sigma (<phi s> - R <phi y>) - eta^2/2 <phi^2 (R |x|^2 - 3 R y^2 + 2 s y)>

with the variance a = eta^2 <phi^2 (s - R y)^2>, to second order in eta; of |x|^2 the n - 2
directions orthogonal to source and estimate are independent of phi. This goes beyond (24)-(25) of
Rattray (2002), which are its limit for R of order n^-1/2, and matters: with n = 100 an escape may
take fifty times longer than as n tends to infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.expectations import average, power_at
from hdica.limits.first_passage import Diffusion
from hdica.limits.series import adaptive, without_double_zero

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OneStep:
    """Averages of one step for every overlap in [-reach, reach], as series in R/reach.

    Parameters
    ----------
    gain
        (<phi s> - R <phi y>)/R^2, odd.
    power
        <phi^2>.
    rest
        <phi^2 (R (s^2 + e^2 - 2) - 3 R y^2 + 2 s y)>, without the n R <phi^2> of the other
        directions.
    noise
        <phi^2 (s - R y)^2>.
    reach
        Largest |R|.
    error
        Largest relative truncation error of the four.
    """

    gain: Chebyshev
    power: Chebyshev
    rest: Chebyshev
    noise: Chebyshev
    reach: float
    error: float

    def diffusion(self, n: int, nu: float, sigma: int, power: float) -> Diffusion:
        """The diffusion of r = sqrt(n) R in the time P nu^2 t/n^3, whose limit is (24)-(25).

        Parameters
        ----------
        n
            Dimension.
        nu
            n^2 eta.
        sigma
            Sign of the rule.
        power
            P, the mean of phi(z)^2: the unit of time.
        """
        root = math.sqrt(n)

        def drift(r: Array) -> Array:
            overlap = r / root
            x = overlap / self.reach
            learning = sigma * n * x * x * self.gain(x) / nu
            drag = overlap * self.power(x) + self.rest(x) / n
            return np.asarray(root * (learning - drag / 2) / power)

        def variance(r: Array) -> Array:
            return np.asarray(self.noise(r / root / self.reach) / power)

        return Diffusion(drift, variance)


@lru_cache(maxsize=64)
def one_step(phi: Formula, source: Source, reach: float) -> OneStep:
    """The averages of a nonlinearity and a source, by quadrature.

    Parameters
    ----------
    reach
        Largest |R|, in (0, 1).

    Raises
    ------
    HdicaError
        If the reach is out of range, an average is infinite or does not converge.
    """
    if not 0 < reach < 1:
        raise HdicaError(f"threshold: {reach} is not allowed (between 0 and 1)")

    def learning(q: float) -> float:
        return average(lambda s, y: (s - q * y) * phi.value(y), phi, source, q)

    def rest(q: float) -> float:
        width = math.sqrt(1 - q * q)

        def integrand(s: Array, y: Array) -> Array:
            size = s * s + ((y - q * s) / width) ** 2 - 2
            return np.asarray(phi.value(y) ** 2 * (q * size - 3 * q * y * y + 2 * s * y))

        return average(integrand, phi, source, q)

    def noise(q: float) -> float:
        return average(lambda s, y: (phi.value(y) * (s - q * y)) ** 2, phi, source, q)

    functions = (learning, lambda q: power_at(phi, source, q), rest, noise)
    found = [adaptive(lambda x, f=f: f(reach * x)) for f in functions]  # type: ignore[misc]
    error = max(tail for _, tail in found)
    if error > 1e-6:
        raise HdicaError(
            f"the moments of one step with nonlinearity {phi.text!r} and the source {source.label} "
            f"do not converge (relative error {error:.1e}); allowed are smoother nonlinearities"
        )
    gain, power, other, spread = (series for series, _ in found)
    return OneStep(without_double_zero(gain), power, other, spread, reach, error)
