"""Steady states of a rule of K estimates and M features: roots of dR/dt and dP/dt.

Roots are looked for from many starts (Powell's hybrid method), twice as many until that finds no
other one. A state that turns into a root under a change of sign, or under an exchange of features
or of estimates, is listed with it. Where no update sees v_m, <F_k v_m> vanishes with the overlaps
R_km, because c_m is centred and independent of the rest of u: they stay 0, and every choice of
such features is looked at by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gram
from hdica.limits.rules.averages import FIRST, MOST_POINTS, REPLICATES, Averages
from hdica.limits.rules.equations import GOAL, QUANTILE, SAFETY, Equations
from hdica.limits.rules.points import LEVELS

MOST_OVERLAPS = 6
"""K times M at most of a rule whose states are looked for: of one estimate and six equal features
that it does not see there are 3^6 at least."""
STARTS, DOUBLINGS = 30, 6
"""Starts for each overlap at first, and how often they are doubled at most."""
_ROOT, _SAME, _APART, _OUTSIDE = 1e-10, 1e-7, 1e-6, 1e-7
_FAR, _FARTHEST = 1e2, 1e6
"""Squared norms from which a state may be one at infinity, and beyond which none is looked for."""
EVALUATIONS = 40
"""Evaluations from one start for each unknown."""
_EDGE = 1e-7
"""Variance across the features below which it may be 0."""
_BEND, _ONE_SIDED = 1e-5, 2.0
"""Step of a difference, and how much larger it is to one side alone."""
_AT_EDGE = np.array([5.0, -10.0, 10.0, -5.0, 1.0])
"""Weights by which slopes to the squares of 1 ... 5 steps give that at the edge, where rates are
series in the square root of the distance: of estimates that all but agree with a feature the
update switches on a part of the samples of that size."""
_MARGINAL = 1e-8
"""Share of the rates below which an eigenvalue is 0 with rounding."""
_NEWTON = 3


@dataclass(frozen=True)
class States:
    """Steady states: ``r`` (states, K, M) and ``p`` (states, K, K), the largest overlap first.

    ``eigenvalue`` (states,) is the largest real part of those of the Jacobian, ``error`` (states,)
    that of the largest number of a state.
    """

    r: Array
    p: Array
    eigenvalue: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Search:
    """The equations in the numbers of R and P that are free, at one level of the averages."""

    equations: Equations
    tau: float
    """The step size of equations that have one."""
    level: int = FIRST

    @cached_property
    def averages(self) -> Averages:
        """Averages at this level."""
        return Averages(self.equations.sample, self.level)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Which numbers of R and of P, shape (K, M + K), are unknown."""
        estimates, features = self.equations.shape
        of_p = {"none": 0, "norm": -1}.get(self.equations.normalise)
        lower = np.zeros((estimates, estimates), dtype=bool)
        if of_p is not None:
            lower = np.tril(np.ones_like(lower), of_p)
        return np.concatenate([np.ones((estimates, features), dtype=bool), lower], axis=1)

    @cached_property
    def _diagonal(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the squared norms stand in a state."""
        rows = np.arange(self.equations.shape[0])
        return rows, self.equations.shape[1] + rows

    def state(self, z: Array) -> Array:
        """R and P, shape (K, M + K), of their free numbers."""
        estimates, features = self.equations.shape
        state = np.zeros(self.free.shape)
        state[self.free] = z
        r, p = state[:, :features], state[:, features:]
        if estimates > 1:
            p += np.tril(p, -1).T
        if self.equations.normalise == "none":
            p += gram(r)
        else:
            state[self._diagonal] = 1.0
        return state

    def numbers(self, state: Array) -> Array:
        """The free numbers of a state: those of R, and of P or, of free norms, of P - R R'."""
        if self.equations.normalise != "none":
            return np.asarray(state[self.free])
        features = self.equations.shape[1]
        r, p = state[:, :features], state[:, features:]
        return np.concatenate([r, p - gram(r)], axis=1)[self.free]

    def drift(self, z: Array) -> Array:
        """Rates of the free numbers."""
        state, features = self.state(z), self.equations.shape[1]
        with np.errstate(all="ignore"):
            try:
                rate = self.equations.rate(self.averages, state, self.tau)
            except np.linalg.LinAlgError:  # outside of what there is
                return np.full(z.size, np.nan)
            if self.equations.normalise == "none":
                moved = rate[:, :features] @ state[:, :features].T
                rate[:, features:] -= moved + moved.T
        return np.asarray(rate[self.free])

    def scale(self, z: Array) -> float:
        """Size of the terms of which the rates are sums, at a state or, if larger, at R = 0."""
        return max(self._size(z), self._neutral)

    @cached_property
    def _neutral(self) -> float:
        estimates, features = self.equations.shape
        zero = np.zeros((estimates, features))
        return self._size(self.numbers(np.concatenate([zero, np.eye(estimates)], axis=1)))

    def _size(self, z: Array) -> float:
        means = self.equations.means(self.averages, self.state(z), self.tau)
        largest = max(float(np.abs(part).max(initial=0.0)) for part in means)
        return max(largest, float(np.abs(self.equations.shrinkage).max()))

    def within(self, z: Array) -> Array:
        """The nearest numbers of estimates that exist, where P - R R' is positive."""
        if self.equations.normalise != "none" or not np.isfinite(z).all():
            return z
        state, features = self.state(z), self.equations.shape[1]
        r = state[:, :features]
        values, vectors = np.linalg.eigh(state[:, features:] - gram(r))
        if values.min(initial=1.0) > _EDGE:
            return z
        rest = (vectors * np.where(values > _EDGE, values, 0.0)) @ vectors.T
        return np.asarray(np.concatenate([r, rest], axis=1)[self.free])

    def allowed(self, z: Array, least: float = -_OUTSIDE) -> bool:
        """Whether such estimates exist, P - R R' being positive, and are not large."""
        if not np.isfinite(z).all():
            return False
        state, features = self.state(z), self.equations.shape[1]
        r, p = state[:, :features], state[:, features:]
        if p.max() > _FARTHEST:
            return False
        return float(np.linalg.eigvalsh(p - gram(r)).min()) >= least * float(p.max())

    def is_root(self, z: Array) -> bool:
        """Whether a state is steady, but for rounding."""
        if not self.allowed(z):
            return False
        return bool(np.abs(self.drift(z)).max() <= _ROOT * self.scale(z))

    def recedes(self, z: Array) -> bool:
        """Whether rates vanish here as they do at infinity, where an update saturates."""
        largest = float(self.state(z)[:, self.equations.shape[1] :].max())
        return largest > _FAR and self.is_marginal(z)

    def is_marginal(self, z: Array) -> bool:
        """Whether an eigenvalue of the Jacobian is 0, but for rounding."""
        if not z.size:
            return False
        least = float(np.abs(np.linalg.eigvals(self.jacobian(z))).min())
        return least <= _MARGINAL * self.scale(z)

    @cached_property
    def directions(self) -> Array:
        """Directions of derivatives, a row each: of P - R R' such that keep it positive."""
        rows = np.eye(int(self.free.sum()))
        if self.equations.normalise != "none":
            return rows
        features, places = self.equations.shape[1], np.argwhere(self.free).tolist()
        for row, (k, column) in zip(rows, places, strict=True):
            j = column - features
            if 0 <= j < k:
                row[places.index([k, features + k])] = 1.0
                row[places.index([j, features + j])] = 1.0
        return rows

    def jacobian(self, z: Array) -> Array:
        """Derivatives of the rates, by differences that do not leave the estimates that exist."""
        columns = []
        for direction in self.directions:
            step = _BEND * max(1.0, float(np.abs(z * direction).max())) * direction
            size = float(np.abs(step).max())
            sides = [s for s in (1.0, -1.0) if self.allowed(z + 2 * s * step, 0.0)]
            if len(sides) == 1:
                (side,) = sides
                far = [_ONE_SIDED * side * k * k for k in range(1, _AT_EDGE.size + 1)]
                here = self.drift(z)
                slopes = [(self.drift(z + k * step) - here) / k for k in far]
                slope = _AT_EDGE @ np.array(slopes)
            else:
                near, wide = (
                    (self.drift(z + s * step) - self.drift(z - s * step)) / (2 * s)
                    for s in (1.0, 2.0)
                )
                slope = (4 * near - wide) / 3
            columns.append(slope / size)
        return np.asarray(np.linalg.solve(self.directions, np.stack(columns)).T)

    def at(self, level: int) -> Search:
        """The same at another level of refinement, or with another replicate of points."""
        return replace(self, level=level)


def _starts(search: Search, doubling: int, starts: int) -> Iterator[Array]:
    """Random states: near the features, far from them and between."""
    estimates, features = search.equations.shape
    rng = np.random.default_rng((20170101, estimates, features, doubling))
    many = starts * estimates * max(features, 1) * 2 ** max(0, doubling - 1)
    for _ in range(many):
        rows = rng.standard_normal((estimates, features + estimates))
        rows[:, :features] *= 10 ** rng.uniform(-1, 1)
        if search.equations.normalise in ("symmetric", "gram-schmidt"):
            rows = np.linalg.qr(rows.T)[0].T
        rows /= np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
        if search.equations.normalise == "none":
            rows *= 10 ** rng.uniform(-1 - doubling, 1 + doubling, (estimates, 1))
        yield search.numbers(np.concatenate([rows[:, :features], rows @ rows.T], axis=1))


def _corners(search: Search) -> Iterator[Array]:
    """Estimates that are features."""
    estimates, features = search.equations.shape
    if estimates <= features:
        r = np.eye(estimates, features)
        yield search.numbers(np.concatenate([r, np.eye(estimates)], axis=1))


def _images(search: Search, z: Array) -> Iterator[Array]:
    """A state under changes of sign and under exchanges of neighbours."""
    estimates, features = search.equations.shape
    state = search.state(z)
    signs = [(row, column) for row in (1, -1) for column in (1, -1)]
    for k, j in itertools.product((*range(estimates), slice(None)), (*range(features), None)):
        for row, column in signs:
            turned, rows, columns = state.copy(), np.ones(estimates), np.ones(features)
            rows[k] = row
            columns[slice(None) if j is None else j] = column
            turned *= np.concatenate([np.outer(rows, columns), np.outer(rows, rows)], axis=1)
            yield search.numbers(turned)
    for k in range(estimates - 1):
        order = [*range(k), k + 1, k, *range(k + 2, estimates)]
        yield search.numbers(state[order][:, [*range(features), *(features + i for i in order)]])
    for j in range(features - 1):
        order = [*range(j), j + 1, j, *range(j + 2, features + estimates)]
        yield search.numbers(state[:, order])


class _Roots:
    """The roots found so far, each once."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.every: list[Array] = []

    def add(self, z: Array) -> bool:
        """Add a root with its images; whether it was none of the list."""
        if any(self._same(z, other) for other in self.every):
            return False
        _check_list(self.search, z)
        waiting = [z]
        while waiting:
            one = waiting.pop()
            if any(self._same(one, other) for other in self.every):
                continue
            self.every.append(one)
            waiting += [image for image in _images(self.search, one) if self.search.is_root(image)]
        return True

    def _same(self, one: Array, other: Array) -> bool:
        return bool(np.abs(one - other).max() <= 10 * _SAME * max(1.0, float(np.abs(one).max())))

    def look(self, starts: Iterable[Array]) -> bool:
        """Look from some starts; whether that finds another root."""
        from scipy.optimize import root

        search, features, more = self.search, self.search.equations.shape[1], False
        for start in starts:
            size = search.scale(start) or 1.0
            answer = root(
                lambda z: search.drift(z) / size,  # noqa: B023
                start,
                method="hybr",
                tol=1e-14,
                options={"maxfev": EVALUATIONS * (start.size + 1)},
            )
            z = search.within(np.asarray(answer.x))
            if not search.is_root(z) or search.recedes(z):
                continue
            overlaps = np.abs(search.state(z)[:, :features]).max(axis=0)
            if not unseen(search.equations) or overlaps.min(initial=np.inf) >= _APART:
                more = self.add(z) or more
        return more


def _check_list(search: Search, z: Array) -> None:
    """Refuse a state beside which there may be others, however near."""
    if search.is_marginal(z):
        overlaps = np.round(search.state(z)[:, : search.equations.shape[1]], 6) + 0.0
        raise HdicaError(
            "the fixed points are not a list (one is neither stable nor unstable in a direction, "
            f"at overlaps {overlaps.tolist()}: a continuum of them, or a critical step size)",
            ["update"],
        )


def _looked_for(search: Search, starts: int = STARTS, hints: Sequence[Array] = ()) -> list[Array]:
    """All states; of features that no update sees those in which each has an overlap."""
    if not search.free.any():
        return [np.empty(0)]
    roots = _Roots(search)
    roots.look([*hints, *_corners(search), *_starts(search, 0, starts)])
    for doubling in range(1, DOUBLINGS):
        if not roots.look(_starts(search, doubling, starts)):
            return roots.every
    raise HdicaError(
        f"the fixed points are not a list ({len(roots.every)} of them, and twice as many starts "
        "still find others: a continuum, or too many to be looked for)",
        ["update"],
    )


def unseen(equations: Equations) -> bool:
    """Whether no update sees a v_m, so that overlaps that are 0 stay so."""
    update = equations.sample.update
    return update.used.isdisjoint(update.v)


def steady_refusal(equations: Equations) -> str:
    """Empty if the steady states are looked for, else why not."""
    estimates, features = equations.shape
    if equations.sample.update.uses_time:
        return "fixed points do not exist where the update depends on t"
    if equations.step is not None and equations.step.constant is None:
        return "fixed points do not exist for a step size that changes (give a constant one)"
    if estimates * features > MOST_OVERLAPS:
        return (
            f"{estimates} x {features} overlaps are not allowed for fixed points (at most "
            f"{MOST_OVERLAPS}, whose states are looked for one by one)"
        )
    return ""


def search_seconds(equations: Equations) -> float:
    """About what the search takes."""
    estimates, features = equations.shape
    choices = 2**features if unseen(equations) else 1
    return 0.3 * (estimates * features) ** 2 * choices


def _choice(equations: Equations, chosen: tuple[int, ...]) -> Equations:
    """The rule with some of its features."""
    sample, update = equations.sample, equations.sample.update
    part = replace(
        sample,
        update=replace(update, v=tuple(update.v[j] for j in chosen)),
        sources=tuple(sample.sources[j] for j in chosen),
        scales=sample.scales[list(chosen)],
    )
    return replace(equations, sample=part)


def searched(
    equations: Equations, tau: float, starts: int = STARTS, hints: Sequence[Array] = ()
) -> list[Array]:
    """States of all features, shape (K, M + K), at the first level of the averages.

    Beside random starts, so many for each overlap, the search begins at ``hints``, free numbers of
    all features.
    """
    estimates, features = equations.shape
    least = 0 if unseen(equations) else features
    sample = equations.sample
    pairs = zip(sample.sources, sample.scales.tolist(), strict=True)
    laws = [(law.label, scale) for law, scale in pairs]
    by_laws: dict[tuple[tuple[str, float], ...], list[Array]] = {}
    states = []
    for size in range(least, features + 1):
        for chosen in itertools.combinations(range(features), size):
            search = Search(_choice(equations, chosen), tau)
            key = tuple(laws[j] for j in chosen)
            if key not in by_laws:
                near = hints if size == features else ()
                by_laws[key] = [search.state(z) for z in _looked_for(search, starts, near)]
            for part in by_laws[key]:
                whole = np.zeros((estimates, features + estimates))
                whole[:, [*chosen, *range(features, features + estimates)]] = part
                states.append(whole)
    return states


def slowest(search: Search, z: Array) -> float:
    """The largest real part of the eigenvalues of the Jacobian."""
    return float(np.linalg.eigvals(search.jacobian(z)).real.max())


def polished(search: Search, z: Array, slope: Array | None = None) -> tuple[Array, Array]:
    """A root at this level by Newton's method, and the last of its steps.

    ``slope`` is the Jacobian nearby, which is computed if it is not given.
    """
    slope = search.jacobian(z) if slope is None else slope
    for _ in range(_NEWTON):
        # Where a branch meets another the slope has no inverse.
        step = np.asarray(np.linalg.lstsq(slope, search.drift(z))[0])
        z = search.within(z - step)
    return z, step


def refined(search: Search, z: Array) -> tuple[Array, float, Search]:
    """A root with refined averages, its error, and the search at the last level."""
    sample = search.equations.sample
    if sample.is_random:
        each = np.array([polished(search.at(k), z)[0] for k in range(REPLICATES)])
        error = QUANTILE * each.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
        return each.mean(axis=0), float(error.max(initial=0.0)), search
    gap, slope = 0.0, search.jacobian(z)
    z, step = polished(search, z, slope)
    while not sample.is_known:
        search, before = search.at(search.level + 1), z
        z, step = polished(search, z, slope)
        gap = SAFETY * float(np.abs(z - before).max())
        last = search.level == LEVELS - 1 or sample.size(search.level + 1) > MOST_POINTS
        if gap < GOAL or last:
            break
    return z, gap + float(np.abs(step).max()) + 1e-14 * max(1.0, float(np.abs(z).max())), search


def steady_states(equations: Equations) -> States:
    """Every steady state that a search finds, and its stability.

    A step size of the equations is constant.

    Raises
    ------
    HdicaError
        If there is a continuum of states, or the search does not come to an end.
    """
    features, step = equations.shape[1], equations.step
    tau, rows = 0.0 if step is None or step.constant is None else step.constant, []
    first = Search(equations, tau)
    for state in searched(equations, tau):
        z = first.numbers(state)
        _check_list(first, z)
        z, error, search = refined(first, z)
        # The slope at the level before the last is good enough, and much cheaper.
        before = search.at(max(FIRST, search.level - 1))
        rows.append((search.state(z), slowest(before, z), error))
    rows.sort(key=lambda row: _place(row[0][:, :features]))
    # No -0.
    states = np.array([row[0] for row in rows]).reshape(-1, *first.free.shape) + 0.0
    return States(
        states[..., :features],
        states[..., features:],
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
    )


def _place(r: Array) -> tuple[float, ...]:
    """The largest overlap first."""
    return (-round(float(np.abs(r).max(initial=0.0)), 9), *np.round(-r.ravel(), 9).tolist())
