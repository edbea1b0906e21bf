"""Hebbian ICA at finite n: the rule (13) of Rattray 2002, its start, and its trajectories.

With batches, signs that change or sources that move, kernels of plain loops take one row a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import address, powers
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Advance, Observation, Track, Values, contiguous, record
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot, gram
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.systems.hebbian_ica.fields import Motion


def triangular(t: Array) -> Array:
    """L, lower triangular with a diagonal >= 0, L L' = T'T, of T of any rank, (rows >= K, K)."""
    t, size = t.copy(), t.shape[1]
    for k in range(size):
        norm = math.sqrt(dot(t[k:, k], t[k:, k]))
        pivot = t[k, k] + math.copysign(norm, t[k, k])
        if norm > 0.0:
            v = t[k:, k].copy()
            v[0] = pivot
            for j in range(k, size):
                t[k:, j] -= v * (dot(v, t[k:, j]) / (norm * abs(pivot)))
        if t[k, k] < 0.0:
            t[k, k:] = -t[k, k:]
    return np.tril(t[:size].T)


def factor(r0: Array) -> Array:
    """L with L L' = I - R R', by Cholesky's method with pivots; what is below 1e-15 counts as 0."""
    size = r0.shape[0]
    rest = np.array([[-dot(a, b) for b in r0] for a in r0])
    for i, row in enumerate(r0):
        norm = math.sqrt(dot(row, row))
        rest[i, i] = (1.0 - norm) * (1.0 + norm)
    lower = np.zeros((size, size))
    for column in range(size):
        pivot = np.argmax(np.diag(rest))
        if rest[pivot, pivot] <= 1e-15:
            break
        lower[:, column] = rest[:, pivot] / math.sqrt(rest[pivot, pivot])
        rest = rest - lower[:, column][:, None] * lower[:, column]
        rest[pivot, :] = rest[:, pivot] = 0.0
    return triangular(lower.T)


