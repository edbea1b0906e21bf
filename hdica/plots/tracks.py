"""Steady states found one value of a parameter after another, joined to branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hdica.analysis.steady.branches import SAME

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Track:
    """A branch of equal stability and kind.

    Parameters
    ----------
    x, q
        Parameter, increasing, and size of the state.
    stable, kind
        Of all its states.
    before, after
        The values of the parameter next to its ends at which it is not there; infinite at an end of
        the range.
    """

    x: tuple[float, ...]
    q: tuple[float, ...]
    stable: bool
    kind: int
    before: float
    after: float


def tracks(x: Array, q: Array, stable: Array, kind: Array) -> list[Track]:
    """Branches of states of shape (values, states), NaN where there are fewer.

    From one value to the next states of equal stability and kind are joined so that the changes of
    size add up to the least. Images of each other under a change of sign are one.
    """
    order = np.argsort(x)
    labels = sorted({(bool(s > 0.5), int(k)) for s, k in zip(stable.flat, kind.flat, strict=True)
                     if np.isfinite(s) and np.isfinite(k)})  # fmt: skip
    out: list[Track] = []
    for label in labels:
        own = np.isfinite(q) & ((stable > 0.5) == label[0]) & (kind == label[1])
        rows = [_distinct(q[i][own[i]]) for i in order]
        out += _joined(x[order], rows, label)
    return out


def _distinct(sizes: Array) -> list[float]:
    """Different sizes, increasing."""
    out: list[float] = []
    for one in np.sort(sizes).tolist():
        if not out or one - out[-1] > SAME:
            out.append(one)
    return out


def _joined(x: Array, rows: Sequence[list[float]], label: tuple[bool, int]) -> list[Track]:
    """Tracks through the states of one label."""
    going: list[Track] = []
    over: list[Track] = []
    for i, row in enumerate(rows):
        here, before = float(x[i]), float(x[i - 1]) if i else -np.inf
        cost = np.abs(np.subtract.outer([t.q[-1] for t in going], row))
        pairs = dict(zip(*(k.tolist() for k in linear_sum_assignment(cost)), strict=True))
        goes_on = [
            replace(t, x=(*t.x, here), q=(*t.q, row[pairs[k]]))
            for k, t in enumerate(going)
            if k in pairs
        ]
        over += [replace(t, after=here) for k, t in enumerate(going) if k not in pairs]
        new = [q for k, q in enumerate(row) if k not in pairs.values()]
        going = goes_on + [Track((here,), (q,), *label, before, np.inf) for q in new]
    return over + going


def closed(found: Sequence[Track], value: Array, q: Array) -> list[Track]:
    """The same with each end inside the range put on the transition at which it is.

    That is the one between the last value with the branch and the next without it, of several the
    one of the nearest size.
    """
    return [_end(_begin(one, value, q), value, q) for one in found]


def _nearest(
    low: float, high: float, at: float, value: Array, q: Array
) -> tuple[float, float] | None:
    """The transition between two values whose size is the nearest."""
    inside = np.flatnonzero((value >= low) & (value <= high) & np.isfinite(q))
    if not inside.size:
        return None
    k = inside[np.abs(q[inside] - at).argmin()]
    return float(value[k]), float(q[k])


def _begin(one: Track, value: Array, q: Array) -> Track:
    if not np.isfinite(one.before):
        return one
    end = _nearest(one.before, one.x[0], one.q[0], value, q)
    return one if end is None else replace(one, x=(end[0], *one.x), q=(end[1], *one.q))


def _end(one: Track, value: Array, q: Array) -> Track:
    if not np.isfinite(one.after):
        return one
    end = _nearest(one.x[-1], one.after, one.q[-1], value, q)
    return one if end is None else replace(one, x=(*one.x, end[0]), q=(*one.q, end[1]))
