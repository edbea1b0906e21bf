"""Curves of steady states over a parameter: what is stable where."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
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
        v, found = self.value, []
        inner = (np.diff(self.branch) == 0) & self.stable[1:] & self.stable[:-1]
        low, high = np.minimum(v[1:], v[:-1]), np.maximum(v[1:], v[:-1])
        for k in np.flatnonzero(inner & (low <= value) & (value <= high)):
            width = v[k + 1] - v[k]
            share = (value - v[k]) / width if width else 0.0
            q = self.q[k] + share * (self.q[k + 1] - self.q[k])
            found.append((float(q), float(self.kind[k if share < 0.5 else k + 1])))
        return distinct(found)

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
