"""Which sign lets an entry of R leave 0, and which keeps the optimum stable (Rattray 2002)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import gain_at
from hdica.limits.averages.trap import near_zero

Array = NDArray[np.float64]
_PLACES = 129


def restoring(phi: Formula, source: Source) -> float:
    """<s phi(s) - phi'(s)>: its sign is that of (14), its size xi the rate at the optimum."""
    for kink in phi.kinks:
        eps = 1e-9 * max(1.0, abs(kink))
        below, above = phi.value(np.array([kink - eps, kink + eps]))
        if abs(above - below) > 1e-6 * max(1.0, abs(above)):
            raise HdicaError(
                f"nonlinearity: {phi.text!r} is not allowed for the sign at the optimum "
                f"(it jumps at {kink:g}, allowed are continuous functions)"
            )
    return gain_at(phi, source, 1.0)[0]


@dataclass(frozen=True)
class Conflict:
    """The sign that keeps an optimum stable against the sign that lets an entry reach it."""

    restoring: float  # <s phi(s) - phi'(s)>
    product: float  # kappa4 <phi'''(z)>

    @property
    def stability(self) -> int:
        """Sigma by (14): R = +-1 is stable; right once the source has been found."""
        return int(np.sign(self.restoring))

    @property
    def escape(self) -> int:
        """Sigma by (23): R = 0 can be left; right while the source is being searched."""
        return int(np.sign(self.product))

    @property
    def present(self) -> bool:
        """Whether no sigma does both."""
        return self.stability * self.escape < 0

    @property
    def sentence(self) -> str:
        """What that means."""
        if self.stability * self.escape == 0:
            which = (
                "leave R = 0 on the scale of n^3 steps" if self.stability else "hold the optimum"
            )
            return f"No sigma makes the rule {which}."
        if not self.present:
            return f"sigma = {self.escape:+d} is right for leaving R = 0 and at the optimum."
        return (
            f"sigma = {self.escape:+d} lets R leave 0 but the optimum is then unstable; "
            f"sigma = {self.stability:+d} keeps the optimum but R = 0 is then never left."
        )


def conflict(phi: Formula, source: Source) -> Conflict:
    """Whether (14) and (23) ask for different signs; they never do for x^3."""
    return Conflict(restoring(phi, source), near_zero(phi, source).product)


def conflict_region(
    phi: Formula, family: Callable[[float], Source], low: float, high: float
) -> tuple[tuple[float, float], ...]:
    """Intervals of a family's parameter, increasing, where (14) and (23) ask for different signs.

    Signs are compared at some places from ``low`` to ``high``: two changes of sign between
    neighbours stay unseen. Ends are good to 1e-12 of the range.
    """
    from scipy.optimize import brentq

    grid = np.linspace(low, high, _PLACES).tolist()
    curves = (lambda p: restoring(phi, family(p)), lambda p: near_zero(phi, family(p)).product)
    ends = {low, high}
    for curve in curves:
        values = [curve(p) for p in grid]
        for (a, fa), (b, fb) in pairwise(zip(grid, values, strict=True)):
            if fa == 0.0:
                ends.add(a)
            elif fa * fb < 0:
                ends.add(float(brentq(curve, a, b, xtol=1e-13 * (high - low), rtol=1e-14)))
    found: list[tuple[float, float]] = []
    for a, b in pairwise(sorted(ends)):
        if not conflict(phi, family((a + b) / 2)).present:
            continue
        joined = bool(found) and found[-1][1] == a
        found[-1:] = [(found[-1][0], b)] if joined else [*found[-1:], (a, b)]
    return tuple(found)
