"""Moments and cumulants of one source, which is all that drift and noise need of it.

Of E Z = 0 and E Z^2 = 1 the drift sees mu4 alone, the noise near an independent component mu6, and
the noise elsewhere cumulants up to the eighth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.sources import Source
from hdica.limits.averages.trap import cumulants

HIGHEST = 8
"""Order of the highest moment: E y^6 Z^2 of the noise."""
_NEEDED = {
    4: "the drift, of rate |mu4 - 3|",
    6: "the fluctuations E y^6 of a step",
    8: "the noise E y^6 Z^2 within the support of a critical point",
}
_GAUSSIAN = 1e-9


@dataclass(frozen=True)
class Moments:
    """Moments of a standardised source Z; infinite where not asked for and not finite.

    Attributes
    ----------
    label
        Name of the source.
    mu3, mu4, mu6, mu8
        E Z^j.
    cumulants
        kappa_0 (which is 0) to kappa_8, with nan where a moment is infinite.
    symmetric
        Whether -Z has the same law.
    """

    label: str
    mu3: float
    mu4: float
    mu6: float
    mu8: float
    cumulants: tuple[float, ...]
    symmetric: bool

    @property
    def beta(self) -> float:
        """|mu4 - 3|, the rate of the drift per step size."""
        return abs(self.mu4 - 3.0)

    @property
    def sign(self) -> float:
        """sign(mu4 - 3), with which the rule multiplies its step."""
        return math.copysign(1.0, self.mu4 - 3.0)

    @property
    def k4(self) -> float:
        """Fourth cumulant, mu4 - 3."""
        return self.cumulants[4]

    @property
    def k6(self) -> float:
        """Sixth cumulant, mu6 - 15 mu4 + 30 - 10 mu3^2."""
        return self.cumulants[6]

    @property
    def k8(self) -> float:
        """Eighth cumulant."""
        return self.cumulants[8]


def moments_of(source: Source, order: int = HIGHEST) -> Moments:
    """Moments of a source, refused if one up to ``order`` (4, 6 or 8) is not finite.

    Raises
    ------
    HdicaError
        If mu4 = 3, where the drift vanishes, or if a moment is not finite, with what needs it.
    """
    known = [source.moment(k) for k in range(HIGHEST + 1)]
    for k in range(order + 1):
        if not math.isfinite(known[k]):
            need = min(one for one in _NEEDED if one >= k)
            raise HdicaError(
                f"source: {source.label} has no finite moment of order {k}, which {_NEEDED[need]} "
                "of the tensorial rule needs"
            )
    if abs(known[4] - 3.0) < _GAUSSIAN:
        raise HdicaError(
            f"source: {source.label} with a fourth moment of 3 is not allowed (as of a Gaussian: "
            "the drift |mu4 - 3| of the tensorial rule vanishes)"
        )
    finite = next((k for k, m in enumerate(known) if not math.isfinite(m)), HIGHEST + 1) - 1
    kappa = np.full(HIGHEST + 1, math.nan)
    kappa[: finite + 1] = cumulants(source, finite)
    table = tuple(float(k) for k in kappa)
    return Moments(source.label, known[3], known[4], known[6], known[8], table, source.symmetric)
