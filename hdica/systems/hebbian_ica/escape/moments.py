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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import smooth_parts
from hdica.limits.averages.trap import Trap
from hdica.limits.diffusion.escape import SHOWN, Begin, Range, begin, summit_of
from hdica.limits.diffusion.first_passage import Diffusion
from hdica.limits.numerics.series import Halves

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
_ENDS = np.array([-1.0, -1e-12, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class OneStep:
    """Averages of one step for every overlap in [-reach, reach], as series in R/reach."""

    learning: Function  # <phi s> - R <phi y>, which vanishes as R^3
    power: Halves  # <phi^2>
    # <phi^2 (R (s^2 + e^2 - 2) - 3 R y^2 + 2 s y)>: without the other n - 2 directions.
    rest: Halves
    noise: Halves  # <phi^2 (s - R y)^2>
    reach: float
    errors: tuple[float, float, float, float]  # absolute, of the four

    def diffusion(self, n: int, nu: float, sigma: int, power: float) -> Diffusion:
        """The diffusion of r = sqrt(n) R in the time P nu^2 t/n^3, whose limit is (24)-(25)."""
        root = math.sqrt(n)

        def drift(r: Array) -> Array:
            overlap = r / root
            x = overlap / self.reach
            learning = sigma * n * self.learning(x) / nu
            drag = overlap * self.power(x) + self.rest(x) / n
            return np.asarray(root * (learning - drag / 2) / power)

        def variance(r: Array) -> Array:
            return np.asarray(self.noise(r / root / self.reach) / power)

        return Diffusion(drift, variance)

    def wrong_by(self, signs: tuple[int, int]) -> OneStep:
        """The same with drift and noise off by their errors, with these signs, times SHOWN."""
        learn, power, rest, noise = (SHOWN * e for e in self.errors)
        return replace(
            self,
            learning=_tilted(self.learning, signs[0] * learn),
            power=_shifted(self.power, -signs[0] * power),
            rest=_shifted(self.rest, -signs[0] * rest),
            noise=_shifted(self.noise, signs[1] * noise),
        )


@lru_cache(maxsize=64)
def one_step(phi: Formula, source: Source, reach: float) -> OneStep:
    """The averages of a nonlinearity and a source, by quadrature, for |R| up to ``reach`` < 1."""

    def sample(q: float) -> Callable[[Array, Array, Array], list[Array]]:
        def integrand(s: Array, e: Array, y: Array) -> list[Array]:
            value, rest = phi.value(y), s - q * y
            square = value * value
            size = s * s + e * e - 2
            other = square * (q * size - 3 * q * y * y + 2 * s * y)
            return [rest * value, square, other, square * rest * rest]

        return integrand

    found = smooth_parts(sample, phi, source, (1, 0, 1, 0), reach=reach)
    learning, power, rest, noise = (one.function for one in found)
    # It begins with kappa4 <phi'''(z)> R^3/6, where R = 0 traps on the scale of n^3 steps.
    known = learning.with_zero(3)
    # Taking out the zero takes a parabola with it, which is largest where it ends.
    lost = float(np.abs(known(_ENDS) - learning(_ENDS)).max())
    errors = (found[0].error + 2 * lost, *(one.error for one in found[1:]))
    return OneStep(known, power, rest, noise, reach, errors)  # type: ignore[arg-type]


def finite_range(
    phi: Formula, source: Source, trap: Trap, nu: float, n: int, start: Begin, threshold: float
) -> Range:
    """The escape of |R| to a threshold at finite n, with sigma by (23)."""
    moments = one_step(phi, source, threshold)
    diffusion = moments.diffusion(n, nu, trap.sigma, trap.power)
    high = threshold * math.sqrt(n)
    summit = summit_of(diffusion, high)
    wrong = tuple(
        moments.wrong_by(signs).diffusion(n, nu, trap.sigma, trap.power)
        for signs in ((1, 0), (0, 1))
    )
    return Range(diffusion, high, begin(start, n), summit, trap.power * nu**2, 0.0, wrong)


def _tilted(function: Function, by: float) -> Function:
    """The function plus a number times |R|/reach: how errors fall where a zero is known."""
    return lambda x: np.asarray(function(x) + by * np.abs(x))


def _shifted(function: Halves, by: float) -> Halves:
    """The function plus a constant times its own zero."""
    below, above = function.below.copy(), function.above.copy()
    below[0] -= by
    above[0] += by
    return replace(function, below=below, above=above)
