"""Escape times of the Hebbian rule from R = 0, for any number of projections and sources.

Rattray (2002), section 4.2, with (27) corrected and made exact: mean first-passage times by
quadrature, as n tends to infinity or for a given n, in units of n^3 steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.trap import Array, Trap, near_zero
from hdica.limits.diffusion.escape import (
    Begin,
    EscapeLaw,
    escape_law,
    limit_range,
    optimum,
)
from hdica.systems.hebbian_ica.escape.copies import (
    Race,
    first_escape,
    last_escape,
    last_survival,
)
from hdica.systems.hebbian_ica.escape.moments import finite_range


@dataclass(frozen=True, eq=False)
class Escape:
    """Escape times in n^3 steps; arrays of shape (K, M), infinite where no entry escapes."""

    kramers: Array  # Kramers' formula for the mean, with the corrected exponent
    exponent: Array  # 3 P nu/(4 C)
    nu_optimal: Array  # with the least mean as n -> infinity; NaN for a given place
    mean_optimal: Array
    laws: tuple[tuple[EscapeLaw | None, ...], ...]  # [i][j], None where it does not escape
    race: Race | None  # None if none of the means is a number above 0
    n: int | None
    error: float  # largest estimated relative error of the means

    @cached_property
    def mean(self) -> Array:
        """Mean of the time at which one entry escapes, if it were alone."""
        return self._each("mean")

    @property
    def sd(self) -> Array:
        """Standard deviation of that time."""
        return self._each("sd")

    @property
    def median(self) -> Array:
        """Median of that time."""
        return self._each("median")

    def _each(self, name: str) -> Array:
        """A property of the law of every entry, infinite where it does not escape."""
        rows = [[getattr(law, name) if law else math.inf for law in row] for row in self.laws]
        return np.array(rows, dtype=float)

    @cached_property
    def first(self) -> float:
        """Mean time of the first escape of any entry."""
        if self.mean.size == 1 or self.race is None:
            return float(self.mean.min())
        return first_escape(self.race)

    @cached_property
    def last(self) -> float:
        """Mean time from which on no further projection can find a source."""
        means = [law.mean for row in self.laws for law in row if law]
        if self.mean.size == 1 or self.race is None or math.inf in means:
            return max(means)
        return last_escape(self.race)

    def survival(self, times: Array) -> Array:
        """Probability that no entry has escaped until times in n^3 steps."""
        at = np.asarray(times, dtype=float)
        hazard = np.zeros(at.shape)
        for law in (law for row in self.laws for law in row if law):
            hazard += law.hazard(at)
        return np.asarray(np.exp(-hazard))

    def survival_last(self, times: Array) -> Array:
        """Probability that some entry can still escape after times, where :attr:`last` is known.

        Independent copies: whichever entry escapes takes its projection and its source along, and
        the others race on.
        """
        if self.mean.size == 1 or self.race is None:
            return self.survival(times)
        return last_survival(self.race, times)


@dataclass(frozen=True)
class _Request:
    """What is asked of every entry."""

    phi: Formula
    nu: float
    n: int | None
    start: Begin
    threshold: float

    def law(self, source: Source, trap: Trap) -> EscapeLaw:
        """The escape of an entry whose sigma lets it escape."""
        if self.n is None:
            return escape_law(limit_range(trap, self.nu, self.start))
        shared = (self.nu, self.n, self.start, self.threshold)
        return escape_law(finite_range(self.phi, source, trap, *shared))


def _check(request: _Request, least: int) -> None:
    if not 0 < request.nu < math.inf:
        raise HdicaError(f"nu: {request.nu} is not allowed (a finite number above 0)")
    if request.n is not None and request.n < least:
        raise HdicaError(f"n: {request.n} is not allowed (at least K + M + 1 = {least})")


def _different(sources: Sequence[Source]) -> list[Source]:
    return [s for k, s in enumerate(sources) if not any(s is other for other in sources[:k])]


def _race(
    laws: Sequence[EscapeLaw | None], traps: Sequence[Trap], sigma: Sequence[int], counts: list[int]
) -> Race | None:
    """The entries that compete; None if all begin outside or take too long for a number."""
    finite = [law.mean for law in laws if law is not None and 0 < law.mean < math.inf]
    if not finite:
        return None
    signs = sorted(set(sigma))
    hazards = [
        [
            law.hazard if law and t.sigma == sign else None
            for law, t in zip(laws, traps, strict=True)
        ]
        for sign in signs
    ]
    rows = tuple(list(sigma).count(sign) for sign in signs)
    return Race(rows, tuple(counts), hazards, min(finite), max(finite))


def _optima(traps: Sequence[Trap], start: Begin) -> tuple[list[float], list[float]]:
    """nu* and its mean time for every source; NaN where they do not exist."""
    nothing = [math.nan] * len(traps)
    if start not in ("zero", "random"):
        return nothing, nothing
    best = optimum(start)
    some = [trap if trap.sigma else None for trap in traps]
    nu = [best.nu(trap) if trap else math.nan for trap in some]
    return nu, [best.time(trap) if trap else math.nan for trap in some]


def escape(
    sources: Sequence[Source],
    phi: Formula,
    sigma: Sequence[int],
    nu: float,
    n: int | None = None,
    start: Begin = "zero",
    threshold: float = 0.8,
) -> Escape:
    """Escape times of the K x M overlaps of the Hebbian rule from near zero, for the M sources.

    ``nu`` is n^2 eta; ``n`` is None as it tends to infinity; a ``start`` of a number is R at
    finite n, r as n tends to infinity, where ``threshold``, the |R| of an escape, does not matter.
    """
    request = _Request(phi, nu, n, start, threshold)
    _check(request, len(sigma) + len(sources) + 1)
    kinds = _different(sources)
    traps = [near_zero(phi, source) for source in kinds]
    if not any(trap.sigma in sigma for trap in traps):
        raise HdicaError(
            f"sigma: {list(sigma)} is not allowed (no entry escapes from R = 0: sigma must be the "
            f"sign of kappa4 <phi'''(z)>, which is {[t.sigma for t in traps]} for the sources)"
        )
    laws = [
        request.law(source, trap) if trap.sigma in sigma else None
        for source, trap in zip(kinds, traps, strict=True)
    ]
    which = [next(k for k, kind in enumerate(kinds) if kind is source) for source in sources]
    race = _race(laws, traps, sigma, [which.count(k) for k in range(len(kinds))])
    table = tuple(
        tuple(laws[k] if traps[k].sigma == sign else None for k in which) for sign in sigma
    )
    return _described(table, [traps[k] for k in which], request, race)


def _error(laws: Sequence[EscapeLaw]) -> float:
    """Largest relative error of the means; that of the survivals where entries compete."""
    known = max(law.mean_error for law in laws)
    return known if len(laws) == 1 else known + max(law.error for law in laws)


def _described(
    table: tuple[tuple[EscapeLaw | None, ...], ...],
    traps: Sequence[Trap],
    request: _Request,
    race: Race | None,
) -> Escape:
    def known(values: list[float]) -> Array:
        rows = [
            [v if law else math.inf for v, law in zip(values, row, strict=True)] for row in table
        ]
        return np.array(rows, dtype=float)

    nu_optimal, mean_optimal = _optima(traps, request.start)
    return Escape(
        kramers=known([trap.kramers(request.nu) for trap in traps]),
        exponent=known([trap.exponent(request.nu) for trap in traps]),
        nu_optimal=known(nu_optimal),
        mean_optimal=known(mean_optimal),
        laws=table,
        race=race,
        n=request.n,
        error=_error([law for row in table for law in row if law]),
    )
