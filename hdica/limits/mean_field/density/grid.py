"""Cells of the Fokker-Planck solver: uniform between kinks, a face at every kink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.density.layout import (
    FROM_LEFT,
    FROM_RIGHT,
    GAP,
    GAP_MIDDLE,
    GAP_PHI,
    X_PHI,
    X,
)
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
_LEAST = 4
"""Cells at least between two neighbouring kinks."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Faces x(j) of cells for every integer j, numbered from the first kink.

    Between kinks the cells are uniform, of width ``spacing`` at most. Outside they follow x = k + a
    sinh(j spacing/a) with a = ``stretch``: even near the kink, and a fixed share of the distance
    from it far away, where a density that condenses has tails as long as they are thin. ``numbers``
    are those of the faces at the increasing kinks; without a kink a face lies at 0.
    """

    spacing: float
    stretch: float
    kinks: Array
    numbers: Array

    def position(self, j: Array) -> Array:
        """The point with (possibly fractional) number ``j``."""
        inner = np.interp(j, self.numbers, self.kinks)
        outside = np.minimum(j - self.numbers[0], 0) + np.maximum(j - self.numbers[-1], 0)
        return np.asarray(inner + self.stretch * np.sinh(outside * self.spacing / self.stretch))

    def number(self, x: Array) -> Array:
        """Inverse of :meth:`position`."""
        inner = np.interp(x, self.kinks, self.numbers)
        outside = np.minimum(x - self.kinks[0], 0) + np.maximum(x - self.kinks[-1], 0)
        return np.asarray(inner + self.stretch / self.spacing * np.arcsinh(outside / self.stretch))


def make_lattice(kinks: tuple[float, ...], spacing: float, stretch: float) -> Lattice:
    """Cells of about ``spacing`` within ``stretch``, with a face at every kink."""
    points = np.array(kinks or (0.0,))
    counts = np.maximum(_LEAST, np.ceil(np.diff(points) / spacing - 1e-9))
    return Lattice(spacing, stretch, points, np.concatenate([[0.0], np.cumsum(counts)]))


@dataclass(frozen=True, eq=False)
class Windows:
    """The cells of the coarsest level that each atom uses: first and last face, shape (atoms,)."""

    low: Indices
    high: Indices

    @property
    def cells(self) -> int:
        """Cells of all atoms together."""
        return int(np.sum(self.high - self.low))


@dataclass(frozen=True, eq=False)
class Mesh:
    """One level of refinement of the lattice on the windows of all atoms.

    Each cell is cut into ``refine`` parts, and ``first`` is the number (of a part) of face 0. The
    faces hold the union of all windows; ``x`` and ``dx`` are centres (half-way in number) and
    widths. For each face, ``gap``, ``middle`` and ``phi`` are distance, midpoint and mean of phi
    between the centres on its two sides (zero-flux ends repeat their neighbour).

    ``table`` is what the compiled lines need, shape (7, cells + 1): x and x phi(x) at the centres,
    and for each face gap, gap times phi and times middle, and the inverse of gap times the width of
    the cell to its left and to its right. ``offsets`` and ``lows`` say where each atom lies in flat
    arrays (shape (atoms + 1,)) and its first cell.
    """

    lattice: Lattice
    refine: int
    first: int
    faces: Array
    x: Array
    dx: Array
    gap: Array
    middle: Array
    phi: Array
    table: Array
    offsets: Indices
    lows: Indices

    def on(self, windows: Windows) -> Mesh | None:
        """The same cells for other windows; None if they do not hold them all."""
        lows = windows.low * self.refine - self.first
        sizes = (windows.high - windows.low) * self.refine
        if lows.min() < 0 or (lows + sizes).max() > self.x.size:
            return None
        return replace(self, offsets=np.concatenate([[0], np.cumsum(sizes)]), lows=lows)

    def slices(self) -> list[tuple[slice, slice]]:
        """For each atom, where it lies in flat arrays and in arrays over cells."""
        sizes = np.diff(self.offsets)
        return [
            (slice(o, o + n), slice(low, low + n))
            for o, n, low in zip(
                self.offsets[:-1].tolist(), sizes.tolist(), self.lows.tolist(), strict=True
            )
        ]

    def flat(self, xi: Array, weights: Array) -> tuple[Array, Array, Array]:
        """xi, x and weight of every cell of every atom, in the order of flat arrays."""
        sizes = np.diff(self.offsets)
        x = np.concatenate([self.x[cells] for _, cells in self.slices()])
        return np.repeat(xi, sizes), x, np.repeat(weights, sizes)


_GAUSS, _HALF = np.polynomial.legendre.leggauss(4)


def _mean_between(phi: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Integral of phi over [low, high], free of kinks inside."""
    check_deadline()
    half = (high - low) / 2
    points = (low + half)[:, None] + half[:, None] * _GAUSS
    return np.asarray(np.sum(phi(points) * _HALF, axis=1) * half)


