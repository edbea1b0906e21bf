"""Derivatives in x of functions on cells, piece by piece between the kinks of a regularizer.

Across a kink the density, and the second derivative of what a sweep carries, have slopes or values
that jump. A product with a derivative of either is by parts, where a jump counts with the mean of
the other factor's two sides: the noise of a step is even, and sees both sides alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.limits.bands.path import Cells

Array = NDArray[np.float64]
Edge = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Runs of cells of one atom without a kink inside, and the pairs of runs that meet at one."""

    x: Array
    runs: tuple[slice, ...]
    joints: tuple[tuple[Edge, Edge, float], ...]
    weights: Array
    """Of each joint, the weight of its atom."""

    def slope(self, values: Array) -> Array:
        """The derivative in x along the first axis, within each run."""
        found = np.empty_like(values)
        for run in self.runs:
            found[run] = np.gradient(values[run], self.x[run], axis=0, edge_order=2)
        return found

    def sides(self, values: Array) -> tuple[Array, Array]:
        """Values at every joint by continuation from its left and its right."""
        ends = [
            [self._continued(values, run, edge, at) for run, edge in (left, right)]
            for left, right, at in self.joints
        ]
        shape = (len(ends), *values.shape[1:])
        both = np.array(ends).reshape(len(ends), 2, *values.shape[1:])
        return both[:, 0].reshape(shape), both[:, 1].reshape(shape)

    def _continued(self, values: Array, run: int, edge: int, at: float) -> Array:
        """A parabola through the three cells next to an end of a run, at the kink there."""
        cells = np.arange(self.runs[run].start, self.runs[run].stop)
        near = cells[:3] if edge == 0 else cells[-3:]
        x = self.x[near]
        total = np.zeros(values.shape[1:])
        for j, k in enumerate(near):
            others = np.delete(x, j)
            total = total + values[k] * np.prod((at - others) / (x[j] - others))
        return np.asarray(total)


def pieces_of(cells: Cells, kinks: tuple[float, ...]) -> Pieces:
    """The runs of cells between kinks, each of three cells at least."""
    runs: list[slice] = []
    joints: list[tuple[Edge, Edge, float]] = []
    weights: list[float] = []
    ends = np.flatnonzero(np.diff(cells.atom)) + 1
    starts = [0, *ends.tolist(), cells.atom.size]
    for first, last in pairwise(starts):
        at = [first]
        for kink in kinks:
            k = first + int(np.searchsorted(cells.low[first:last], kink - 1e-12))
            if at[-1] + 3 <= k <= last - 3:
                at.append(k)
                here = len(runs) + len(at) - 2
                joints.append(((here, -1), (here + 1, 0), kink))
                weights.append(float(cells.weights[first]))
        runs += [slice(i, j) for i, j in zip(at, [*at[1:], last], strict=True)]
    return Pieces(cells.x, tuple(runs), tuple(joints), np.array(weights))
