"""What drift, noise and bounds need of one source: moments, cumulants and the psi_2 norm.

Of E Z = 0 and E Z^2 = 1 the drift sees mu4 alone, the noise near an independent component mu6, and
the noise elsewhere cumulants up to the eighth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.laws import Part, part_edges
from hdica.ingredients.quadrature import panel_nodes
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
    moments = [source.moment(k) for k in range(HIGHEST + 1)]
    for k in range(order + 1):
        if not math.isfinite(moments[k]):
            need = min(one for one in _NEEDED if one >= k)
            raise HdicaError(
                f"source: {source.label} has no finite moment of order {k}, which {_NEEDED[need]} "
                "of the tensorial rule needs"
            )
    if abs(moments[4] - 3.0) < _GAUSSIAN:
        raise HdicaError(
            f"source: {source.label} with a fourth moment of 3 is not allowed (as of a Gaussian: "
            "the drift |mu4 - 3| of the tensorial rule vanishes)"
        )
    finite = next((k for k, m in enumerate(moments) if not math.isfinite(m)), HIGHEST + 1) - 1
    kappa = np.full(HIGHEST + 1, math.nan)
    kappa[: finite + 1] = cumulants(source, finite)
    table = tuple(float(k) for k in kappa)
    return Moments(
        source.label, moments[3], moments[4], moments[6], moments[8], table, source.symmetric
    )


Array = NDArray[np.float64]
_FAR, _STILL, _NORMAL_POWER = 1e-60, 1e-6, 1.95
_LARGEST = 1e6
_NODES = 24


@dataclass(frozen=True)
class _Tail:
    """Where a part of a law ends: |c| there, the mass per |c| and minus the slope of its log."""

    end: float
    mass: float
    slope: float
    power: float  # p of mass ~ exp(-a |c|^p)

    def beyond(self, norm: float) -> float:
        """Integral of exp(c^2/norm^2) beyond the end, the mass falling like a normal one."""
        from scipy.special import erfcx

        excess = self.slope / (2 * self.end) - norm**-2
        if self.power < _NORMAL_POWER or excess <= 0:
            return math.inf
        at_end = math.log(self.mass) + (self.end / norm) ** 2
        width = math.sqrt(math.pi / excess) / 2 * float(erfcx(self.end * math.sqrt(excess)))
        return math.exp(at_end) * width if at_end < 700 else math.inf


def _tails(part: Part) -> list[_Tail]:
    """The ends of a part beyond which there is more."""
    edges = part_edges(part)
    low, high = float(edges[0]), float(edges[-1])
    step = (high - low) / 50
    ends = [
        _tail(part, np.array([end - 2 * turn, end - turn, end]))
        for end, turn in ((low, -step), (high, step))
    ]
    return [tail for tail in ends if tail is not None]


def _tail(part: Part, t: Array) -> _Tail | None:
    """The tail at the last of three places, None where the law ends there."""
    c, mass = np.abs(part.point(t)), part.mass(t)
    gaps = np.diff(c)
    if mass[-1] > _FAR or mass[-1] == 0.0 or gaps[1] < _STILL * c[-1]:
        return None
    slopes = -np.diff(np.log(mass)) / gaps
    middle = (c[1:] + c[:-1]) / 2
    power = 1 + math.log(slopes[1] / slopes[0]) / math.log(middle[1] / middle[0])
    per_c = float(mass[-1]) * abs(float(t[2] - t[1])) / float(gaps[1])
    return _Tail(float(c[-1]), per_c, float(slopes[1] * c[-1] / middle[1]), power)


def _mean_exponential(source: Source, norm: float) -> float:
    """E exp(Z^2/norm^2), inf where tails are heavier than Gaussian or too close to it."""
    law, total = source.law, 0.0
    if law.endless:  # on whole numbers no law of SciPy falls as fast as a normal one
        return math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        if law.atoms is not None:
            total += float(np.sum(law.atoms.weights * np.exp((law.atoms.points / norm) ** 2)))
        for part in law.parts:
            edges = part_edges(part)
            fine = np.interp(np.arange(8 * edges.size - 7) / 8, np.arange(edges.size), edges)
            t, w = panel_nodes(fine, _NODES)
            total += float(np.sum(np.exp((part.point(t) / norm) ** 2) * part.mass(t) * w))
            if part.width:
                total += 0.0 if norm**2 > 2 * part.width**2 else math.inf
            else:
                total += sum(tail.beyond(norm) for tail in _tails(part))
    return total if math.isfinite(total) else math.inf


@lru_cache(maxsize=64)
def psi2_norm(source: Source) -> float:
    """Orlicz norm of psi_2: the c with E exp(Z^2/c^2) = 2, at least 1/sqrt(ln 2).

    Raises
    ------
    HdicaError
        If the tails are heavier than Gaussian, where no c will do.
    """
    from scipy.optimize import brentq

    def excess(norm: float) -> float:
        return min(_mean_exponential(source, norm), 1e3) - 2

    low = math.log(2) ** -0.5 * (1 - 1e-12)  # by Jensen's inequality, of unit variance
    high = 1.5
    while high < _LARGEST and excess(high) > 0:
        high *= 1.5
    if excess(high) > 0:
        raise HdicaError(
            f"source: {source.label} has no finite psi_2 norm (its tails are heavier than "
            "Gaussian), which the bounds of the paper need; the predictions hold nevertheless"
        )
    return float(brentq(excess, low, high, xtol=1e-14))


def orlicz_bound(source: Source) -> float:
    """The least B with psi_2 norm of Z <= sqrt(3/8) B, of which that of u.X then is at most B."""
    return math.sqrt(8 / 3) * psi2_norm(source)
