"""Search for the fixed points of (17) from many starts.

For polynomial phi it is Newton's method. The numbers of starts are fixed, and so is their seed: a
search has the same bits everywhere. Starts are patterns, one source or none a projection; random at
all scales from that of the barriers on; random but kept by a symmetry, where states with few images
are; between the images of two states that are known, where saddles are; and rows of the one with
rows of the other, as projections on different sources hardly know of each other. All are arrays of
shape (count, K, M).

Where phi is no polynomial, averages need quadrature. Polynomials near phi have fixed points near
those of phi, mostly: they are starts, beside patterns and random ones. Each is followed by Powell's
hybrid method with the coarser quadrature, and what is new is polished with the finer one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.quadrature import gaussian_nodes
from hdica.process.progress import check_deadline, tell
from hdica.systems.hebbian_ica.ode import Array, Field, Parts, make_field
from hdica.systems.hebbian_ica.polynomial import (
    Polynomial,
    Symmetries,
    polynomial,
    rates_and_slopes,
    representatives,
    symmetries,
)

SAME = 1e-7
"""Nearer than this, two zeros are one."""
SEED = 20020101
MOST_ZEROS = 4096
_ITERATIONS, _LONGEST, _CONVERGED, _EXACT = 60, 0.5, 1e-11, 1e-15
_IDLE, _HITS = 4, 4
_MOST_SCALED, MOST_PATTERNS = 2000, 4096
SCALES = (0.97, 0.8, 0.6, 0.4, 0.2)
"""Of a pattern: from its own place down to where barriers are."""
_ORDERS = 12
"""A multiple of the orders of signed permutations of up to three things, and of most of four."""


@dataclass(frozen=True)
class Search:
    """What a search ended at."""

    zeros: Array  # one of each orbit of the symmetries, shape (N, K, M)
    hits: Array  # how many starts ended at each orbit, shape (N,)
    starts: int

    @property
    def unseen(self) -> float:
        """Share of further starts expected to end elsewhere (I. J. Good, Biometrika 40, 1953)."""
        return float(np.sum(self.hits == 1)) / max(1.0, float(self.hits.sum()))


def search(poly: Polynomial, group: Symmetries, batch: int, most: int) -> Search:
    """Zeros of all the cube [-1, 1]^(KM), from batches of starts until there is nothing new.

    That is when the last four batches found nothing new and every zero was hit four times, or
    after ``most`` starts in any case.
    """
    rng = np.random.default_rng(SEED)
    zeros, hits, starts, idle = np.zeros((0, *poly.shape)), np.zeros(0), 0, 0
    begin = pattern_starts(rng, group, poly.shape, _MOST_SCALED)
    while starts < most and (idle < _IDLE or np.any(hits < _HITS)):
        tell(f"fixed points: {starts:,} of at most {most:,} starts")
        ends, good = polished(poly, np.moveaxis(begin, 0, 2))
        ends_of_orbits, _ = representatives(group, np.moveaxis(ends[:, :, good], 2, 0))
        more = unknown(ends_of_orbits, zeros)
        idle = 0 if len(more) else idle + 1
        zeros = np.concatenate([zeros, more])
        near = [np.abs(ends_of_orbits - one).max(axis=(1, 2)) < SAME for one in zeros]
        hits = np.append(hits, np.zeros(len(more))) + [np.sum(one) for one in near]
        starts += len(begin)
        if len(zeros) > MOST_ZEROS:
            break
        begin = mixed_starts(rng, group, zeros, poly.mu, batch)
    return Search(zeros, hits, starts)


def polished(poly: Polynomial, r: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Ends of Newton's method from a batch of R, shape (K, M, B), and which of them are zeros."""
    (k, m), n, batch = poly.shape, r.shape[0] * r.shape[1], r.shape[2]
    r, good, running = r.copy(), np.zeros(batch, dtype=bool), np.arange(batch)
    for _ in range(_ITERATIONS):
        check_deadline()
        f, slope = rates_and_slopes(poly, r[:, :, running])
        step = _solved(slope.reshape(n, n, -1), f.reshape(n, -1))
        size = np.sqrt(np.sum(step * step, axis=0))
        step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))
        r[:, :, running] -= step.reshape(k, m, -1)
        # A step after this is of the order of rounding: convergence is quadratic.
        good[running] = size < _CONVERGED
        near = np.all(np.abs(r[:, :, running]) < 2.0, axis=(0, 1))
        running = running[near & ~(size < _EXACT)]
        if not running.size:
            break
    rows, columns = (np.sum(r * r, axis=axis).max(axis=0) for axis in (0, 1))
    good &= np.maximum(rows, columns) < 1.0 + SAME
    return np.where(np.abs(r) < 1e-13, 0.0, r), good


