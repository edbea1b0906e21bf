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
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.save import Save
from hdica.ingredients.sources import Source
from hdica.limits import escape as theory
from hdica.limits.averages.expectations import cumulants, mean_derivative, power_at
from hdica.limits.numerics.first_passage import (
    Diffusion,
    PassageTime,
    Start,
    first_passage,
)
from hdica.systems import method
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica import escapes
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.escape_times import Entry, Escape, escape_of_entries
from hdica.systems.hebbian_ica.passage import ESCAPE_TIMES, PASSAGES, passages_in, seconds_of
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.trials import UNIT, alone

_FLOOR = 8.0
"""Where r is reflected on the side that confines: the chance to be beyond is below 1e-15."""
_VANISHES = 1e-9
"""An average below this, relative to its scale, counts as zero, as in the test for odd ones."""
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
        return r * (depth * r - 0.5)

    return Diffusion(drift, lambda x: np.ones_like(x))


def _begin(start: str) -> Start:
    from scipy.special import ndtr

    return _FLOOR if start == "zero" else lambda x: ndtr(x - _FLOOR)


def skewed_range(skew: Skew, nu2: float, start: str) -> theory.Range:
    """The escape to infinity of sqrt(n) R on its side; ``start`` is ``"zero"`` or ``"random"``."""
    h = skew.depth(nu2)
    # F(h) changes with h no faster than exp(1/(24 h^2)) does, and a power beside it.
    moved = (1 + 1 / (12 * h * h)) * (skew.power_error + skew.product_error)
    doubt = skew.power_error + moved
    summit, rate = _FLOOR + 1 / (2 * h), skew.power * nu2**2
    return theory.Range(scaled_skewed(h), math.inf, _begin(start), summit, rate, doubt)


def skewed_time(depth: float, start: str = "zero") -> PassageTime:
    """The time F(h) to infinity of dr = (-r/2 + h r^2) du + dB, for h > 0."""
    scale = _FLOOR + 1 / (2 * depth)
    return first_passage(scaled_skewed(depth), 0.0, math.inf, _begin(start), scale=scale)


@lru_cache(maxsize=4)
def skewed_optimum(start: str = "zero") -> theory.Optimum:
    """The h, and the h^2 F(h), at which it is least: below nu2* the escape is slower again."""
    (minimum,) = theory.least_over_depth(lambda h: skewed_time(h, start).log_mean, _OPTIMA, 32)
    return theory.Optimum(*minimum)


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
    best = skewed_optimum(start)

    def entry(source: Source) -> Entry:
        skew = skew_near_zero(phi, source)
        if not skew.product:
            return Entry(None, 1, math.inf, math.inf)
        law = theory.escape_law(skewed_range(skew, nu2, start))
        kramers = theory.safe_exp(skew.log_kramers(nu2))
        # At the best nu2* h is that of the optimum, and the mean time F/(P nu2^2).
        least = 4 * skew.power / skew.product**2 * best.value
        return Entry(law, 1, kramers, skew.exponent(nu2), skew.depth(best.depth), least)

    def entries(kinds: list[Source]) -> list[Entry]:
        check_skewed(kinds, phi, projections)
        return [entry(source) for source in kinds]

    # Whatever sigma is, it escapes on one side: as if all signs were those that let it.
    competing = projections * len(sources) > 1
    return escape_of_entries(sources, [1] * projections, entries, competing=competing)


SQUARED = "n^2 steps"
ABOUT = {
    "kramers": "Kramers' formula for that mean",
    "nu_optimal": "nu2 with the least mean as n -> infinity",
    "mean_optimal": "least mean escape time over nu2 as n -> infinity",
    "exponent": "exponent P^2 nu2^2/(6 kappa3^2 <phi''>^2) of Kramers' formula",
}


def _squared(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """The same in units of n^2 steps."""
    return tuple(
        replace(
            output,
            long_name=ABOUT.get(output.name, output.long_name),
            units=SQUARED if output.units == UNIT else output.units,
        )
        for output in outputs
    )


def constant_nu2(system: HebbianICA) -> float:
    """Nu2 = n^(3/2) eta of a constant step size, of a system that it is given for."""
    what, fixed = "the diffusion of skewed sources near R = 0", hebbian.own_rate(system).constant
    why, unit = hebbian.plain_refusal(system, what), hebbian.unit(system)
    if not why and unit != "nu2":
        why = f"{what} needs nu2, and {unit} is given (nu2 = n^(3/2) eta stays finite there)"
    if not why and fixed is None:
        why = f"nu2 = {system.nu2!r} is not allowed for {what} (a constant step size)"
    if not why and system.start not in ("zero", "random"):
        why = (
            f"start = {system.start} is not allowed for escape times as n -> infinity "
            "(R is of order n^-1/2 there: 'zero' or 'random')"
        )
    if why or fixed is None:
        raise HdicaError(why)
    return fixed


def _escape(system: HebbianICA, save: Save) -> PointResult:
    """Escape times of the system from its start, in n^2 steps."""
    nu2, phi = constant_nu2(system), formula(system, "nonlinearity")
    times = skewed_escape(escapes.shared(system), phi, system.projections, nu2, str(system.start))
    skews = [skew_near_zero(phi, source) for source in hebbian.sources(system)]
    side = [[skew.side(sign) for skew in skews] for sign in hebbian.signs(system)]
    return PointResult(escapes.escape_values(times, save) | {"side": np.array(side, dtype=float)})


def _escapes_at_all(system: HebbianICA) -> None:
    """Refuse a system of which no entry escapes, or whose entries are no independent copies.

    With another unit it says why the trap of n^3 steps has none, if it has none.
    """
    why = escapes.ESCAPE.scope.refuses(system) if hebbian.unit(system) != "nu2" else ""
    if why:
        raise HdicaError(why)
    constant_nu2(system)
    check_skewed(escapes.shared(system), formula(system, "nonlinearity"), system.projections)


SKEWED_ESCAPE = method.Limit[HebbianICA](
    name="skewed_escape",
    role=method.Role.ESCAPE,
    rank=2,
    about=method.About(
        text="laws of escapes in n² steps as n → ∞ at fixed ν₂, for skewed sources",
        accuracy="converged",
        equations=(
            f"{escapes.PAPER}, leading term of (22) with the noise of (25), first passages to "
            "infinity"
        ),
        engines=escapes.ON_STREAMS,
    ),
    outputs=method.Outputs(
        (
            *_squared(escapes.ESCAPES),
            Output(
                "side", escapes.PAIR, "sign of the R that an entry escapes to, 0 if it does not"
            ),
        ),
        extras=_squared(escapes.BEST),
        coords=escapes.ESCAPE.outputs.coords,
    ),
    cost=method.Cost(seconds=lambda system, n, last: 0.5),
    scope=method.Scope(
        refuses=method.refusal(_escapes_at_all), ignores=frozenset({"alpha", "threshold"})
    ),
    run=lambda system, times, n, seed, save: _escape(system, save),
)


_PASSAGES = passages_in(2)
SKEWED_ESCAPE_TIMES = replace(
    ESCAPE_TIMES,
    name="skewed_escape_times",
    about=replace(ESCAPE_TIMES.about, text="when chains first find a source, in n² steps"),
    outputs=method.Outputs(_squared(PASSAGES)),
    cost=replace(
        ESCAPE_TIMES.cost, seconds=lambda system, n, last: seconds_of(system, last * (n or 1))
    ),
    run=alone(_PASSAGES),
    together=method.Together(_PASSAGES),
)


METHODS = (SKEWED_ESCAPE_TIMES, SKEWED_ESCAPE)
