"""Escape times of the Hebbian rule from R = 0, for any number of projections and sources.

Rattray (2002), section 4.2, with (27) corrected and made exact: mean first-passage times by
quadrature, as n tends to infinity or for a given n, in units of n^3 steps.

At finite n one overlap is a diffusion with the moments of one step. For K = M = 1 and W'W = 1 a
step of the rule moves R on average by

    b = eta sigma (<phi s> - R <phi y>) - eta^2/2 <phi^2 (R |x|^2 - 3 R y^2 + 2 s y)>

with the variance a = eta^2 <phi^2 (s - R y)^2>, to second order in eta; of |x|^2 the n - 2
directions orthogonal to source and estimate are independent of phi. This goes beyond (24)-(25) of
Rattray (2002), which are its limit for R of order n^-1/2, and matters: with n = 100 an escape may
take fifty times longer than as n tends to infinity.

Near R = 0 the K M entries are independent to leading order: their couplings in <phi y'> and
<phi phi'> are of order R^4. Once an entry has escaped, its projection has a source and that
source has its projection, as W'W = 1 leaves no room for another: the row and the column leave
the race, in a time that is short against n^3 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits import escape as theory
from hdica.limits.averages.expectations import smooth_parts
from hdica.limits.numerics.first_passage import Diffusion
from hdica.limits.numerics.series import Halves
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

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
            return root * (learning - drag / 2) / power

        def variance(r: Array) -> Array:
            return self.noise(r / root / self.reach) / power

        return Diffusion(drift, variance)

    def wrong_by(self, signs: tuple[int, int]) -> OneStep:
        """The same with drift and noise off by their errors, with these signs, times SHOWN."""
        learn, power, rest, noise = (theory.SHOWN * e for e in self.errors)
        return replace(
            self,
            # How errors fall where a zero is known.
            learning=lambda x: self.learning(x) + signs[0] * learn * np.abs(x),
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

    parts = smooth_parts(sample, phi, source, (1, 0, 1, 0), reach=reach)
    learning, power, rest, noise = (one.function for one in parts)
    # It begins with kappa4 <phi'''(z)> R^3/6, where R = 0 traps on the scale of n^3 steps.
    cubic = learning.with_zero(3)
    # Taking out the zero takes a parabola with it, which is largest where it ends.
    lost = np.abs(cubic(_ENDS) - learning(_ENDS)).max()
    errors = (parts[0].error + 2 * lost, *(one.error for one in parts[1:]))
    return OneStep(cubic, power, rest, noise, reach, errors)


def finite_range(
    phi: Formula,
    source: Source,
    trap: theory.Trap,
    nu: float,
    n: int,
    start: theory.Begin,
    threshold: float,
) -> theory.Range:
    """The escape of |R| to a threshold at finite n, with sigma by (23)."""
    moments = one_step(phi, source, threshold)
    diffusion = moments.diffusion(n, nu, trap.sigma, trap.power)
    high = threshold * math.sqrt(n)
    summit = theory.summit_of(diffusion, high)
    wrong = tuple(
        moments.wrong_by(signs).diffusion(n, nu, trap.sigma, trap.power)
        for signs in ((1, 0), (0, 1))
    )
    return theory.Range(
        diffusion, high, theory.begin(start, n), summit, trap.power * nu**2, 0.0, wrong
    )


def _shifted(function: Halves, by: float) -> Halves:
    """The function plus a constant times its own zero."""
    below, above = function.below.copy(), function.above.copy()
    below[0] -= by
    above[0] += by
    return replace(function, below=below, above=above)


Hazard = Callable[[Array], Array]
State = tuple[tuple[int, ...], tuple[int, ...]]
MOST_STATES = 400
_NODES, _SURE = 10, 40.0


@dataclass(frozen=True)
class Race:
    """Rows and columns that compete, those of equal law counted together."""

    rows: tuple[int, ...]  # how many projections of each kind
    columns: tuple[int, ...]  # and how many sources
    # Cumulative, [row kind][column kind]; None: no escape.
    hazards: Sequence[Sequence[Hazard | None]]
    shortest: float  # least and
    longest: float  # largest mean time of an entry that escapes

    @property
    def kinds(self) -> dict[tuple[int, int], Hazard]:
        """Kinds of entries that can escape, and their hazards."""
        every = ((i, j, h) for i, row in enumerate(self.hazards) for j, h in enumerate(row))
        return {(i, j): hazard for i, j, hazard in every if hazard is not None}

    def pairs(self, state: State, kind: tuple[int, int]) -> int:
        """Entries of a kind that still race."""
        return state[0][kind[0]] * state[1][kind[1]]


def _nodes(race: Race) -> tuple[Array, Array]:
    """Times and weights from far before the first escape to far beyond the last."""
    low = math.floor(math.log2(race.shortest)) - 16
    high = math.ceil(math.log2(race.longest)) + 6
    edges = np.concatenate([[0.0], 2.0 ** np.arange(low, high + 1)])
    return panel_nodes(edges, _NODES)


def first_escape(race: Race) -> float:
    """Mean of the least of all escape times: the integral of the product of survivals."""
    times, weights = _nodes(race)
    whole = (race.rows, race.columns)
    total = np.zeros(times.size)
    for kind, hazard in race.kinds.items():
        total += race.pairs(whole, kind) * hazard(times)
    return dot(weights, np.exp(-total))


def _generators(race: Race) -> tuple[Array, NDArray[np.bool_]]:
    """Rates for unit hazards, shape (kinds, states, states), and where nothing races any more.

    States are in the order in which they occur, the whole race first.
    """
    places: dict[State, int] = {(race.rows, race.columns): 0}
    queue, jumps = list(places), []
    while queue:
        check_deadline()
        state = queue.pop(0)
        for k, (i, j) in enumerate(race.kinds):
            if not race.pairs(state, (i, j)):
                continue
            rows, columns = (list(side) for side in state)
            rows[i], columns[j] = rows[i] - 1, columns[j] - 1
            after = tuple(rows), tuple(columns)
            if after not in places:
                places[after] = len(places)
                queue.append(after)
            jumps.append((k, places[state], places[after], race.pairs(state, (i, j))))
        if len(places) > MOST_STATES:
            raise HdicaError(
                f"escape: the last escape of {sum(race.rows)} projections and "
                f"{sum(race.columns)} sources of so many kinds has more than {MOST_STATES} states"
            )
    rates, over = np.zeros((len(race.kinds), len(places), len(places))), np.ones(len(places), bool)
    for k, row, after_row, count in jumps:
        rates[k, row, after_row] += count
        rates[k, row, row] -= count
        over[row] = False
    return rates, over


def last_escape(race: Race) -> float:
    """Mean time from which on no further entry can escape."""
    times, weights = _nodes(race)
    return dot(weights, _alive(race, times))


def last_survival(race: Race, times: Array) -> Array:
    """Probability that some entry can still escape after times, in any order."""
    at = np.ravel(times)
    grid, place = np.unique(np.concatenate([_nodes(race)[0], at]), return_inverse=True)
    return _alive(race, grid)[place[-at.size :]].reshape(np.shape(times)) if at.size else at


def _alive(race: Race, times: Array) -> Array:
    """Probability that some entry can still escape after increasing times.

    The states of the race form a Markov chain whose rates are the hazards; within an interval of
    time they are taken in proportion, exact for equal entries and of order two otherwise.
    """
    from scipy.linalg import expm

    rates, over = _generators(race)
    steps = np.diff([hazard(times) for hazard in race.kinds.values()], axis=1, prepend=0.0)
    share, alive = np.zeros(over.size), np.zeros(times.size)
    share[0] = 1.0
    with one_thread():
        for k in range(times.size):
            check_deadline()
            step = np.sum(rates * np.minimum(steps[:, k], _SURE)[:, None, None], axis=0)
            share = np.sum(share[:, None] * expm(step), axis=0)
            alive[k] = np.sum(share[~over])
    return alive


@dataclass(frozen=True, eq=False)
class Escape:
    """Escape times in n^3 steps; arrays of shape (K, M), infinite where no entry escapes."""

    kramers: Array  # Kramers' formula for the mean, with the corrected exponent
    exponent: Array  # 3 P nu/(4 C)
    nu_optimal: Array  # with the least mean as n -> infinity; NaN for a given place
    mean_optimal: Array
    laws: tuple[tuple[theory.EscapeLaw | None, ...], ...]  # [i][j], None where it does not escape
    race: Race | None  # None if none of the means is a number above 0
    competing: bool  # whether the law of the first escape is that of several entries

    @property
    def escaping(self) -> list[theory.EscapeLaw]:
        """Laws of the entries that escape."""
        return [law for row in self.laws for law in row if law]

    @property
    def error(self) -> float:
        """Largest relative error of the means, and of the survivals where entries compete."""
        of_means = max(law.mean_error for law in self.escaping)
        return of_means + max(law.error for law in self.escaping) if self.competing else of_means

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
        means = [law.mean for law in self.escaping]
        if self.mean.size == 1 or self.race is None or math.inf in means:
            return max(means)
        return last_escape(self.race)

    def survival(self, times: Array) -> Array:
        """Probability that no entry has escaped until times in n^3 steps."""
        hazard = np.zeros(np.shape(times))
        for law in self.escaping:
            hazard += law.hazard(times)
        return np.exp(-hazard)

    def survival_last(self, times: Array) -> Array:
        """Probability that some entry can still escape after times, where :attr:`last` is known.

        Independent copies: whichever entry escapes takes its projection and its source along, and
        the others race on.
        """
        if self.mean.size == 1 or self.race is None:
            return self.survival(times)
        return last_survival(self.race, times)


@dataclass(frozen=True)
class Entry:
    """The escape of an entry of R whose source is of one kind."""

    law: theory.EscapeLaw | None  # None where it does not escape
    sign: int  # the sigma with which it does
    kramers: float
    exponent: float
    nu_optimal: float = math.nan
    mean_optimal: float = math.nan


def escape_of_entries(
    sources: Sequence[Source],
    sigma: Sequence[int],
    entries_of: Callable[[list[Source]], list[Entry]],
    competing: bool | None = None,
) -> Escape:
    """Escape times of the K x M overlaps of K projections with these signs and M sources.

    Sources that are one object are of one kind: ``entries_of`` gives an entry of each kind. Unless
    it is given, entries are ``competing`` where more than one escapes.
    """
    kinds = [s for k, s in enumerate(sources) if not any(s is other for other in sources[:k])]
    entries = entries_of(kinds)
    which = [next(k for k, kind in enumerate(kinds) if kind is source) for source in sources]
    columns = [entries[k] for k in which]
    laws = tuple(tuple(e.law if e.sign == sign else None for e in columns) for sign in sigma)

    escapes = np.array([[law is not None for law in row] for row in laws])

    def table(name: str) -> Array:
        return np.where(escapes, [getattr(entry, name) for entry in columns], math.inf)

    return Escape(
        **{k: table(k) for k in ("kramers", "exponent", "nu_optimal", "mean_optimal")},
        laws=laws,
        race=_race(entries, sigma, [which.count(k) for k in range(len(kinds))]),
        competing=bool(escapes.sum() > 1) if competing is None else competing,
    )


def _race(entries: Sequence[Entry], sigma: Sequence[int], counts: list[int]) -> Race | None:
    """The entries that compete; None if all begin outside or take too long for a number."""
    means = [entry.law.mean for entry in entries if entry.law]
    finite = [mean for mean in means if 0 < mean < math.inf]
    if not finite:
        return None
    signs = sorted(set(sigma))
    hazards = [
        [entry.law.hazard if entry.law and entry.sign == sign else None for entry in entries]
        for sign in signs
    ]
    rows = tuple(list(sigma).count(sign) for sign in signs)
    return Race(rows, tuple(counts), hazards, min(finite), max(finite))


def escape(
    sources: Sequence[Source],
    phi: Formula,
    sigma: Sequence[int],
    nu: float,
    n: int | None = None,
    start: theory.Begin = "zero",
    threshold: float = 0.8,
) -> Escape:
    """Escape times of the K x M overlaps of the Hebbian rule from near zero, for the M sources.

    ``nu`` is n^2 eta; ``n`` is None as it tends to infinity; a ``start`` of a number is R at
    finite n, r as n tends to infinity, where ``threshold``, the |R| of an escape, does not matter.
    """
    least = len(sigma) + len(sources) + 1
    if not 0 < nu < math.inf:
        raise HdicaError(f"nu: {nu} is not allowed (a finite number above 0)")
    if n is not None and n < least:
        raise HdicaError(f"n: {n} is not allowed (at least K + M + 1 = {least})")

    def entry(source: Source, trap: theory.Trap) -> Entry:
        law = None
        if trap.sigma in sigma:
            law = theory.escape_law(
                theory.limit_range(trap, nu, start)
                if n is None
                else finite_range(phi, source, trap, nu, n, start, threshold)
            )
        best = theory.optimum(start) if trap.sigma and start in ("zero", "random") else None
        optima = (best.nu(trap), best.time(trap)) if best else (math.nan, math.nan)
        return Entry(law, trap.sigma, trap.kramers(nu), trap.exponent(nu), *optima)

    def entries(kinds: list[Source]) -> list[Entry]:
        traps = [theory.near_zero(phi, source) for source in kinds]
        if not any(trap.sigma in sigma for trap in traps):
            raise HdicaError(
                f"sigma: {list(sigma)} is not allowed (no entry escapes from R = 0: sigma must be "
                f"the sign of kappa4 <phi'''(z)>, which is {[t.sigma for t in traps]} for the "
                "sources)"
            )
        return [entry(source, trap) for source, trap in zip(kinds, traps, strict=True)]

    return escape_of_entries(sources, sigma, entries)