def _solved(slope: Array, f: Array) -> Array:
    """The steps J x = f; of a singular J, a long one."""
    stacked = np.moveaxis(slope, 2, 0)
    size = 1e-15 * np.abs(stacked).max(axis=(1, 2)) + 1e-300
    shifted = stacked + size[:, None, None] * np.eye(slope.shape[0])
    return np.linalg.solve(shifted, f.T[:, :, None])[:, :, 0].T


def unknown(candidates: Array, zeros: Array, apart: float = SAME) -> Array:
    """Those of the candidates that are none of the zeros, each once, in their order."""
    gap = np.full(len(candidates), np.inf)
    for one in zeros:
        gap = np.minimum(gap, np.abs(candidates - one).max(axis=(1, 2)))
    rest, fresh = candidates[gap > apart], np.zeros((0, *candidates.shape[1:]))
    while len(rest):
        fresh = np.concatenate([fresh, rest[:1]])
        rest = rest[np.abs(rest - rest[0]).max(axis=(1, 2)) > apart]
    return fresh


def random_starts(rng: np.random.Generator, shape: tuple[int, int], mu: float, count: int) -> Array:
    """Random R: singular values evenly spread in (0, 1), half of them scaled down to barriers."""
    left, _, right = np.linalg.svd(rng.normal(size=(count, *shape)), full_matrices=False)
    least = min(0.5, 0.5 * np.sqrt(mu))
    values = rng.random((count, left.shape[2]))
    small = rng.random(count) < 0.5
    values[small] *= (least ** rng.random(count))[small, None]
    return np.sum(left[:, :, :, None] * (values[:, :, None] * right)[:, None], axis=2)


def symmetric_starts(rng: np.random.Generator, group: Symmetries, r: Array) -> Array:
    """Means of each R over its images under the powers of a random symmetry, as large as R."""
    starts = np.empty_like(r)
    for b, one in enumerate(r):
        turn = group.random(rng)
        total = image = one
        for _ in range(_ORDERS - 1):
            image = turn(image)
            total = total + image
        starts[b] = total * (np.abs(one).max() / max(1e-9, np.abs(total).max()))
    return starts


def joined_starts(
    rng: np.random.Generator, group: Symmetries, zeros: Array, count: int, spliced: bool
) -> Array:
    """Points between a zero and a random image of one; if ``spliced``, rows of both."""
    starts = np.empty((count, *zeros.shape[1:]))
    for b in range(count):
        one, other = zeros[rng.integers(len(zeros), size=2)]
        if spliced:
            mine = rng.random(len(one)) < 0.5
            starts[b] = np.where(mine[:, None], one, group.random(rng)(other))
        else:
            starts[b] = one + rng.random() * (group.random(rng)(other) - one)
    return starts


def mixed_starts(
    rng: np.random.Generator, group: Symmetries, zeros: Array, mu: float, count: int
) -> Array:
    """All kinds but patterns, four in eight spliced; random ones while no two zeros are known."""
    part = count // 8
    begin = random_starts(rng, zeros.shape[1:], mu, count)
    begin[:part] = symmetric_starts(rng, group, begin[:part])
    if len(zeros) > 1:
        begin[part : 3 * part] = joined_starts(rng, group, zeros, 2 * part, False)
        begin[3 * part : 7 * part] = joined_starts(rng, group, zeros, 4 * part, True)
    return begin


def pattern_starts(
    rng: np.random.Generator, group: Symmetries, shape: tuple[int, int], most: int
) -> Array:
    """Patterns from their own places down to where barriers are, no two of them images."""
    every, _ = representatives(group, patterns(shape, not group.odd))
    _, first = np.unique(np.round(every, 6).reshape(len(every), -1), axis=0, return_index=True)
    scaled = np.concatenate([scale * every[np.sort(first)] for scale in SCALES])
    if len(scaled) <= most:
        return scaled
    return scaled[np.sort(rng.choice(len(scaled), most, replace=False))]


def patterns(shape: tuple[int, int], signed: bool) -> Array:
    """R with one source or none a projection, those on the same source sharing it evenly.

    Rattray 2002, section 4.3: projections that begin alike may stay so until noise parts them. Of
    more than 4096 ways those with a source for all or none remain; ``signed`` where phi is not odd.
    """
    k, m = shape
    choices = [None] + [(j, s) for j in range(m) for s in ((1.0, -1.0) if signed else (1.0,))]
    if len(choices) ** k <= MOST_PATTERNS:
        every = list(itertools.product(choices, repeat=k))
    else:
        every = [tuple((i, s) if i < m else None for i in range(k)) for s in (1.0, -1.0)]
        every.append((None,) * k)
    tables = np.zeros((len(every), k, m))
    for r, chosen in zip(tables, every, strict=True):
        for i, one in enumerate(chosen):
            if one is not None:
                r[i, one[0]] = one[1]
        r /= np.sqrt(np.maximum(np.sum(np.abs(r), axis=0), 1.0))
    return tables


