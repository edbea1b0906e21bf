"""The trap of order n^2: overlaps near R = 0 where a skewed source is seen by <phi''> != 0.

With r = sqrt(n) R and nu2 = n^(3/2) eta of order one an entry obeys in s = steps/n^2

    dr = (-P nu2^2 r/2 + sigma kappa3 <phi''(z)> nu2 r^2/2) ds + sqrt(P) nu2 dB

with P = <phi(z)^2>: the leading term of (22) of Rattray (2002), of which (23)-(26) are what is
left where kappa3 <phi''(z)> vanishes. It escapes on one side alone, over one barrier, whatever
sigma is: sigma says on which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import power_at
from hdica.limits.averages.trap import Array, cumulants, mean_derivative, safe_exp
from hdica.limits.diffusion.escape import EscapeLaw, Range, escape_law, least_over_depth
from hdica.limits.diffusion.first_passage import Diffusion, PassageTime, Start, first_passage
from hdica.systems.hebbian_ica.escape.copies import Race
from hdica.systems.hebbian_ica.escape.times import Escape

_FLOOR = 8.0
"""Where r is reflected on the side that confines: the chance to be beyond is below 1e-15."""
_VANISHES = 1e-9
"""An average below this, relative to its scale, counts as zero: as where odd ones are told."""
_OPTIMA = 0.1, 0.6
"""Range of h in which the best is sought."""


@dataclass(frozen=True)
class Skew:
    """What a nonlinearity and a skewed source mean to an overlap near zero."""

    power: float  # P = <phi(z)^2>
    mean: float  # <phi(z)>, which couples projections
    product: float  # kappa3 <phi''(z)>, 0 where it vanishes
    power_error: float = 0.0  # relative, as product_error
    product_error: float = 0.0

    def depth(self, nu2: float) -> float:
        """The only parameter h = |kappa3 <phi''>|/(2 P nu2) of dr = (-r/2 + h r^2) du + dB."""
        return abs(self.product) / (2 * self.power * nu2)

    def side(self, sign: float) -> int:
        """The sign of the R that can escape with a sigma; 0 if none can."""
        return int(np.sign(sign * self.product))

    def exponent(self, nu2: float) -> float:
        """P^2 nu2^2/(6 kappa3^2 <phi''>^2), the exponent of Kramers' formula."""
        if not self.product:
            return math.inf
        return (self.power * nu2 / self.product) ** 2 / 6

    def log_kramers(self, nu2: float) -> float:
        """Logarithm of Kramers' escape time 4 pi/(P nu2^2) exp(exponent), in n^2 steps."""
        return math.log(4 * math.pi / (self.power * nu2**2)) + self.exponent(nu2)


@lru_cache(maxsize=64)
def skew_near_zero(phi: Formula, source: Source) -> Skew:
    """P, <phi(z)> and kappa3 <phi''(z)> of a nonlinearity and a source."""
    power, off = power_at(phi, source, 0.0)
    if power == 0.0:
        raise HdicaError(f"nonlinearity: {phi.text!r} is not allowed (it vanishes)")
    scale = math.sqrt(power)
    (mean, _), (second, wrong) = (mean_derivative(phi, source, 0.0, k) for k in (0, 2))
    kappa = float(cumulants(source, 3)[3])
    if abs(second) < _VANISHES * scale or abs(kappa * second) < _VANISHES * scale:
        return Skew(power, mean, 0.0, off / power)
    return Skew(power, mean, kappa * second, off / power, wrong / abs(second))


def scaled_skewed(depth: float) -> Diffusion:
    """The drift -r/2 + h r^2 with unit noise, of x = r + 8 > 0: the other side confines."""

    def drift(x: Array) -> Array:
        r = x - _FLOOR
        return np.asarray(r * (depth * r - 0.5))

    return Diffusion(drift, lambda x: np.ones_like(x))


def _begin(start: str) -> Start:
    from scipy.special import ndtr

    return _FLOOR if start == "zero" else lambda x: np.asarray(ndtr(x - _FLOOR))


def skewed_range(skew: Skew, nu2: float, start: str) -> Range:
    """The escape to infinity of sqrt(n) R on its side; ``start`` is ``"zero"`` or ``"random"``."""
    h = skew.depth(nu2)
    # F(h) changes with h no faster than exp(1/(24 h^2)) does, and a power beside it.
    moved = (1 + 1 / (12 * h * h)) * (skew.power_error + skew.product_error)
    doubt = skew.power_error + moved
    summit, rate = _FLOOR + 1 / (2 * h), skew.power * nu2**2
    return Range(scaled_skewed(h), math.inf, _begin(start), summit, rate, doubt)


