"""Projected rules at finite n on all coordinates: state, start and recording around the kernels.

On samples of the user's own, x <- x + (tau/sqrt n) <w(u) y>, then phi, |x|^2 = n; a step reads its
rows and the estimate once, so that NumPy is as fast as memory; sums are NumPy's own and no
threads', so that a run has the same bits on any machine's BLAS.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hdica.finite.projected.chain import powers, samples, width_of
from hdica.finite.projected.motion import X_Z, XI_Z, Moved, moving
from hdica.finite.random.streams import Stream
from hdica.finite.record import (
    OVERLAP,
    PENALTY,
    Advance,
    Observation,
    Track,
    Values,
    aligned_zeros,
    begin,
    not_finite,
    observe,
    record,
)
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import Source
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.save import NOTHING, Save
from hdica.ingredients.schedules import STILL, Motion, Schedule
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]
VANISHED = "eta sent every entry to zero"


@dataclass(frozen=True)
class VectorRule:
    """What the compiled kernel needs of a problem, under the names that it has there."""

    model: int
    """The form of F: ``NONLINEAR`` or ``LINEAR`` of the kernels."""
    sources: Callable[[np.random.Generator], Callable[[int], Array]]
    """``sources(rng)``: a function that continues the stream of sources."""
    prior: Prior
    start: Start
    schedule: Schedule
    phi: Formula
    """Laws of feature and first estimate, step sizes and regularizer."""
    kind: int
    numbers: Callable[[int], tuple[float, float, float, float]]
    """How phi acts at a given n: a function of n for a, b, the slope of a linear phi and
    the rate."""
    nonlinearity: Formula | Push | None = None
    """f of a nonlinear F = rate tau f, a function of u or of u and c; None for the linear F = tau
    u, where the rate is omega."""
    batch: int = 1
    """Samples over which F y is averaged in one step, all at the same x."""
    amplitude: Schedule | None = None
    """What multiplies the source of a step, if that changes with time."""
    motion: Motion = STILL
    """How the feature moves."""
    noise: Source | None = None
    """Law of the entries of z; None for the normal one, which the kernels draw."""

    @property
    def phi_is_called(self) -> bool:
        """Whether phi has none of the closed forms of :mod:`hdica.finite.projected.passes`."""
        from hdica.finite.projected.passes import PHI_OF_X

        return self.kind >= PHI_OF_X


@dataclass(eq=False)
class _State:
    """Arrays that the kernels update, padded with zeros; row p of x belongs to point p."""

    lanes: NDArray[np.uint64]
    x: Array
    z: Array
    xi: Array
    carried: Array
    made: NDArray[np.int64]

    def estimate(self, p: int, out: Array) -> None:
        """Write the normalised estimate of a point, shape (n,)."""
        factor = self.carried[p, 0]
        np.multiply(self.x[p, : out.size], factor if factor else 1.0, out=out)

    def why(self, p: int) -> str:
        """What happened to a point, after a step that did not succeed."""
        return not_finite() if np.any(self.x[p]) else VANISHED


def _state(xi: Array, estimates: Sequence[Array], noise: np.random.Generator) -> _State:
    from hdica.finite.random.gaussian import lanes_of
    from hdica.finite.random.lanes import CHUNK

    n, points = xi.size, len(estimates)
    m = n + -n % CHUNK
    x, feature = aligned_zeros(points, m), aligned_zeros(m)
    x[:, :n], feature[:n] = estimates, xi
    made = np.zeros(points, dtype=np.int64)
    return _State(lanes_of(noise), x, aligned_zeros(m), feature, np.zeros((points, 4)), made)


def _observed(state: _State, p: int, xi: Array, rule: VectorRule, save: Save) -> Observation:
    """What is seen of a point, of its normalised estimate at the time."""
    x = np.empty(xi.size)
    state.estimate(p, x)
    seen = observe(xi, x, rule.prior, rule.phi, save)

    def at_times() -> Mapping[str, float | Array]:
        state.estimate(p, x)
        return seen.at_times()

    return replace(seen, at_times=at_times)


def _advance(rules: Sequence[VectorRule], state: _State, n: int) -> Advance:
    """Steps of the compiled kernel on a state."""
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.projected.observed import rows_of
    from hdica.finite.projected.passes import BLOCK
    from hdica.finite.projected.vector_kernels import BATCH, own_steps, shared_steps

    steps = own_steps if len(rules) == 1 else shared_steps
    arrays, scratch = (state.lanes, state.x, state.z, state.xi), aligned_zeros(3 * BLOCK)
    kinds = np.array([rule.kind for rule in rules])
    numbers = np.array([rule.numbers(n) for rule in rules])
    first = rules[0]
    f, model = first.nonlinearity, first.model + (BATCH if first.batch > 1 else 0)
    # The nonlinearity as a polynomial or a compiled function, and phi of a block.
    terms = np.empty(0) if f is None else powers(f)
    address = 0 if f is None or terms.size else f.compiled_pair.address
    phi = first.phi.compiled_block.address if first.phi_is_called else 0
    seen = rows_of([rule.schedule for rule in rules], n)
    law = (model, kinds, numbers, terms, address, phi)

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        rows = source.reshape(len(source), math.prod(source.shape[1:]))
        steps(arrays, n, state.carried, rows, tau, law, seen, scratch, state.made)
        return state.made

    return advance


def _with_noise(
    advance: Advance, law: Source, state: _State, n: int, rng: np.random.Generator
) -> Advance:
    """Steps of the kernel one by one, each with noise of another law in the place of its own."""
    feature, noise, carried = state.xi, state.z, state.carried

    def steps(source: Array, tau: Array) -> NDArray[np.int64]:
        if not carried[:, 0].any():
            advance(source[:0], tau[:0])  # which draws the noise of the first step
        made, alive = np.zeros(tau.shape[1], dtype=np.int64), ~np.isnan(carried[:, 0])
        for k in range(len(tau)):
            noise[:n] = law.sample(rng, n)
            carried[alive, XI_Z] = dot(feature, noise)
            carried[alive, X_Z] = [dot(row, noise) for row in state.x[alive]]
            alive &= advance(source[k : k + 1], tau[k : k + 1]) == 1
            made += alive
            if not alive.any():
                break
        return made

    return steps


def run_shared(
    rules: Sequence[VectorRule],
    times: Array,
    n: int,
    stream: Stream,
    saves: Sequence[Save] | None = None,
) -> list[Values]:
    """All n coordinates of points that see the same feature, sources' stream and noise.

    Parameters
    ----------
    rules
        Problems with the same prior, motion, noise, model, nonlinearity and batch, step sizes all
        or none of which are observed, and the same phi where it has none of the closed forms of
        :mod:`hdica.finite.projected.passes`. What runs beside a point changes no number of it.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension.
    stream
        ``stream(part)``: a new generator of one part of the points.
    saves
        What to keep of every point beyond the order parameters.

    Returns
    -------
    list
        For every rule ``values``: overlap, penalty (:mod:`hdica.finite.record`) and ``largest`` =
        max x_i^2/n, each of shape (T,), and what is kept besides (see
        :func:`hdica.finite.record.observe`); and ``diverged``: empty, or why the point stopped.
    """
    pairs = [begin(rule.prior, rule.start, n, stream) for rule in rules]
    xi = pairs[0][0]
    state = _state(xi, [x for _, x in pairs], stream("noise"))
    tracks = [
        Track(
            _observed(state, p, xi, rule, saves[p] if saves else NOTHING),
            samples(rule.sources, rule.batch, stream, rule.amplitude, n),
            rule.schedule,
            partial(state.why, p),
        )
        for p, rule in enumerate(rules)
    ]
    advance = _advance(rules, state, n)
    if rules[0].noise is not None:
        advance = _with_noise(advance, rules[0].noise, state, n, stream("noise law"))
    if rules[0].motion.moves:
        moved = Moved(xi, state.xi, state.x, state.z, state.carried)
        advance = moving(advance, rules[0].motion, moved, stream)
    numbers = n * len(rules) * rules[0].batch
    return record(advance, tracks, times, n, width=width_of(rules[0].batch), numbers=numbers)


@dataclass(frozen=True)
class GivenRule:
    """A rule as it acts on samples."""

    weight: Callable[[Array], Array]
    """w of the projections u = x.y/sqrt(n), shape (batch,): -f(u), or u."""
    shrink: Callable[[Array, Array, float], Array]
    """``shrink(x, moved, tau)``: the moved estimate after phi has acted, before its length is
    restored; x is where the step began."""
    schedule: Schedule
    """Step sizes tau(k/n)."""
    phi: Formula
    """The regularizer, for R."""
    batch: int
    """Samples of one step."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples as a run reads them."""

    read: Callable[[int, int], Array]
    """``read(first, last)``: rows in their order, shape (last - first, n)."""
    taken: Callable[[NDArray[np.int64]], Array]
    """``taken(places)``: rows in any order."""
    count: int
    n: int
    """Samples and their entries."""
    block: int
    """Rows to read at a time; no number depends on it."""
    shuffled: bool = False
    """Whether every pass has an order of its own, drawn from the stream ``"order"``."""
    passes: int = 1
    """How many times the samples are seen."""

    def steps(self, batch: int) -> int:
        """Steps of a batch that the samples are enough for."""
        return self.count * self.passes // batch

    def one_by_one(self, stream: Stream) -> Iterator[Array]:
        """Every sample, shape (n,), pass after pass."""
        rng = stream("order") if self.shuffled else None
        for _ in range(self.passes):
            order = None if rng is None else rng.permutation(self.count)
            for first in range(0, self.count, self.block):
                last = min(first + self.block, self.count)
                yield from (
                    self.read(first, last) if order is None else self.taken(order[first:last])
                )


