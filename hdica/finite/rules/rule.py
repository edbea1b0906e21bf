"""Rules of K estimates and M features at finite n: state, start and recording around the kernels.

A start has the products R and P exactly, whatever n; directions are uniform.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream, normal_numbers, side_by_side
from hdica.finite.record import (
    OVERLAP,
    PRODUCT,
    Observation,
    Track,
    Values,
    aligned_zeros,
    contiguous,
    observe,
    orthonormal,
    record,
)
from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array
from hdica.ingredients.prior import Prior
from hdica.ingredients.quadrature import dot, gram, root_of
from hdica.ingredients.save import NOTHING, Save
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.update import NORMALISATIONS, Update

CLOCK = Schedule(np.asarray, None)
"""What steps take in the place of a step size: the time."""


@dataclass(frozen=True, eq=False)
class FiniteRule:
    """A rule as its kernels take it."""

    update: Update
    sources: tuple[Source, ...]
    """Laws of v_m over its scale, standardised."""
    scales: Array
    """Standard deviations of the v_m, shape (M,)."""
    noise: tuple[Source, ...]
    """Laws of the noise."""
    psi: Formula
    """psi, which acts on every entry."""
    normalise: str
    """One of :data:`hdica.ingredients.update.NORMALISATIONS`."""
    r: Array
    """R at t = 0, shape (K, M)."""
    p: Array
    """P at t = 0, shape (K, K)."""
    prior: Prior | None = None
    """Law of the entries of one feature; None for features in uniform directions."""
    clock: Schedule = CLOCK
    """What the update has as its time: the time, or a step size that follows it."""

    @property
    def mode(self) -> int:
        """The normalisation as kernels take it."""
        return NORMALISATIONS.index(self.normalise)

    @property
    def shrinkage(self) -> float:
        """Lambda of psi(x) = -lambda x; 0 of another psi."""
        return -(self.psi.slope_if_linear or 0.0)

    @property
    def alike(self) -> object:
        """What chains in one call have in common."""
        return self.update, self.normalise, self.r.shape


def dimension_refusal(estimates: int, features: int, n: int) -> str:
    """Empty if estimates and features leave another direction in n dimensions."""
    least = estimates + features + 1
    if n >= least:
        return ""
    return (
        f"n = {n} is not allowed with {estimates} estimate{'s' * (estimates > 1)} and {features} "
        f"feature{'s' * (features > 1)} (n >= {least})"
    )


def _columns(rule: FiniteRule, stream: Stream) -> Callable[[int], Array]:
    """A function that continues the streams of v and of the noise, shape (steps, M + J)."""
    named = [(f"source {m}" if m else "source", law) for m, law in enumerate(rule.sources)]
    laws = [*named, *((f"noise {j}", law) for j, law in enumerate(rule.noise))]
    draws = [_draw(law, stream, name) for name, law in laws]
    scales = [*rule.scales.tolist(), *(1.0 for _ in rule.noise)]

    def drawn(size: int) -> Array:
        columns = [scale * draw(size) for scale, draw in zip(scales, draws, strict=True)]
        return contiguous(columns[0] if len(columns) == 1 else np.stack(columns, axis=1))

    return drawn


def _draw(law: Source, stream: Stream, name: str) -> Callable[[int], Array]:
    if law.label == "gaussian":
        return normal_numbers(stream(name))
    rng = stream(name)
    return lambda size: law.sample(rng, size)


def run_chains(
    rules: Sequence[FiniteRule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """R, shape (T, K, M), and P, shape (T, K, K), of at most eight points, one a lane.

    The rules have equal :attr:`FiniteRule.alike`, and a psi that is linear. A chain's numbers do
    not depend on the others. After a step that was not finite values are NaN.
    """
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.rules.chain_kernels import rule_chain_steps

    first = rules[0]
    k, m = first.r.shape
    if dimension_refusal(k, m, n):
        raise HdicaError(dimension_refusal(k, m, n))
    r, g = np.zeros((k * m, LANES)), np.zeros((k * k, LANES))
    constants = np.zeros((len(first.update.constants), LANES))
    shrinks, made = np.zeros((k, LANES)), np.zeros(LANES, dtype=np.int64)
    # A lane that is left over goes as the first one does, and nobody looks at it.
    for lane in range(LANES):
        rule = rules[lane if lane < len(rules) else 0]
        r[:, lane], g[:, lane] = rule.r.ravel(), (rule.p - gram(rule.r)).ravel()
        constants[:, lane], shrinks[:, lane] = rule.update.numbers, rule.shrinkage / n
    lanes = side_by_side([stream("noise") for stream in streams])
    address, mode, norms = first.update.address, first.mode, first.update.uses_norms
    width = m + len(first.noise)

    def advance(source: Array, clock: Array) -> NDArray[np.int64]:
        numbers = source.reshape(len(clock), width, LANES)
        rule_chain_steps(
            lanes, r, g, n, k, m, numbers, clock, constants, shrinks, address, mode, norms, made
        )
        return made

    def point(lane: int) -> Track:
        def at_times() -> dict[str, Array]:
            overlaps = r[:, lane].reshape(k, m)
            return {
                OVERLAP: overlaps.copy(),
                PRODUCT: g[:, lane].reshape(k, k) + gram(overlaps),
            }

        rule = rules[lane]
        return Track(Observation(at_times), _columns(rule, streams[lane]), rule.clock)

    return record(advance, [*map(point, range(len(rules)))], times, n, LANES, width)


def placed(rule: FiniteRule, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Features, shape (M, n), |xi|^2 = n, and estimates, shape (K, n), with their R and P."""
    k, m = rule.r.shape
    if dimension_refusal(k, m, n):
        raise HdicaError(dimension_refusal(k, m, n))
    first = None if rule.prior is None else rule.prior.feature(rng, n) / math.sqrt(n)
    rows = math.sqrt(n) * orthonormal(rng, m + k, n, first)
    mixed = np.concatenate([rule.r, root_of(rule.p - gram(rule.r))], axis=1)
    return rows[:m], np.sum(mixed[:, :, None] * rows, axis=1)


