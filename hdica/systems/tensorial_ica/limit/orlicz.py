"""Orlicz norm of psi_2 of a source, and the constant B that the bounds ask for."""

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

Array = NDArray[np.float64]
_FAR, _STILL, _GAUSSIAN = 1e-60, 1e-6, 1.95
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
        if self.power < _GAUSSIAN or excess <= 0:
            return math.inf
        at_end = math.log(self.mass) + (self.end / norm) ** 2
        width = math.sqrt(math.pi / excess) / 2 * float(erfcx(self.end * math.sqrt(excess)))
        return math.exp(at_end) * width if at_end < 700 else math.inf


def _tails(part: Part) -> list[_Tail]:
    """The ends of a part beyond which there is more."""
    edges = part_edges(part)
    low, high = float(edges[0]), float(edges[-1])
    step = (high - low) / 50
    found = [
        _tail(part, np.array([end - 2 * turn, end - turn, end]))
        for end, turn in ((low, -step), (high, step))
    ]
    return [one for one in found if one is not None]


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