@dataclass(frozen=True)
class SkewedOptimum:
    """The learning rate at which an entry escapes fastest."""

    depth: float  # h there: the same for all nonlinearities and sources
    value: float  # the least h^2 F(h), with the mean time F/(P nu2^2)

    def nu2(self, skew: Skew) -> float:
        """nu2* = |kappa3 <phi''>|/(2 P h); NaN where nothing escapes."""
        return abs(skew.product) / (2 * skew.power * self.depth) if skew.product else math.nan

    def time(self, skew: Skew) -> float:
        """The least mean time, 4 P/(kappa3 <phi''>)^2 times the value, in n^2 steps."""
        return 4 * skew.power / skew.product**2 * self.value if skew.product else math.nan


def skewed_time(depth: float, start: str = "zero") -> PassageTime:
    """The time F(h) to infinity of dr = (-r/2 + h r^2) du + dB, for h > 0."""
    scale = _FLOOR + 1 / (2 * depth)
    return first_passage(scaled_skewed(depth), 0.0, math.inf, _begin(start), scale=scale)


@lru_cache(maxsize=4)
def skewed_optimum(start: str = "zero") -> SkewedOptimum:
    """Where h^2 F(h) is least: below nu2* the escape is slower again."""
    (found,) = least_over_depth(lambda h: skewed_time(h, start).log_mean, _OPTIMA, 32)
    return SkewedOptimum(*found)


def check_skewed(sources: Sequence[Source], phi: Formula, projections: int) -> None:
    """Refuse sources of which none escapes in n^2 steps, and entries that are no copies."""
    skews = [skew_near_zero(phi, source) for source in sources]
    if not any(skew.product for skew in skews):
        labels = ", ".join(source.label for source in sources)
        raise HdicaError(
            f"nonlinearity: {phi.text!r} with the sources {labels} is not allowed for escapes in "
            "n^2 steps (kappa3 <phi''(z)> must not be 0: a skewed source and a nonlinearity that "
            "is not odd; else give nu)"
        )
    mean, power = skews[0].mean, skews[0].power
    if projections > 1 and abs(mean) > _VANISHES * math.sqrt(power):
        raise HdicaError(
            f"nonlinearity: {phi.text!r} with <phi(z)> = {mean:.3g} is not allowed for escapes of "
            f"{projections} projections in n^2 steps (it must be 0, as for x**2 - 1: else their "
            "noises are correlated and they are no independent copies)"
        )


def skewed_escape(
    sources: Sequence[Source], phi: Formula, projections: int, nu2: float, start: str
) -> Escape:
    """Escape times, in n^2 steps, of the K x M overlaps as n tends to infinity at fixed nu2.

    ``start`` is ``"zero"`` or ``"random"``. Sources that are one object are computed once.
    """
    kinds = [s for k, s in enumerate(sources) if not any(s is other for other in sources[:k])]
    check_skewed(kinds, phi, projections)
    skews = [skew_near_zero(phi, source) for source in kinds]
    laws: list[EscapeLaw | None] = [
        escape_law(skewed_range(skew, nu2, start)) if skew.product else None for skew in skews
    ]
    which = [next(k for k, kind in enumerate(kinds) if kind is source) for source in sources]
    some = [law for law in laws if law]
    best = skewed_optimum(start)

    def table(values: Sequence[float]) -> Array:
        row = [values[k] if laws[k] else math.inf for k in which]
        return np.tile(np.array(row, dtype=float), (projections, 1))

    race = _race(laws, projections, [which.count(k) for k in range(len(kinds))])
    known = max(law.mean_error for law in some)
    return Escape(
        kramers=table([safe_exp(skew.log_kramers(nu2)) for skew in skews]),
        exponent=table([skew.exponent(nu2) for skew in skews]),
        nu_optimal=table([best.nu2(skew) for skew in skews]),
        mean_optimal=table([best.time(skew) for skew in skews]),
        laws=tuple(tuple(laws[k] for k in which) for _ in range(projections)),
        race=race,
        n=None,
        error=known if projections * len(sources) == 1 else known + max(law.error for law in some),
    )


def _race(laws: Sequence[EscapeLaw | None], projections: int, counts: Sequence[int]) -> Race | None:
    """All projections against each other; None if every mean is too long for a number."""
    finite = [law.mean for law in laws if law and law.mean < math.inf]
    if not finite:
        return None
    hazards = [[law.hazard if law else None for law in laws]]
    return Race((projections,), tuple(counts), hazards, min(finite), max(finite))