def _with_entries(
    seen: Observation, estimate: Callable[[], Array], xi: Array, rule: FiniteRule, save: Save
) -> Observation:
    """What is seen of a point, with what is kept of the measure of entries (xi_i, x_i)."""
    assert rule.prior is not None
    x = np.zeros(xi.size)
    entries = observe(xi, x, rule.prior, rule.psi, save)

    def at_times() -> Mapping[str, float | Array]:
        x[:] = estimate()
        means = entries.at_times() if save.functionals else {}
        return {**seen.at_times(), **{name: means[name] for name in save.functionals}}

    def at_snapshots() -> dict[str, Array]:
        x[:] = estimate()
        return entries.at_snapshots()

    return Observation(at_times, at_snapshots, entries.snapshots, entries.once)


def run_vector(
    rule: FiniteRule, times: Array, n: int, stream: Stream, save: Save = NOTHING
) -> Values:
    """R and P of one point by all n coordinates; else as :func:`run_chains`.

    Of one estimate of one feature with a prior, what ``save`` says of their entries is kept, too.
    """
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.projected.passes import BLOCK
    from hdica.finite.random.gaussian import lanes_of
    from hdica.finite.random.lanes import CHUNK
    from hdica.finite.rules.vector_kernels import CALLED, LINEAR, PLAIN, rule_vector_steps

    k, m = rule.r.shape
    features, estimates = placed(rule, n, stream("start"))
    padded = n + -n % CHUNK
    x, xi, z = aligned_zeros(k, padded), aligned_zeros(m, padded), aligned_zeros(padded)
    x[:, :n], xi[:, :n] = estimates, features
    carried = np.zeros((k + 1, k))
    np.fill_diagonal(carried[:k], 1.0)
    scratch = aligned_zeros((k + 1) * BLOCK)
    sums = aligned_zeros(LANES * (k * (k + 1) // 2 + k * (1 + m) + m))
    kind = PLAIN if rule.psi.is_zero else CALLED
    if rule.psi.slope_if_linear is not None and kind == CALLED:
        kind = LINEAR
    of_block = rule.psi.compiled_block.address if kind == CALLED else 0
    psi = (kind, np.full(k, rule.shrinkage / n), of_block)
    constants = np.array(rule.update.numbers, dtype=float)
    lanes, made = lanes_of(stream("noise")), np.zeros(1, dtype=np.int64)
    address, mode = rule.update.address, rule.mode

    def advance(source: Array, clock: Array) -> NDArray[np.int64]:
        numbers = source.reshape(len(clock), -1)
        rule_vector_steps(
            lanes, x, z, xi, n, carried, numbers, clock[:, 0].copy(), constants, address, mode, psi,
            scratch, sums, made,
        )  # fmt: skip
        return made

    def estimates_now() -> Array:
        return np.asarray(np.sum(carried[:k, :, None] * x[:, :n], axis=1))

    def at_times() -> Mapping[str, Array]:
        now = estimates_now()
        return {
            OVERLAP: np.array([[dot(one, xi[j, :n]) / n for j in range(m)] for one in now]),
            PRODUCT: np.array([[dot(one, other) / n for other in now] for one in now]),
        }

    seen = Observation(at_times)
    if save.anything and rule.prior is not None:
        seen = _with_entries(seen, lambda: estimates_now()[0], features[0], rule, save)
    track = Track(seen, _columns(rule, stream), rule.clock)
    width = m + len(rule.noise)
    return record(advance, [track], times, n, 1, width, n * (m + k))[0]
