"""Averages over a source c and a normal e of functions of c, e and u = c Q + e sqrt(1 - Q^2).

Two nested composite Gauss rules. The inner one, over e, is cut where u meets an edge of f, so
that it never integrates across a kink or a sharp step. The outer one, over c, is cut where the
law is not smooth and where c Q meets such an edge, and halves every panel on which a rule of
lower order, with other nodes in both directions, disagrees: what is left of that disagreement is
the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import Law, Part, cut
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gauss_legendre, resolving_edges, touching
from hdica.process.progress import check_deadline

_REACH = 6
"""Logarithm, base 2, of how far a nonlinearity is looked at."""
_GROWTH = 1e12


class Features(NamedTuple):
    """Abrupt changes of f.

    Between two of the edges f and, if it is bounded, its slope are polynomials of low degree; at
    the kinks f or its slope jumps. It is steep if f jumps or its slope is unbounded: then <f'> is
    taken as <e f>/s (Stein); explosive if it grows faster than any power that a normal law tames by
    itself.
    """

    edges: Array
    kinks: tuple[float, ...]
    steep: bool
    explosive: bool

    def met(self, width: float) -> Array:
        """Kinks, and edges beside which f is resolved on less than a width alone."""
        at_narrow = touching(np.diff(self.edges) < width)
        return self.edges[at_narrow | np.isin(self.edges, self.kinks)]


def _is_steep(f: Formula, kink: float) -> bool:
    """Whether f jumps at a kink, or its slope grows without bound towards it."""
    size = max(1.0, abs(kink))
    near = kink + size * np.array([-1e-9, 1e-9])
    below, above = f.value(near)
    if abs(above - below) > 1e-6 * (1 + abs(above)):
        return True
    far, close = (
        np.abs(f.derivative.value(kink + size * d * np.array([-1.0, 1.0]))) for d in (1e-5, 1e-10)
    )
    return bool(np.any(~(close <= 2 * far + 1e-3)))


@lru_cache(maxsize=128)
def outline(f: Formula) -> Features:
    """Kinks of a nonlinearity, and edges that do not resolve it between them."""
    # Of a function of Python the slope is not known, nor whether it jumps.
    steep = f.is_called or any(_is_steep(f, kink) for kink in f.kinks)
    powers = 2.0 ** np.arange(1, _REACH + 1)
    first = np.unique(np.concatenate([-powers, [0.0], powers, f.kinks]))
    with np.errstate(all="ignore"):
        far = np.abs(f.value(np.array([-40.0, 40.0])))
    explosive = bool(np.any(~(far < _GROWTH)))
    return Features(first[np.abs(first) <= powers[-1]], f.kinks, steep, explosive)


@lru_cache(maxsize=128)
def features(f: Formula) -> Features:
    """Kinks of a nonlinearity and edges between which it is smooth."""
    rough = outline(f)
    parts = [f] if rough.steep else [f, f.derivative]
    edges = resolving_edges(lambda x: np.stack([part.value(x) for part in parts]), rough.edges)
    return rough._replace(edges=edges)


Integrand = Callable[[Array, Array, Array], Sequence[Array]]
FINE, COARSE = 16, 12
TOLERANCE = 1e-12
"""Disagreement of a panel, relative to the mean size of the integrand, that is left alone."""
MOST_POINTS = 6_000_000
"""Points at one overlap beyond which panels are halved no more, unless the caller says fewer."""
_NORMAL = np.array([-14.0, -10.0, -8.0, -6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 14.0])
_EXPLOSIVE = np.array([-38.0, -32.0, -26.0, -20.0, *_NORMAL, 20.0, 26.0, 32.0, 38.0])
_WINDOWS = np.array([-8.0, -2.0, 0.0, 2.0, 8.0])
_NO_WIDTH, _ROUNDING, _FAR, _NOISE = 1e-13, 1e-15, 1e-28, 1e-11
_REMOTE, _FEW = 1e-30, 4
"""Density in t below which a panel matters to infinite averages alone, and its points."""
_GENERATIONS, _ROWS = 40, 4096
_NORM = 1 / math.sqrt(2 * math.pi)


def width_of(q: float) -> float:
    """Sqrt(1 - Q^2), without cancellation near 1."""
    return math.sqrt(max(0.0, (1.0 - q) * (1.0 + q)))


class Average(NamedTuple):
    """Averages of several functions; arrays of shape (functions,).

    ``error`` is what rules of other orders, with other nodes, disagree by, and rounding; ``size``
    the averages of the absolute values, to which rounding is relative; ``far`` the share of the
    size that the farthest tails carry: if it is not tiny, the average is infinite. ``points``
    counts those at which the integrand was evaluated.
    """

    value: Array
    error: Array
    size: Array
    far: Array
    points: int = 0

    @property
    def single(self) -> tuple[float, float]:
        """The average of the first function, and its error."""
        return float(self.value[0]), float(self.error[0])


class _Setting(NamedTuple):
    """What is averaged, at which overlap."""

    integrand: Integrand
    features: Features
    q: float
    s: float
    most: int
    blurred: bool = False

    def _edges(self, c: Array) -> Array:
        """Edges in e for every row, sorted, shape (rows, edges)."""
        base = _EXPLOSIVE if self.features.explosive else _NORMAL
        rows = np.broadcast_to(base, (c.size, base.size))
        if self.s == 0.0:
            return rows
        middle, reach = c * self.q, base[-1] * self.s
        edges = self.features.met(2 * self.s)
        met = edges[(edges > middle.min() - reach) & (edges < middle.max() + reach)]
        where = np.clip((met - middle[:, None]) / self.s, base[0], base[-1])
        return np.sort(np.concatenate([rows, where], axis=1), axis=1)

    def inner(self, c: Array, order: int) -> tuple[Array, Array, int]:
        """Sums over e, of the functions and of their sizes, shape (functions, rows), and points."""
        check_deadline()
        edges = self._edges(c)
        row, column = np.nonzero(np.diff(edges, axis=1) > _NO_WIDTH)
        low, high = edges[row, column], edges[row, column + 1]
        x, w = gauss_legendre(order)
        half = (high - low)[:, None] / 2
        e = low[:, None] + half * (x + 1)
        weights = _NORM * half * w * np.exp(-e * e / 2)
        source = c[row][:, None]
        # At |Q| = 1 an atom on a jump of f is still seen from both sides.
        s = np.maximum(1e-13 * np.abs(source), 1e-200) if self.blurred else self.s
        parts = self.integrand(source, e, source * self.q + e * s)
        first = np.flatnonzero(np.append(True, np.diff(row) > 0))

        def by_row(functions: Iterable[Array]) -> Array:
            sums = (np.einsum("ij,ij->i", function, weights) for function in functions)
            return np.array([np.add.reduceat(v, first) for v in sums])

        return by_row(parts), by_row(map(np.abs, parts)), e.size

    def rows(self, c: Array, order: int) -> tuple[Array, Array, int]:
        """The same, some rows at a time."""
        blocks = [self.inner(c[i : i + _ROWS], order) for i in range(0, c.size, _ROWS)]
        sums, sizes, points = zip(*blocks, strict=True)
        return np.concatenate(sums, axis=1), np.concatenate(sizes, axis=1), sum(points)

    def panels(self, part: Part, low: Array, high: Array, order: int) -> tuple[Array, ...]:
        """Sums over panels of t and over e: values, sizes (functions, panels), masses, points."""
        x, w = gauss_legendre(order)
        half = (high - low)[:, None] / 2
        t = low[:, None] + half * (x + 1)
        mass = part.mass(t) * half * w
        sums, sizes, points = self.rows(part.point(t).ravel(), order)
        value, size = (np.sum(v.reshape(-1, *t.shape) * mass, axis=2) for v in (sums, sizes))
        return value, size, np.sum(mass, axis=1), np.array(points)


def _sums(value: Array, error: Array, size: Array, mass: Array) -> Array:
    """Values, errors, sizes and sizes far out, summed over panels, shape (4, functions)."""
    far = np.where(mass < _FAR, size, 0.0)
    return np.stack([np.sum(part, axis=1) for part in (value, error, size, far)])


def _over_part(setting: _Setting, part: Part, cuts: Array, total: Array) -> tuple[Array, int]:
    """The sums with those over one part, panels halved until two rules agree, and its points."""
    edges = cut(part, cuts)
    low, high, spent = edges[:-1], edges[1:], 0
    remote = part.mass(low) + part.mass((low + high) / 2) + part.mass(high) < _REMOTE
    if remote.any():
        value, size, mass, _ = setting.panels(part, low[remote], high[remote], _FEW)
        total = total + _sums(value, size, size, mass)
    low, high = low[~remote], high[~remote]
    before = np.full(low.size, np.inf)
    for generation in range(_GENERATIONS):
        value, size, mass, points = setting.panels(part, low, high, FINE)
        other, _, _, more = setting.panels(part, low, high, COARSE)
        spent += int(points + more)
        error = np.abs(value - other)
        whole = total[2] + np.sum(size, axis=1)
        share = np.where(whole[:, None] > 0, error / whole[:, None], 0.0).max(axis=0)
        rough = share > TOLERANCE
        # What halving does not make smaller is rounding; what is far out decides nothing.
        rough &= (share > _NOISE) | (share < before / 4)
        if generation == _GENERATIONS - 1 or spent > setting.most or not np.isfinite(share).all():
            rough[:] = False
        total = total + _sums(*(v[..., ~rough] for v in (value, error, size, mass)))
        if not rough.any():
            break
        middle = (low[rough] + high[rough]) / 2
        low, high = np.concatenate([low[rough], middle]), np.concatenate([middle, high[rough]])
        before = np.tile(share[rough], 2)
    return total, spent


@np.errstate(all="ignore")  # what overflows shows as values that are no numbers
def double_average(
    integrand: Integrand, features: Features, law: Law, q: float, most: int = MOST_POINTS
) -> Average:
    """< h(c, e, u) > for some functions h at one overlap, each with its error.

    ``integrand(c, e, u)`` are the values of every h, vectorised; ``features`` say where they change
    abruptly with u, ``law`` is that of c. Panels are halved no more beyond ``most`` points, of both
    rules.
    """
    s, total, points = width_of(q), np.zeros((4, 1)), 0
    setting = _Setting(integrand, features, q, s, most)
    if law.atoms is not None:
        c, mass = law.atoms
        at_atoms = setting._replace(blurred=s == 0.0)
        value, size, _ = at_atoms.rows(c, FINE)
        other, _, _ = at_atoms.rows(c, COARSE)
        total = total + _sums(value * mass, np.abs(value - other) * mass, size * mass, mass)
    # Values of c at which c Q meets what f does abruptly, no finer than e blurs it.
    cuts = np.empty(0)
    if q != 0.0:
        cells = np.floor(features.edges / max(s, 1e-12))
        thinned = features.edges[np.unique(cells, return_index=True)[1]]
        cuts = np.concatenate([thinned, *(kink + s * _WINDOWS for kink in features.kinks)]) / q
    for part in law.parts:
        total, spent = _over_part(setting, part, cuts, total)
        points += spent
    value, error, size, far = total
    far = np.where(size > 0, far / size, 0.0)
    return Average(value, error + _ROUNDING * size, size, far, points)
