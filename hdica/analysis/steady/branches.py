"""Curves of steady states over a parameter: what is stable where."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hdica.verdict.cells import Array

Pairs = list[tuple[float, float]]

SAME = 1e-6
"""States whose |Q| differ by less are one: Q and -Q, or two branches that touch."""
SNAP = 1e-3
"""A transition this close to the end of a stable piece, relatively, is that end."""


class Branches:
    """Points of steady states, ordered along each branch, from arrays of shape (points,).

    ``value`` is the parameter, ``q`` is Q, of which the size is kept, ``branch`` the index of the
    branch; ``kind`` is 0 informative, 1 uninformative, 2 condensed. What is NaN is left out.
    """

    def __init__(self, value: Array, q: Array, stable: Array, kind: Array, branch: Array) -> None:
        keep = np.isfinite(value) & np.isfinite(q)
        self.value, self.q, self.branch = value[keep], np.abs(q[keep]), branch[keep]
        self.stable, self.kind = stable[keep] > 0.5, np.nan_to_num(kind[keep])

    def pieces(self) -> list[tuple[NDArray[np.intp], bool, int]]:
        """Runs of points with equal stability and kind: positions, stability, kind.

        A run ends with the first point of the next run of its branch, so that lines through the
        runs leave no gap.
        """
        out = []
        same = (np.diff(self.branch) == 0) & (np.diff(self.kind) == 0)
        cuts = np.flatnonzero(~(same & (self.stable[1:] == self.stable[:-1]))) + 1
        for run in np.split(np.arange(len(self.value)), cuts):
            if not len(run):
                continue
            after = run[-1] + 1
            goes_on = after < len(self.value) and self.branch[after] == self.branch[run[-1]]
            line = np.append(run, after) if goes_on else run
            out.append((line, bool(self.stable[run[0]]), int(self.kind[run[0]])))
        return out

    def stable_at(self, value: float) -> Pairs:
        """|Q| and kind of every stable state at one value of the parameter, |Q| increasing.

        Linear between points of a branch that are both stable.
        """
        v, states = self.value, list[tuple[float, float]]()
        inner = (np.diff(self.branch) == 0) & self.stable[1:] & self.stable[:-1]
        low, high = np.minimum(v[1:], v[:-1]), np.maximum(v[1:], v[:-1])
        for k in np.flatnonzero(inner & (low <= value) & (value <= high)):
            width = v[k + 1] - v[k]
            share = (value - v[k]) / width if width else 0.0
            q = self.q[k] + share * (self.q[k + 1] - self.q[k])
            states.append((float(q), float(self.kind[k if share < 0.5 else k + 1])))
        return distinct(states)

    def bistable(self, transitions: Array) -> Pairs:
        """Ranges of the parameter with several stable states; ends are put on near transitions."""
        lines = [self.value[line] for line, stable, _ in self.pieces() if stable]
        ends = np.unique([e for at in lines for e in (at.min(), at.max())])
        out: Pairs = []
        for low, high in itertools.pairwise(ends.tolist()):
            if len(self.stable_at((low + high) / 2)) < 2:
                continue
            if out and out[-1][1] == low:
                out[-1] = (out[-1][0], high)
            else:
                out.append((low, high))
        return [(_snapped(low, transitions), _snapped(high, transitions)) for low, high in out]


def distinct(states: Pairs) -> Pairs:
    """States of different |Q|, increasing."""
    out: Pairs = []
    for q, kind in sorted(states):
        if not out or q - out[-1][0] > SAME:
            out.append((q, kind))
    return out


def _snapped(end: float, transitions: Array) -> float:
    """The transition next to an end, or the end itself."""
    near = transitions[np.abs(transitions - end) <= SNAP * abs(end)]
    return float(near[np.abs(near - end).argmin()]) if len(near) else end


@dataclass(frozen=True)
class Track:
    """A branch of equal stability and kind, with its size ``q`` over increasing ``x``.

    ``before`` and ``after`` are the values of x next to its ends at which it is not there, infinite
    at an end of the range.
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
        sizes = [distinct([(size, 0.0) for size in q[i][own[i]].tolist()]) for i in order]
        rows = [[size for size, _ in one] for one in sizes]
        out += _joined(x[order], rows, label)
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


def closed(every: Sequence[Track], value: Array, q: Array) -> list[Track]:
    """The same with each end inside the range put on its transition, that of the nearest size."""
    out = []
    for one in every:
        begin = _nearest(one.before, one.x[0], one.q[0], value, q)
        end = _nearest(one.x[-1], one.after, one.q[-1], value, q)
        points = [*begin, *zip(one.x, one.q, strict=True), *end]
        x, sizes = zip(*points, strict=True)
        out.append(replace(one, x=x, q=sizes))
    return out


def _nearest(low: float, high: float, at: float, value: Array, q: Array) -> Pairs:
    """The transition between two finite values whose size is the nearest; none without any."""
    inside = np.flatnonzero((value >= low) & (value <= high) & np.isfinite(q))
    if not inside.size or not np.isfinite([low, high]).all():
        return []
    k = inside[np.abs(q[inside] - at).argmin()]
    return [(float(value[k]), float(q[k]))]
