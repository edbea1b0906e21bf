"""First and last escape of K projections searching M sources.

Near R = 0 the K M entries are independent to leading order: their couplings in <phi y'> and
<phi phi'> are of order R^4. Once an entry has escaped, its projection has a source and that
source has its projection, as W'W = 1 leaves no room for another: the row and the column leave
the race, in a time that is short against n^3 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
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
    def kinds(self) -> list[tuple[int, int]]:
        """Kinds of entries that can escape."""
        pairs = [(i, j) for i in range(len(self.rows)) for j in range(len(self.columns))]
        return [(i, j) for i, j in pairs if self.hazards[i][j] is not None]

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
    for kind in race.kinds:
        total += race.pairs(whole, kind) * _hazard(race, kind)(times)
    return dot(weights, np.exp(-total))


def _hazard(race: Race, kind: tuple[int, int]) -> Hazard:
    found = race.hazards[kind[0]][kind[1]]
    assert found is not None
    return found


def _without(state: State, kind: tuple[int, int]) -> State:
    (rows, columns), (i, j) = state, kind
    fewer_rows = tuple(count - (k == i) for k, count in enumerate(rows))
    return fewer_rows, tuple(count - (k == j) for k, count in enumerate(columns))


def _states(race: Race) -> dict[State, int]:
    """All states that occur, in the order in which they do."""
    found: dict[State, int] = {(race.rows, race.columns): 0}
    queue = list(found)
    while queue:
        check_deadline()
        state = queue.pop(0)
        for kind in race.kinds:
            after = _without(state, kind)
            if race.pairs(state, kind) and after not in found:
                found[after] = len(found)
                queue.append(after)
        if len(found) > MOST_STATES:
            raise HdicaError(
                f"escape: the last escape of {sum(race.rows)} projections and "
                f"{sum(race.columns)} sources of so many kinds has more than {MOST_STATES} states"
            )
    return found


def _generators(race: Race, states: dict[State, int]) -> tuple[Array, NDArray[np.bool_]]:
    """Rates for unit hazards, shape (kinds, states, states), and where nothing races any more."""
    rates = np.zeros((len(race.kinds), len(states), len(states)))
    over = np.zeros(len(states), dtype=bool)
    for state, here in states.items():
        for k, kind in enumerate(race.kinds):
            count = race.pairs(state, kind)
            if count:
                rates[k, here, states[_without(state, kind)]] += count
                rates[k, here, here] -= count
        over[here] = not np.any(rates[:, here])
    return rates, over


def last_escape(race: Race) -> float:
    """Mean time from which on no further entry can escape."""
    times, weights = _nodes(race)
    return dot(weights, _alive(race, times))


def last_survival(race: Race, times: Array) -> Array:
    """Probability that some entry can still escape after times, in any order."""
    at = np.asarray(times, dtype=float).ravel()
    grid, place = np.unique(np.concatenate([_nodes(race)[0], at]), return_inverse=True)
    return _alive(race, grid)[place[-at.size :]].reshape(np.shape(times)) if at.size else at


def _alive(race: Race, times: Array) -> Array:
    """Probability that some entry can still escape after increasing times.

    The states of the race form a Markov chain whose rates are the hazards; within an interval of
    time they are taken in proportion, exact for equal entries and of order two otherwise.
    """
    from scipy.linalg import expm

    states = _states(race)
    rates, over = _generators(race, states)
    steps = np.diff([_hazard(race, kind)(times) for kind in race.kinds], axis=1, prepend=0.0)
    share = np.zeros(len(states))
    share[0] = 1.0
    alive = np.zeros(times.size)
    with one_thread():
        for k in range(times.size):
            check_deadline()
            step = np.sum(rates * np.minimum(steps[:, k], _SURE)[:, None, None], axis=0)
            share = np.sum(share[:, None] * expm(step), axis=0)
            alive[k] = np.sum(share[~over])
    return alive
