"""The overlaps alone, exact in law: state and recording around the kernel of eight chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream
from hdica.finite.random.width import LANES
from hdica.finite.record import Track, Values, record
from hdica.systems.several_ica.rule import Array, Rule, check_dimension, track


def _powers(rules: Sequence[Rule]) -> Array:
    """Polynomials of the lanes, shape (terms, LANES), short ones filled up with zeros."""
    terms = [rule.terms for rule in rules]
    found = np.zeros((max(t.size for t in terms), LANES))
    for lane, t in enumerate(terms):
        found[found.shape[0] - t.size :, lane] = t
    return found


def _first(rules: Sequence[Rule]) -> Array:
    """Q and s of the lanes at t = 0, shape (M + 1, LANES); one that is left over stands still."""
    state = np.zeros((rules[0].features + 1, LANES))
    state[-1] = 1.0
    for lane, rule in enumerate(rules):
        state[:, lane] = [*rule.start, rule.rest]
    return state


def run_chains(
    rules: Sequence[Rule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """Overlaps of at most eight points, one a lane of the kernel.

    Parameters
    ----------
    rules
        Problems with equal :attr:`Rule.alike`; a chain's numbers do not depend on the others.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension, at least M + 2.
    streams
        ``stream(part)`` of every point.

    Returns
    -------
    list
        For every point ``Q`` of shape (T, M), NaN after a step that was not finite; and empty, or
        why it stopped.
    """
    check_dimension(rules[0], n)
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.random.gaussian import side_by_side
    from hdica.systems.several_ica.chain_kernels import several_chain_steps

    m, state, powers = rules[0].features, _first(rules), _powers(rules)
    lanes, made = side_by_side([s("noise") for s in streams]), np.zeros(LANES, dtype=np.int64)
    rate, f = np.zeros(LANES), rules[0].address
    rate[: len(rules)] = -1.0 / n

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        numbers = source.reshape(-1, LANES)
        several_chain_steps(lanes, state, n, numbers, tau, rate, powers, f, made)
        return made

    def one(lane: int) -> Track:
        return track(rules[lane], streams[lane], lambda: state[:m, lane].copy())

    return record(advance, [one(lane) for lane in range(len(rules))], times, n, LANES, m)
