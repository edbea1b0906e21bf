"""Hebbian ICA with batches, signs that change and sources that move: what a step draws, and runs.

The kernels take one row a step. Every number of it has a column of the recording loop, and so a
place in the streams that no output time changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import address, powers
from hdica.finite.random.streams import Stream
from hdica.finite.record import Observation, Track, Values, record
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.systems.hebbian_ica.rule import (
    Array,
    Draw,
    HebbianRule,
    check_dimension,
    draws,
    first_overlaps,
    first_weights,
)

_NOTHING = Schedule(np.zeros_like, 0.0)
Seen = Callable[[], dict[str, Array]]


def check_motion(rule: HebbianRule, n: int) -> None:
    """Refuse an n in which sources have nowhere to turn."""
    m = rule.shape[1]
    if rule.motion is not None and n < 2 * m:
        raise HdicaError(
            f"n = {n} is not allowed with motion and {m} sources (n >= {2 * m}: at least as many "
            "directions to turn to as sources)"
        )


def _signs(rule: HebbianRule, times: Array) -> Array:
    """Signs at times, shape (K, T); 0 for adaptive ones."""
    if rule.sign_path is not None:
        return rule.sign_path(times)
    fixed = np.zeros(rule.projections) if rule.signs is None else rule.signs
    return np.repeat(fixed[:, None], times.size, axis=1)


def path(rule: HebbianRule, n: int) -> list[Schedule]:
    """Step size, rho of the turn, and the sign of every projection, as functions of t = k/n."""
    still = Schedule(np.ones_like, 1.0)
    turn = still if rule.motion is None else rule.motion.turn(n)

    def sign(i: int) -> Schedule:
        if rule.sign_path is None:
            return Schedule(np.zeros_like, float(_signs(rule, np.zeros(1))[i, 0]))
        return Schedule(lambda t: _signs(rule, t)[i], None)

    return [rule.step_size(n), turn, *[sign(i) for i in range(rule.projections)]]


def sample_draws(rule: HebbianRule, stream: Stream) -> list[Draw]:
    """Sources of every sample of a batch, those of a law from one generator."""
    return draws(rule, stream) * rule.batch


def _chi_square(dof: int, rng: np.random.Generator) -> Draw:
    """Chi-square numbers; 0 where no degree of freedom is left."""
    if dof <= 0:
        return lambda size: np.zeros(size)
    return lambda size: rng.chisquare(dof, size)


def _wishart(size: int, dof: int, rng: np.random.Generator) -> list[Draw]:
    """Bartlett's chi-square numbers, and then the normal ones below them."""
    draws = [_chi_square(dof - i, rng) for i in range(size)]
    return draws + [rng.standard_normal] * (size * (size - 1) // 2)


def chain_draws(rule: HebbianRule, n: int, stream: Stream) -> list[Draw]:
    """The numbers of a step of the chain, in the order of ``varied_chain_steps``."""
    (k, m), noise = rule.shape, stream("noise")
    numbers = sample_draws(rule, stream) + [noise.standard_normal] * (rule.batch * k)
    numbers += _wishart(min(rule.batch, k), n - m - k, noise)
    if rule.motion is not None:
        turn = stream("motion")
        numbers += [turn.standard_normal] * (k * m)
        numbers += _wishart(m, n - m - k, turn)
    return numbers


def columns(drawn: Sequence[Draw], given: Sequence[Schedule], seen: Seen) -> list[Track]:
    """A column a number that is drawn or given; the first one observes the point."""
    count = max(len(drawn), len(given))
    draw = chain(drawn, [None] * (count - len(drawn)))
    schedules = chain(given, [_NOTHING] * (count - len(given)))
    see = chain([seen], [dict] * (count - 1))
    return [Track(Observation(w), d, s) for w, d, s in zip(see, draw, schedules, strict=True)]


def _law(rule: HebbianRule) -> tuple[float, int, Array, int, Array, int]:
    """Alpha, the batch, phi and its derivative, which adaptive signs alone need."""
    f, none = rule.nonlinearity, (np.empty(0), 0)
    slope = none if rule.signs is not None else (powers(f.derivative), address(f.derivative))
    return rule.alpha, rule.batch, rule.terms, address(f), *slope


def _recorded(
    rule: HebbianRule,
    times: Array,
    n: int,
    tracks: list[Track],
    drawn: int,
    steps: Callable[[Array, Array], int],
    entries: int = 1,
) -> Values:
    """Run the kernel ``steps(numbers, path)`` and add given signs that change.

    A step passes over so many entries.
    """
    made = np.zeros(1, dtype=np.int64)
    count = 2 + rule.projections

    def advance(numbers: Array, values: Array) -> NDArray[np.int64]:
        made[0] = steps(
            np.ascontiguousarray(numbers[:, :drawn]), np.ascontiguousarray(values[:, :count])
        )
        return np.repeat(made, len(tracks))

    values, diverged = record(advance, tracks, times, n, numbers=entries)[0]
    if rule.sign_path is not None:
        values["sigma"] = _signs(rule, times).T.copy()
    return values, diverged


def run_varied_chain(rule: HebbianRule, times: Array, n: int, stream: Stream) -> Values:
    """R and Q alone, exact in law, at a cost per step that does not depend on n."""
    from hdica.systems.hebbian_ica.varied_kernels import varied_chain_steps

    check_dimension(rule, n, "chain")
    check_motion(rule, n)
    r, lower = first_overlaps(rule.start, rule.shape, n, stream("start"))
    r, lower = r.copy(), np.ascontiguousarray(lower)
    mean, count = np.zeros(rule.projections), np.zeros(1, dtype=np.int64)
    drawn, law = chain_draws(rule, n, stream), _law(rule)

    def seen() -> dict[str, Array]:
        rows = np.hstack([r, lower])
        q = np.array([[dot(one, other) for other in rows] for one in rows])
        return {"R": r, "Q": q} | ({"sigma": np.sign(mean)} if rule.signs is None else {})

    return _recorded(
        rule,
        times,
        n,
        columns(drawn, path(rule, n), seen),
        len(drawn),
        lambda numbers, values: varied_chain_steps((r, lower, mean, count), numbers, values, law),
    )


def run_varied_vector(rule: HebbianRule, times: Array, n: int, stream: Stream) -> Values:
    """All n coordinates, step by step: R, Q and the signs, if they change."""
    from hdica.finite.random.gaussian import lanes_of
    from hdica.finite.random.lanes import CHUNK
    from hdica.systems.hebbian_ica.varied_kernels import varied_vector_steps

    check_dimension(rule, n, "vector")
    check_motion(rule, n)
    k, m = rule.shape
    w = np.zeros((k, n + -n % CHUNK))
    w[:, :n] = first_weights(rule.start, rule.shape, n, stream("start")).T
    q = np.array([[dot(one, other) for other in w] for one in w])
    mean, count = np.zeros(k), np.zeros(1, dtype=np.int64)
    arrays, law = (lanes_of(stream("noise")), w, q, mean, count), _law(rule)

    def seen() -> dict[str, Array]:
        return {"R": w[:, :m], "Q": q} | ({"sigma": np.sign(mean)} if rule.signs is None else {})

    return _recorded(
        rule,
        times,
        n,
        columns(sample_draws(rule, stream), path(rule, n), seen),
        rule.batch * m,
        lambda numbers, values: varied_vector_steps(arrays, n, numbers, values, law),
        n * k * rule.batch,
    )