SLOWER = 10
"""How much longer NumPy takes for a number than a kernel, that of reading it included."""


@dataclass(eq=False)
class _Run:
    """The estimate, and the projections of the last n samples."""

    rule: GivenRule
    rows: Iterator[Array]
    x: Array
    last: deque[float]
    seen: int = 0

    def advance(self, source: Array, tau: Array) -> NDArray[np.int64]:
        """As many steps as there are step sizes, while the update is finite."""
        for made, rate in enumerate(tau[:, 0].tolist()):
            if not self._step(rate):
                return np.array([made])
        return np.array([len(tau)])

    def _step(self, tau: float) -> bool:
        root = math.sqrt(self.x.size)
        rows = [next(self.rows) for _ in range(self.rule.batch)]
        u = np.array([dot(self.x, row) for row in rows]) / root
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = tau / root / len(rows) * self.rule.weight(u)
            moved = self.x.copy()
            for weight, row in zip(weights, rows, strict=True):
                moved += weight * row
            moved = self.rule.shrink(self.x, moved, tau)
            length = math.sqrt(dot(moved, moved))
        if not 0 < length < math.inf:
            return False
        np.multiply(moved, root / length, out=self.x)
        self.last.extend(u.tolist())
        self.seen += len(rows)
        return True

    def moments(self) -> dict[str, float]:
        """Means of u^2 and u^4 over the last n samples, each at the x that it met."""
        square = np.square(np.fromiter(self.last, dtype=float)) if self.last else np.full(1, np.nan)
        return {"second": float(np.mean(square)), "fourth": float(np.mean(square * square))}