def _orthonormal(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """Random orthonormal columns, rotation invariant in law: Gram and Schmidt's method, twice."""
    q = rng.standard_normal((columns, rows))
    for k in range(columns):
        for _ in range(2):
            for j in range(k):
                q[k] -= dot(q[j], q[k]) * q[j]
            q[k] /= math.sqrt(dot(q[k], q[k]))
    return q.T


def first_weights(
    start: Array | None, shape: tuple[int, int], n: int, rng: np.random.Generator
) -> Array:
    """W at t = 0, shape (n, K), with W'W = I; its first M rows are exactly R', if R is given."""
    k, m = shape
    if start is None:
        return _orthonormal(rng, n, k)
    loading, base = factor(start), _orthonormal(rng, n - m, k)
    rest = np.array([sum(a * u for a, u in zip(row, base.T, strict=True)) for row in loading])
    return np.concatenate([start, rest], axis=1).T


def first_overlaps(
    start: Array | None, shape: tuple[int, int], n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """R, shape (K, M), and L, shape (K, K), with L L' = I - R R', of :func:`first_weights`.

    A random rotation is Z A'^-1 with normal Z and Z'Z = A A'. Its M rows on the sources are
    drawn, and of the others only B B' = Z'Z, a Wishart matrix (Bartlett 1933: normal numbers below
    a diagonal of chi numbers): then R = A^-1 Z_s' and L = A^-1 B, without a subtraction.
    """
    k, m = shape
    if start is not None:
        return start, factor(start)
    on_sources = rng.standard_normal((k, m))
    b = np.tril(rng.standard_normal((k, k)), -1)
    b[np.diag_indices(k)] = np.sqrt(rng.chisquare(n - m - np.arange(k)))
    a = triangular(np.concatenate([on_sources, b], axis=1).T)
    r, loading = on_sources, b
    for i in range(k):
        for both in (r, loading):
            for j in range(i):
                both[i] -= a[i, j] * both[j]
            both[i] /= a[i, i]
    return r, loading


Draw = Callable[[int], Array]
Seen = Callable[[], dict[str, Array]]
_NOTHING = Schedule(np.zeros_like, 0.0)


@dataclass(frozen=True, eq=False)
class HebbianRule:
    """W <- W + eta x phi(y)' Sigma + alpha W (I - W'W) with y = W'x, W of shape (n, K).

    The data are x = (s, g): M sources and n - M standard normal numbers. For x = A_s s + A_n g
    with orthonormal (A_s, A_n) nothing else is lost: (A_s, A_n)'W follows the same rule on
    (A_s, A_n)'x = (s, g), with the same R = W'A_s and Q = W'W.
    """

    sources: tuple[Source, ...]  # laws of s
    projections: int  # K
    nonlinearity: Formula  # phi
    signs: Array | None  # diagonal of Sigma, shape (K,); None for adaptive signs
    step_size: Callable[[int], Schedule]  # of n: eta as a function of t = k/n
    alpha: float
    start: Array | None  # R at t = 0, shape (K, M); None for a random rotation
    batch: int = 1  # samples whose mean makes an update
    sign_path: Callable[[Array], Array] | None = None  # signs (K, T) at times (T,) if they change
    motion: Motion | None = None  # of the sources; None if they stay

    @property
    def shape(self) -> tuple[int, int]:
        """(K, M)."""
        return self.projections, len(self.sources)

    @property
    def varied(self) -> bool:
        """Whether samples come in batches, given signs change or sources move."""
        return self.batch > 1 or self.sign_path is not None or self.motion is not None

    @property
    def terms(self) -> Array:
        """Coefficients of a polynomial phi, the highest power first; empty for another phi."""
        return powers(self.nonlinearity)

    @property
    def alike(self) -> object:
        """What chains in one call must have in common: K, M, and phi if it is no polynomial.

        Those that the kernel of eight chains cannot make run one by one.
        """
        if self.varied or self.signs is None:
            return None
        return self.shape, None if self.terms.size else self.nonlinearity.expression


def check_dimension(rule: HebbianRule, n: int, method: str) -> None:
    """Refuse an n in which sources and projections do not fit, or sources have nowhere to turn."""
    k, m = rule.shape
    if n < k + m:
        raise HdicaError(
            f"n = {n} is not allowed for method {method!r} with {k} projections and {m} sources "
            f"(n >= {k + m}: at least as many normal directions as projections)"
        )
    if rule.motion is not None and n < 2 * m:
        raise HdicaError(
            f"n = {n} is not allowed with motion and {m} sources (n >= {2 * m}: at least as many "
            "directions to turn to as sources)"
        )


def draws(rule: HebbianRule, stream: Stream) -> list[Draw]:
    """Functions that continue the streams of the sources, each with a generator of its own."""

    def one(j: int, source: Source) -> Draw:
        rng = stream(f"source {j}" if j else "source")
        return lambda size: contiguous(source.sample(rng, size))

    return [one(j, source) for j, source in enumerate(rule.sources)]


def columns(
    drawn: Sequence[Draw | None], schedules: Sequence[Schedule], seen: Seen = dict
) -> list[Track]:
    """A column a number that is drawn or follows a schedule; the first one observes the point."""
    return [
        Track(Observation(see or dict), draw, schedule or _NOTHING)
        for draw, schedule, see in zip_longest(drawn, schedules, [seen])
    ]


def _law(rule: HebbianRule, second: Array | int) -> tuple[object, ...]:
    """What kernels take: alpha, phi, and its derivative, which adaptive signs alone need."""
    f, slope = rule.nonlinearity, rule.nonlinearity.derivative
    of_slope = (powers(slope), address(slope)) if rule.signs is None else (np.empty(0), 0)
    return rule.alpha, second, rule.terms, address(f), *of_slope


def _adapted(rule: HebbianRule, mean: Array) -> dict[str, Array]:
    """The signs of the last step, if they adapt."""
    return {"sigma": np.sign(mean)} if rule.signs is None else {}


def run_vector(rule: HebbianRule, times: Array, n: int, stream: Stream) -> Values:
    """All n >= K + M coordinates, step by step: R, Q and the signs of the last step, if they adapt.

    These are then those of a running mean of y phi(y) - phi'(y), the present sample included
    (Hyvarinen and Oja 1998; eq. (14) for y = s), whose rate at step k is max(1/(k + 1), eta_k) and
    at most 1; 0 at t = 0.
    """
    (state, seen), (k, m) = _begin_vector(rule, n, stream), rule.shape
    tracks = columns(draws(rule, stream), [rule.step_size(n)] * m, seen)
    return record(_vector(rule, state, n), tracks, times, n, numbers=n * k)[0]


def _begin_vector(rule: HebbianRule, n: int, stream: Stream) -> tuple[VectorState, Seen]:
    """All coordinates at t = 0, and what is seen of them."""
    check_dimension(rule, n, "vector")
    state = VectorState.begin(first_weights(rule.start, rule.shape, n, stream("start")), stream)
    r = state.w[:, : len(rule.sources)]
    return state, lambda: {"R": r, "Q": state.q, **_adapted(rule, state.mean)}


@dataclass(eq=False)
class VectorState:
    """Arrays that the kernel of all coordinates updates; n entries and zeros up to whole chunks."""

    lanes: NDArray[np.uint64]  # state of the generators
    w: Array  # W', shape (K, m), m a multiple of CHUNK
    x: Array  # normal part of the coming sample, shape (m,)
    y: Array  # its share of y, shape (K,)
    q: Array  # W'W, shape (K, K)
    mean: Array  # that adaptive signs follow, shape (K,)
    count: NDArray[np.int64]  # steps made, shape (1,); negative before the first draw

    @classmethod
    def begin(cls, weights: Array, stream: Stream) -> VectorState:
        """The state at t = 0 of weights of shape (n, K)."""
        # Imported here, because loading compiled code takes about a second.
        from hdica.finite.random.gaussian import lanes_of
        from hdica.finite.random.lanes import CHUNK

        n, k = weights.shape
        w = np.zeros((k, n + -n % CHUNK))
        w[:, :n] = weights.T
        x, y, mean = np.zeros(w.shape[1]), np.zeros(k), np.zeros(k)
        # Pair by pair, which takes no memory.
        q = np.array([[dot(one, other) for other in w] for one in w])
        return cls(lanes_of(stream("noise")), w, x, y, q, mean, np.full(1, -1))


def _vector(rule: HebbianRule, state: VectorState, n: int) -> Advance:
    """Steps of the compiled kernel on a state."""
    from hdica.systems.hebbian_ica.kernels import hebbian_vector_steps

    law = _law(rule, np.zeros(rule.projections) if rule.signs is None else rule.signs)
    arrays = (state.lanes, state.w, state.x, state.y, state.q, state.mean, state.count)
    return lambda source, eta: np.full(
        len(rule.sources), hebbian_vector_steps(arrays, n, source, eta, law)
    )


@dataclass(eq=False)
class ChainState:
    """Arrays that the kernel of eight chains updates; idle lanes stand still."""

    shape: tuple[int, int]
    state: Array  # R, L and Q, row by row, shape (K M + 2 K^2, LANES)
    law: Array  # alpha, signs and coefficients, shape (1 + K + terms, LANES)

    @classmethod
    def idle(cls, rules: Sequence[HebbianRule]) -> ChainState:
        """Room for chains of these rules."""
        k, m = rules[0].shape
        state = np.zeros((k * m + 2 * k * k, LANES))
        state[k * m :] = np.tile(np.eye(k).ravel(), 2)[:, None]
        terms = max(rule.terms.size for rule in rules)
        return cls((k, m), state, np.zeros((1 + k + terms, LANES)))

    def put(self, lane: int, rule: HebbianRule, n: int, stream: Stream) -> None:
        """Begin a chain in a lane."""
        assert rule.signs is not None
        r, loading = first_overlaps(rule.start, rule.shape, n, stream("start"))
        q = gram(np.hstack([r, loading]))
        self.state[:, lane] = np.concatenate([r.ravel(), loading.ravel(), q.ravel()])
        terms = np.zeros(self.law.shape[0] - 1 - rule.projections)
        terms[terms.size - rule.terms.size :] = rule.terms
        self.law[:, lane] = np.concatenate([[rule.alpha], rule.signs, terms])

    def seen(self, lane: int) -> dict[str, Array]:
        """R and Q of a lane."""
        (k, m), column = self.shape, self.state[:, lane]
        return {"R": column[: k * m].reshape(k, m), "Q": column[k * m + k * k :].reshape(k, k)}


def unwatched(shape: tuple[int, int]) -> tuple[Array, NDArray[np.int64], Array, NDArray[np.int64]]:
    """What the kernel of chains takes where no first passage is looked for."""
    k, m = shape
    first, begun = np.zeros((2, LANES), dtype=np.int64), np.zeros(LANES, dtype=np.int64)
    return np.full((2, LANES), np.inf), first, np.zeros((k * m, LANES)), begun


def run_chains(
    rules: Sequence[HebbianRule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """R and Q alone, at a cost per step that does not depend on n: exact in law.

    For at most eight problems with equal :attr:`HebbianRule.alike`: a chain's numbers do not
    depend on which others run beside it.
    """
    from hdica.finite.random.streams import side_by_side
    from hdica.systems.hebbian_ica.chain_kernels import hebbian_chain_steps

    check_dimension(rules[0], n, "chain")
    chains, (k, m) = ChainState.idle(rules), rules[0].shape
    for lane, (rule, stream) in enumerate(zip(rules, streams, strict=True)):
        chains.put(lane, rule, n, stream)

    def track(lane: int) -> list[Track]:
        if lane >= len(rules):
            return columns([None] * m, [])
        sizes = [rules[lane].step_size(n)] * m
        return columns(draws(rules[lane], streams[lane]), sizes, lambda: chains.seen(lane))

    lanes, made = side_by_side([s("noise") for s in streams]), np.zeros(LANES, dtype=np.int64)
    f, watch, counts = address(rules[0].nonlinearity), unwatched((k, m)), (k, m, n - m - k)

    def advance(source: Array, eta: Array) -> NDArray[np.int64]:
        hebbian_chain_steps(lanes, chains.state, counts, source, eta, chains.law, f, watch, made)
        return np.tile(made, m)

    of_lane = [track(lane) for lane in range(LANES)]
    # Columns of the recording loop: all lanes of one source, then all of the next.
    tracks = [lane[j] for j in range(m) for lane in of_lane]
    return record(advance, tracks, times, n)[: len(rules)]


def path(rule: HebbianRule, n: int) -> list[Schedule]:
    """Step size, rho of the turn, and the signs, 0 for adaptive ones, as functions of t = k/n."""
    turn = Schedule(np.ones_like, 1.0) if rule.motion is None else rule.motion.turn(n)

    def changing(sign_path: Callable[[Array], Array], i: int) -> Schedule:
        return Schedule(lambda t: sign_path(t)[i], None)

    if rule.sign_path is not None:
        signs = [changing(rule.sign_path, i) for i in range(rule.projections)]
    else:
        fixed = np.zeros(rule.projections) if rule.signs is None else rule.signs
        signs = [Schedule(np.zeros_like, sign) for sign in fixed.tolist()]
    return [rule.step_size(n), turn, *signs]


def _wishart(size: int, dof: int, rng: np.random.Generator) -> list[Draw]:
    """Bartlett's chi-square numbers, 0 without a degree of freedom, and the normal ones below."""

    def chi_square(dof: int) -> Draw:
        return (lambda size: rng.chisquare(dof, size)) if dof > 0 else np.zeros

    below: list[Draw] = [rng.standard_normal] * (size * (size - 1) // 2)
    return [chi_square(dof - i) for i in range(size)] + below


def chain_draws(rule: HebbianRule, n: int, stream: Stream) -> list[Draw]:
    """The numbers of a step of the chain, in the order of ``varied_chain_steps``."""
    (k, m), noise = rule.shape, stream("noise")
    # Sources of every sample of a batch, those of a law from one generator.
    numbers = draws(rule, stream) * rule.batch + [noise.standard_normal] * (rule.batch * k)
    numbers += _wishart(min(rule.batch, k), n - m - k, noise)
    if rule.motion is not None:
        turn = stream("motion")
        numbers += [turn.standard_normal] * (k * m)
        numbers += _wishart(m, n - m - k, turn)
    return numbers


def _recorded(
    rule: HebbianRule,
    times: Array,
    n: int,
    drawn: list[Draw],
    seen: Seen,
    steps: Callable[[Array, Array], int],
    entries: int = 1,
) -> Values:
    """Run the kernel ``steps(numbers, path)`` over so many entries; add given signs that change.

    Every number of a step has a column of the recording loop, and so a place in the streams that no
    output time changes.
    """
    schedules = path(rule, n)
    tracks = columns(drawn, schedules, seen)

    def advance(numbers: Array, values: Array) -> NDArray[np.int64]:
        parts = numbers[:, : len(drawn)], values[:, : len(schedules)]
        return np.full(len(tracks), steps(*map(np.ascontiguousarray, parts)))

    values, diverged = record(advance, tracks, times, n, numbers=entries)[0]
    if rule.sign_path is not None:
        values["sigma"] = rule.sign_path(times).T.copy()
    return values, diverged


def run_varied_chain(rule: HebbianRule, times: Array, n: int, stream: Stream) -> Values:
    """R and Q alone, exact in law, at a cost per step that does not depend on n."""
    from hdica.systems.hebbian_ica.kernels import varied_chain_steps

    check_dimension(rule, n, "chain")
    r, lower = first_overlaps(rule.start, rule.shape, n, stream("start"))
    r, lower = r.copy(), np.ascontiguousarray(lower)
    mean = np.zeros(rule.projections)
    state, law = (r, lower, mean, np.zeros(1, dtype=np.int64)), _law(rule, rule.batch)

    def seen() -> dict[str, Array]:
        return {"R": r, "Q": gram(np.hstack([r, lower])), **_adapted(rule, mean)}

    return _recorded(
        *(rule, times, n, chain_draws(rule, n, stream), seen),
        lambda numbers, values: varied_chain_steps(state, numbers, values, law),
    )


def run_varied_vector(rule: HebbianRule, times: Array, n: int, stream: Stream) -> Values:
    """All n coordinates, step by step: R, Q and the signs, if they change."""
    from hdica.systems.hebbian_ica.kernels import varied_vector_steps

    state, seen = _begin_vector(rule, n, stream)
    state.count[0] = 0
    arrays, law = (state.lanes, state.w, state.q, state.mean, state.count), _law(rule, rule.batch)
    return _recorded(
        *(rule, times, n, draws(rule, stream) * rule.batch, seen),
        lambda numbers, values: varied_vector_steps(arrays, n, numbers, values, law),
        n * rule.projections * rule.batch,
    )
