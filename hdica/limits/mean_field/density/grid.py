"""Cells of the Fokker-Planck solver, and the law of the estimate on them.

Cells are uniform between kinks, with a face at every kink. Where things lie in the solver's arrays
stands here and not beside the compiled lines, so that who only reads a result does not load them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hdica.ingredients.plain import Array, Function, Indices
from hdica.ingredients.quadrature import dot
from hdica.limits.numerics.solvers import romberg
from hdica.process.progress import check_deadline

X, X_PHI, GAP, GAP_PHI, GAP_MIDDLE, FROM_LEFT, FROM_RIGHT = range(7)
"""Rows of the table of a mesh."""
MASS, RATE, ONE, SOURCE, TWO, RIGHT, LEFT, SHARE, SMOOTH = range(9)
"""Rows of the flat arrays over cells of a state."""
T, DT, Q, OTHER, RATED, SPENT, MARK = range(7)
"""Entries of the clock of a state."""
PAST = 5
"""Earlier solutions of a stage through which its next one is foretold."""
FIRST = 6
"""Column of the first functional in a row of measures."""
DONE, WINDOWS, HALT, BROKE, ROOM = range(5)
"""Why a walk returned: all marks passed; other windows; a mark to halt at; budget; no room."""
GAMMA = 1 - 1 / math.sqrt(2)
"""The two-stage diagonally implicit method of order 2 that is L-stable (Alexander 1977)."""
PUSH = (1 - 2 * GAMMA) / GAMMA
"""p0 + (1 - gamma) dt A s1 = s1 + PUSH gamma dt A s1, because s1 = p0 + gamma dt A s1."""
_LEAST = 4
"""Cells at least between two neighbouring kinks."""


class Lattice(NamedTuple):
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
        return inner + self.stretch * np.sinh(outside * self.spacing / self.stretch)

    def number(self, x: Array) -> Array:
        """Inverse of :meth:`position`."""
        inner = np.interp(x, self.kinks, self.numbers)
        outside = np.minimum(x - self.kinks[0], 0) + np.maximum(x - self.kinks[-1], 0)
        return inner + self.stretch / self.spacing * np.arcsinh(outside / self.stretch)


def make_lattice(kinks: tuple[float, ...], spacing: float, stretch: float) -> Lattice:
    """Cells of about ``spacing`` within ``stretch``, with a face at every kink."""
    points = np.array(kinks or (0.0,))
    counts = np.maximum(_LEAST, np.ceil(np.diff(points) / spacing - 1e-9))
    return Lattice(spacing, stretch, points, np.append(0.0, np.cumsum(counts)))


class Windows(NamedTuple):
    """The cells of the coarsest level that each atom uses: first and last face, shape (atoms,)."""

    low: Indices
    high: Indices

    @property
    def cells(self) -> int:
        """Cells of all atoms together."""
        return int(np.sum(self.high - self.low))


class Mesh(NamedTuple):
    """One level of refinement of the lattice on the windows of all atoms.

    Each cell is cut into ``refine`` parts, and ``first`` is the number (of a part) of face 0. The
    faces hold the union of all windows; ``x`` and ``dx`` are centres (half-way in number) and
    widths. ``table`` is what the compiled lines need, shape (7, cells + 1): x and x phi(x) at the
    centres; for each face the distance of the centres on its two sides (gap), this times the mean
    of phi and times the midpoint between them (zero-flux ends repeat their neighbour), and the
    inverse of gap times the width of the cell to its left and to its right. ``offsets`` and
    ``lows`` say where each atom lies in flat arrays (shape (atoms + 1,)) and its first cell.
    """

    lattice: Lattice
    refine: int
    first: int
    faces: Array
    x: Array
    dx: Array
    table: Array
    offsets: Indices
    lows: Indices

    def on(self, windows: Windows) -> Mesh | None:
        """The same cells for other windows; None if they do not hold them all."""
        lows = windows.low * self.refine - self.first
        sizes = (windows.high - windows.low) * self.refine
        if lows.min() < 0 or (lows + sizes).max() > self.x.size:
            return None
        return self._replace(offsets=np.append(0, np.cumsum(sizes)), lows=lows)

    def slices(self) -> list[tuple[slice, slice]]:
        """For each atom, where it lies in flat arrays and in arrays over cells."""
        rows = zip(*(v.tolist() for v in (self.offsets, self.offsets[1:], self.lows)), strict=False)
        return [(slice(o, end), slice(low, low + end - o)) for o, end, low in rows]

    def flat(self, xi: Array, weights: Array) -> tuple[Array, Array, Array]:
        """xi, x and weight of every cell of every atom, in the order of flat arrays."""
        sizes = np.diff(self.offsets)
        x = np.concatenate([self.x[cells] for _, cells in self.slices()])
        return np.repeat(xi, sizes), x, np.repeat(weights, sizes)


_GAUSS_4, _WEIGHTS_4 = np.polynomial.legendre.leggauss(4)


def _mean_between(phi: Function, low: Array, high: Array) -> Array:
    """Integral of phi over [low, high], free of kinks inside."""
    check_deadline()
    half = (high - low) / 2
    points = (low + half)[:, None] + half[:, None] * _GAUSS_4
    return np.sum(phi(points) * _WEIGHTS_4, axis=1) * half


def make_mesh(
    lattice: Lattice, windows: Windows, refine: int, phi: Function, spare: int = 0
) -> Mesh:
    """Cells of the windows, each coarse cell split into ``refine``.

    ``spare`` coarse cells more on either side let the windows grow on the same mesh.
    """
    low, high = int(windows.low.min()) - spare, int(windows.high.max()) + spare
    points = lattice.position(np.arange(2 * low * refine, 2 * high * refine + 1) / (2 * refine))
    faces, x = points[::2], points[1::2].copy()
    dx = np.diff(faces)
    inner, between = faces[1:-1], np.diff(x)
    of_phi = _mean_between(phi, x[:-1], inner) + _mean_between(phi, inner, x[1:])
    inside = between, (x[1:] + x[:-1]) / 2, of_phi / between
    gap, middle, mean = (np.pad(values, 1, mode="edge") for values in inside)
    check_deadline()
    table = np.zeros((7, x.size + 1))
    table[X, :-1], table[X_PHI, :-1] = x, x * phi(x)
    table[GAP], table[GAP_PHI], table[GAP_MIDDLE] = gap, gap * mean, gap * middle
    table[FROM_LEFT, 1:], table[FROM_RIGHT, :-1] = 1 / (gap[1:] * dx), 1 / (gap[:-1] * dx)
    check_deadline()
    offsets = np.append(0, np.cumsum((windows.high - windows.low) * refine))
    places = offsets, (windows.low - low) * refine
    return Mesh(lattice, refine, low * refine, faces, x, dx, table, *places)


def carried(values: Array, old: Windows, new: Windows, refine: int) -> Array:
    """Cell values on new windows: zero where they grew, folded into the end where they shrank."""

    def cut(part: Array, cells: int) -> Array:
        if cells > 0:
            part, lost = part[cells:].copy(), np.sum(part[:cells])
            part[0] += lost
        return part

    starts = np.cumsum(old.high - old.low)[:-1] * refine
    parts = []
    for a, part in enumerate(np.split(values, starts)):
        low, high = int(new.low[a] - old.low[a]) * refine, int(old.high[a] - new.high[a]) * refine
        part = cut(cut(part, low)[::-1], high)[::-1]
        parts.append(np.concatenate([np.zeros(max(0, -low)), part, np.zeros(max(0, -high))]))
    return np.concatenate(parts)


_GAUSS_3, _WEIGHTS_3 = np.polynomial.legendre.leggauss(3)
_TAIL = 1e-12


def interpolated(values: Array, u: Array) -> Array:
    """Values at 0, 1, 2, ... interpolated at ``u`` by polynomials through the six nearest."""
    from hdica.limits.numerics.compiled import interpolate

    result = np.empty(u.shape)
    interpolate(np.ascontiguousarray(values), np.ravel(u), np.ravel(result))
    return result


@dataclass(frozen=True, eq=False)
class Curve:
    """A positive density on cells, smooth between kinks.

    ``log`` is its logarithm at the centres, shape (cells,); ``breaks`` are the numbers of the faces
    at kinks strictly inside, increasing; ``number(x)`` says how many cells lie below x, smooth
    between kinks, centres being half-way.
    """

    faces: Array
    log: Array
    breaks: tuple[int, ...]
    number: Function

    def mirrored(self) -> Curve:
        """The density of -x."""
        cells = self.log.size
        breaks = tuple(cells - k for k in self.breaks[::-1])
        return Curve(-self.faces[::-1], self.log[::-1], breaks, lambda x: cells - self.number(-x))

    def log_at(self, x: Array) -> Array:
        """Logarithm of the density at points inside the faces, from one side of each kink."""
        edges = np.array([0, *self.breaks, self.log.size])
        which = np.searchsorted(self.faces[edges[1:-1]], x, side="right")
        result = np.empty(x.shape)
        for piece in range(len(edges) - 1):
            chosen = which == piece
            if not np.any(chosen):
                continue
            low, high = edges[piece], edges[piece + 1]
            u = self.number(x[chosen]) - low - 0.5
            result[chosen] = interpolated(self.log[low:high], u)
        return result

    @cached_property
    def total(self) -> float:
        """Integral of the exponential of :meth:`log_at`: one up to the solver's error."""
        return float(np.sum(self.masses))

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """Gauss points of the cells and weights of dx, shape (3 cells,)."""
        half = np.diff(self.faces)[:, None] / 2
        x = self.faces[:-1, None] + half * (1 + _GAUSS_3)
        return x.ravel(), (half * _WEIGHTS_3).ravel()

    @cached_property
    def masses(self) -> Array:
        """Integral over each cell."""
        x, weights = self.points
        return (np.exp(self.log_at(x)) * weights).reshape(-1, 3).sum(axis=1)

    def at(self, x: Array) -> Array:
        """The density, zero outside the faces."""
        inside = (x >= self.faces[0]) & (x <= self.faces[-1])
        result = np.zeros(x.shape)
        result[inside] = np.exp(self.log_at(x[inside])) / self.total
        return result

    def cdf(self, x: Array) -> Array:
        """The distribution function."""
        below = np.append(0.0, np.cumsum(self.masses)) / self.total
        inner = np.clip(x, self.faces[0], self.faces[-1])
        cell = np.clip(np.searchsorted(self.faces, inner, side="right") - 1, 0, self.log.size - 1)
        half = (inner - self.faces[cell]) / 2
        points = self.faces[cell][:, None] + half[:, None] * (1 + _GAUSS_3)
        part = np.sum(self.at(points) * _WEIGHTS_3, axis=1) * half
        return np.minimum(below[cell] + part, below[cell + 1])