def run_given(
    rule: GivenRule,
    rows: Rows,
    times: Array,
    x: Array,
    xi: Array | None,
    stream: Stream,
    full: bool,
) -> Values:
    """A rule on samples from the estimate x on.

    Parameters
    ----------
    rule, rows
        What is done, and on which samples.
    times
        Shape (T,), in steps per dimension; the last within what the samples are enough for.
    x
        First estimate, shape (n,), |x|^2 = n.
    xi
        The feature, shape (n,), |xi|^2 = n, for the overlap; None if it is not known.
    stream
        For the order of the samples.
    full
        Whether the estimate itself is kept at every time, as ``loading``.

    Returns
    -------
    tuple
        Values over the times (overlap, penalty, ``largest``, ``second``, ``fourth``, ``samples``,
        ``loading``), and empty or why the run stopped.
    """
    n = rows.n
    run = _Run(rule, rows.one_by_one(stream), x.copy(), deque(maxlen=n))

    def seen() -> dict[str, float | Array]:
        values: dict[str, float | Array] = {} if xi is None else {OVERLAP: dot(xi, run.x) / n}
        values[PENALTY] = float(np.mean(run.x * rule.phi.value(run.x)))
        values["largest"] = float(np.max(run.x * run.x)) / n
        return values | run.moments() | {"samples": run.seen} | ({"loading": run.x} if full else {})

    track = Track(Observation(seen), None, rule.schedule)
    return record(run.advance, [track], times, n, numbers=SLOWER * n * rule.batch)[0]
