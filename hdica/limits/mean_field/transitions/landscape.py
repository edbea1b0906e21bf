"""Steady states as the zero contour of a function of the overlap and one parameter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss

from hdica.errors import HdicaError
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.steady.closure import Closure, close
from hdica.limits.mean_field.steady.noiseless import vanishes
from hdica.limits.mean_field.steady.states import has_zero, is_mirrored

Family = Callable[[float], MeanField]
_SMALL = 1e-3
_STEP = 1e-6
_POINTS, _WEIGHTS = leggauss(4)
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2
_PROBES = (0.13, 0.5, 0.87)


@dataclass(frozen=True, eq=False)
class Landscape:
    """S(Q; p), or S/Q where Q = 0 is always steady, over Q and a position u in [0, 1].

    Dividing by Q removes the states Q = 0, so that the informative branch is a smooth curve through
    the point where it meets them. ``field`` is the limit at a parameter value and remembers the
    last ones; u is linear in p from ``low`` to ``high``, or in log p. ``zero`` says whether Q = 0
    is steady at every parameter value, ``mirrored`` whether Q and -Q are equivalent.
    """

    field: Family
    low: float
    high: float
    logarithmic: bool
    zero: bool
    mirrored: bool

    def parameter(self, u: float) -> float:
        """The parameter value at position ``u``."""
        if u <= 0 or u >= 1:
            return self.low if u <= 0 else self.high
        if self.logarithmic:
            return float(self.low * math.exp(u * math.log(self.high / self.low)))
        return self.low + u * (self.high - self.low)

    def stretch(self, u: float) -> float:
        """dp/du."""
        if self.logarithmic:
            return self.parameter(u) * math.log(self.high / self.low)
        return self.high - self.low

    def state(
        self, q: float, u: float, condensed: bool | None = None, slopes: bool = True
    ) -> Closure:
        """The Boltzmann state at one overlap and position."""
        return close(self.field(self.parameter(u)), np.array([q]), condensed, slopes)

    def value(self, q: float, u: float) -> float:
        """The function whose zeros are the branches."""
        if not self.zero:
            return float(self.state(q, u, slopes=False).excess[0])
        if abs(q) >= _SMALL:
            return float(self.state(q, u, slopes=False).excess[0]) / q
        # S/Q is the mean slope between 0 and Q: nothing cancels as Q -> 0.
        slopes = close(self.field(self.parameter(u)), q * _POINTS).slope
        return float(np.sum(slopes * _WEIGHTS))

    def gradient(self, q: float, u: float) -> tuple[float, float, float]:
        """Value and derivatives with respect to q and u."""
        if abs(q) >= _SMALL or not self.zero:
            found = self.state(q, u)
            value, along_q = float(found.excess[0]), float(found.slope[0])
            if self.zero:
                value, along_q = value / q, (along_q - value / q) / q
        else:
            value, step = self.value(q, u), 100 * _STEP
            along_q = (self.value(q + step, u) - self.value(q - step, u)) / (2 * step)
        step = _STEP if u < 0.5 else -_STEP
        return value, along_q, (self.value(q, u + step) - value) / step


def landscape(family: Family, low: float, high: float) -> Landscape:
    """The landscape over a range of the parameter; decades are resolved logarithmically."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise HdicaError(f"low = {low:g} and high = {high:g} are not allowed (low < high, finite)")
    logarithmic = low > 0 and high / low > 5
    remembered = lru_cache(maxsize=512)(family)
    plain = Landscape(remembered, low, high, logarithmic, True, True)
    probes = [remembered(plain.parameter(u)) for u in _PROBES]
    if any(vanishes(field) for field in probes):
        raise HdicaError(
            "the diffusion vanishes at Q = 1 or -1 (the nonlinearity is 0 on all values of the "
            "source), where steady states are no densities and are not followed along a parameter "
            "(hdica.fixed_points lists them at one)"
        )
    zero = all(has_zero(field) for field in probes)
    mirrored = zero and all(is_mirrored(field) for field in probes)
    return Landscape(remembered, low, high, logarithmic, zero, mirrored)