_DEGREES = (3, 5, 7, 9)
_MOST_NEAR, _FEW_PATTERNS, _RANDOM, _ROUNDS = 300, 40, 20, 2
_APART = 0.02
"""Starts nearer to each other than this lead to the same place."""
_SCAN = 200
_ROUGH, _NEAR, _SOLVED = 1e-5, 1e-4, 1e-10
_MOST_STEPS = 40


def search_by_quadrature(field: Field, group: Symmetries, mu: float) -> Search:
    """Zeros of a field whose phi is no polynomial."""
    rng, shape = np.random.default_rng(SEED), field.shape
    # Polished zeros so far, and those of the coarser quadrature, (N, K, M) both.
    zeros, rough = np.zeros((2, 0, *shape))
    hits, starts = list[float](), 0
    patterns = pattern_starts(rng, group, shape, _FEW_PATTERNS)
    for first in (_near(field, group, mu), patterns, _scan(field, mu), *[None] * _ROUNDS):
        begin = mixed_starts(rng, group, zeros, mu, _RANDOM) if first is None else first
        starts += len(begin)
        for start in begin:
            near = _flowed(field.rough, mu, start, _ROUGH, 1e-6)
            if near is None:
                continue
            one, _ = representatives(group, near[None])
            gap = np.abs(rough - one).max(axis=(1, 2), initial=0.0)
            if len(gap) and gap.min() < _NEAR:
                hits[np.argmin(gap)] += 1.0
                continue
            r = _flowed(field.parts, mu, one[0], _SOLVED, 1e-14)
            if r is None:
                continue
            new, _ = representatives(group, r[None])
            if len(unknown(new, zeros)):
                zeros, rough = np.concatenate([zeros, new]), np.concatenate([rough, one])
                hits.append(1.0)
    return Search(zeros, np.array(hits), starts)


def _flowed(parts: Parts, mu: float, start: Array, tolerance: float, step: float) -> Array | None:
    """The zero of L + mu D that Powell's hybrid method finds from a start; None if none."""
    from scipy.optimize import root

    def value(x: Array) -> Array:
        check_deadline()
        if not np.all(np.isfinite(x)):  # it has run away
            return np.full(x.size, np.nan)
        learning, loss = parts(x.reshape(start.shape))
        return (learning + mu * loss).ravel()

    most = start.size + _MOST_STEPS
    answer = root(value, start.ravel(), method="hybr", tol=step, options={"maxfev": most})
    small = np.abs(answer.fun).max() < tolerance and np.abs(answer.x).max() < 1.1
    return answer.x.reshape(start.shape) if small else None


def _near(field: Field, group: Symmetries, mu: float) -> Array:
    """Fixed points of polynomials near phi."""
    near = np.zeros((1, *field.shape))
    for degree in _DEGREES:
        try:
            other = make_field(field.sigma.tolist(), _fitted(field.phi, degree), field.sources)
        except HdicaError:
            continue  # A source without the moments.
        size = min(9, field.sigma.size * len(field.sources))
        zeros = search(polynomial(other, mu), symmetries(other), 50 * size, 2000).zeros
        zeros = zeros[np.linalg.norm(zeros, 2, axis=(1, 2)) <= 1.0]
        near = np.concatenate([near, representatives(group, zeros)[0]])
    return unknown(near, np.zeros((0, *field.shape)), _APART)[:_MOST_NEAR]


def _fitted(phi: Formula, degree: int) -> Formula:
    """The polynomial nearest to phi in the mean square over the normal law."""
    nodes = gaussian_nodes(200)
    basis = np.polynomial.hermite_e.hermevander(nodes.points, degree)
    norms = np.cumprod(np.maximum(1.0, np.arange(degree + 1.0)))
    series = np.sum(basis * (nodes.weights * phi.value(nodes.points))[:, None], axis=0) / norms
    series[np.abs(series) < 1e-9 * np.abs(series).max()] = 0.0
    powers = np.polynomial.hermite_e.herme2poly(series)
    return parse_formula(" + ".join(f"({c:.15f})*x**{n}" for n, c in enumerate(powers)))


def _scan(field: Field, mu: float) -> Array:
    """For one overlap, the places between which the right-hand side changes its sign or turns."""
    if field.shape != (1, 1):
        return np.zeros((0, *field.shape))
    places = np.linspace(-1.0, 1.0, 2 * _SCAN + 1)
    learning, loss = np.array([field.rough(np.full((1, 1), r)) for r in places])[:, :, 0, 0].T
    rate = learning + mu * loss
    change = rate[:-1] * rate[1:] <= 0.0
    size = np.abs(rate)
    turn = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:])
    begin = np.concatenate([(places[:-1] + places[1:])[change] / 2, places[1:-1][turn]])
    return begin.reshape(-1, 1, 1)