def _table(x: Array, at_x: Array, dx: Array, gap: Array, middle: Array, phi: Array) -> Array:
    table = np.zeros((7, x.size + 1))
    table[X, :-1], table[X_PHI, :-1] = x, x * at_x
    table[GAP], table[GAP_PHI], table[GAP_MIDDLE] = gap, gap * phi, gap * middle
    table[FROM_LEFT, 1:], table[FROM_RIGHT, :-1] = 1 / (gap[1:] * dx), 1 / (gap[:-1] * dx)
    return table


def make_mesh(
    lattice: Lattice, windows: Windows, refine: int, phi: Callable[[Array], Array], spare: int = 0
) -> Mesh:
    """Cells of the windows, each coarse cell split into ``refine``.

    ``spare`` coarse cells more on either side let the windows grow on the same mesh.
    """
    low, high = int(windows.low.min()) - spare, int(windows.high.max()) + spare
    points = lattice.position(np.arange(2 * low * refine, 2 * high * refine + 1) / (2 * refine))
    faces, x = points[::2], points[1::2].copy()
    dx = np.diff(faces)
    gap, middle, mean = np.empty(faces.size), np.empty(faces.size), np.empty(faces.size)
    inner = slice(1, -1)
    gap[inner], middle[inner] = np.diff(x), (x[1:] + x[:-1]) / 2
    left = _mean_between(phi, x[:-1], faces[inner])
    mean[inner] = (left + _mean_between(phi, faces[inner], x[1:])) / gap[inner]
    for values in (gap, middle, mean):
        values[0], values[-1] = values[1], values[-2]
    check_deadline()
    table = _table(x, phi(x), dx, gap, middle, mean)
    check_deadline()
    offsets = np.concatenate([[0], np.cumsum((windows.high - windows.low) * refine)])
    lows = (windows.low - low) * refine
    first = low * refine
    return Mesh(lattice, refine, first, faces, x, dx, gap, middle, mean, table, offsets, lows)


def carried(values: Array, old: Windows, new: Windows, refine: int) -> Array:
    """Cell values on new windows: zero where they grew, folded into the end where they shrank."""
    starts = np.cumsum(old.high - old.low)[:-1] * refine
    parts = []
    for a, part in enumerate(np.split(values, starts)):
        low, high = int(new.low[a] - old.low[a]) * refine, int(old.high[a] - new.high[a]) * refine
        part = _cut(part, max(0, low))
        part = _cut(part[::-1], max(0, high))[::-1]
        pad = np.zeros(max(0, -low)), np.zeros(max(0, -high))
        parts.append(np.concatenate([pad[0], part, pad[1]]))
    return np.concatenate(parts)


def _cut(values: Array, cells: int) -> Array:
    """Without its first cells, their sum added to the first that stays."""
    if cells == 0:
        return values
    rest = values[cells:].copy()
    rest[0] += np.sum(values[:cells])
    return rest