@dataclass(frozen=True, eq=False)
class Density:
    """P(x | xi) at the nodes of the prior, a curve for each; None for a node of no weight.

    There are no curves if the time was not reached.
    """

    xi: Array
    weights: Array
    curves: tuple[Curve | None, ...]

    def _rows(self, x: Array, value: Callable[[Curve, Array], Array]) -> Array:
        x = np.array(x, dtype=float, ndmin=1)
        if not self.curves:
            return np.full((self.xi.size, x.size), np.nan)
        return np.array([np.zeros(x.size) if c is None else value(c, x) for c in self.curves])

    def at(self, x: Array) -> Array:
        """Density at points ``x``, shape (nodes, len(x)); NaN if the time was not reached."""
        return self._rows(x, Curve.at)

    def cdf(self, edges: Array) -> Array:
        """Distribution function at ``edges``, shape (nodes, len(edges)): monotone, 0 to 1."""
        return self._rows(edges, Curve.cdf)

    def support(self) -> tuple[float, float]:
        """Points beyond which an entry of x lies with a probability below 1e-12."""
        lows, highs = [], []
        for curve, weight in zip(self.curves, self.weights.tolist(), strict=False):
            if curve is None:
                continue
            small = _TAIL / 2 / weight
            below = np.cumsum(curve.masses) / curve.total
            above = np.cumsum(curve.masses[::-1]) / curve.total
            if small < 1:
                lows.append(curve.faces[np.searchsorted(below, small)])
                highs.append(curve.faces[-1 - np.searchsorted(above, small)])
        return (float(min(lows)), float(max(highs))) if lows else (np.nan, np.nan)

    def mean(self, h: Callable[[Array, Array], Array]) -> float:
        """E[h(xi, x)]; smooth between kinks of phi, h is integrated to the density's accuracy."""
        if not self.curves:
            return float("nan")
        total = 0.0
        for curve, xi, weight in zip(self.curves, self.xi, self.weights.tolist(), strict=True):
            if curve is not None:
                x, dx = curve.points
                total += weight * dot(curve.at(x) * h(xi, x), dx)
        return total


def extrapolated(curves: list[Curve], x: Array) -> Curve:
    """Romberg extrapolation of the logarithm from levels of halved cells, coarsest first.

    The logarithm keeps the density positive. Where two levels disagree by more than a factor,
    in tails far below any mass that counts, the finest stands. ``x`` are its centres.
    """
    fine = curves[-1]
    logs = np.array([c.log_at(x) for c in curves[:-1]] + [fine.log])
    best, _ = romberg(logs)
    spread = np.abs(logs[-1] - logs[-2])
    return replace(fine, log=np.where(spread < 0.1, best, fine.log))
