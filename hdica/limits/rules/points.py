"""Points and weights of averages over a sample: v_1 ... v_M, normals e_1 ... e_K and noise.

Given R and P the projections are u = R v + L e with L L' = P - R R', because a sample is normal
across the features. Averages of polynomials take Gauss rules, exact in every variable. Where an
update switches between branches, the rules of each variable are cut where the variables outside of
it make a switch change sign; of two switches also where both do, so that what is left to integrate
over the outer variables is smooth between its own cuts. Beyond four variables points are
quasi-random, with replicates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.laws import Law, Source, composite_rule, cut_rows, normal_part, part_edges
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import Nodes, gauss, gauss_legendre, gaussian_nodes

REACH, FARTHER = 8.0, 0.5
"""Where a standard normal variable ends, beyond which it has 1.3e-15, and how much farther it goes
at each level: what lies beyond is part of the difference between two levels."""
ORDERS = (6, 8, 12, 16, 24, 32, 48)
"""Nodes of a panel, from level to level."""
STEPS = (16, 24, 36, 48, 72, 108, 144)
"""Nodes of a normal variable that is not cut: of the trapezoidal rule."""
LEVELS = len(ORDERS)
QUASI = 2**13
"""Quasi-random points of one replicate."""
_SAME = 1e-12
_MOST_NODES = 32
"""Of a Gauss rule of a source, whose moments of a higher order are no numbers to rely on."""
_NEAR, _FAR, _FARTHEST = 6.0, 10.0, 14.0
_LITTLE_MASS, _NO_MASS = 1e-16, 1e-28


@dataclass(frozen=True, eq=False)
class Points:
    """Values of the variables, shape (variables, N), and weights of sum one, shape (N,)."""

    values: Array
    weights: Array


def tensor(rules: Sequence[Nodes]) -> Points:
    """The product of rules, one a variable."""
    values, weights = np.zeros((0, 1)), np.ones(1)
    for rule in rules:
        values = np.vstack(
            [np.repeat(values, rule.points.size, axis=1), np.tile(rule.points, values.shape[1])]
        )
        weights = np.repeat(weights, rule.points.size) * np.tile(rule.weights, weights.size)
    return Points(values, weights)


@lru_cache(maxsize=64)
def trapezoid(level: int) -> Nodes:
    """Equidistant nodes of the standard normal law, of which 0 is none."""
    count = STEPS[level]
    points = (REACH + FARTHER * level) * ((2 * np.arange(count) + 1) / count - 1)
    weights = np.exp(-points * points / 2)
    return Nodes(points, weights / weights.sum())


@lru_cache(maxsize=64)
def _normal(level: int) -> Law:
    ends = REACH + FARTHER * level
    return Law((replace(normal_part(0.0, 1.0, 1.0), first=(-ends, -3.0, 0.0, 3.0, ends)),))


@dataclass(frozen=True, eq=False)
class Variable:
    """A standardised variable of a sample; ``source`` is None for a normal one."""

    source: Source | None

    def law(self, level: int) -> Law:
        """Atoms and smooth parts, a normal one as far as a level takes it."""
        return _normal(level) if self.source is None else self.source.law

    def smooth(self, level: int) -> Nodes:
        """A rule for functions without switches in it."""
        if self.source is None:
            return trapezoid(level)
        # A Gauss rule of heavy tails converges slowly where a function is no polynomial.
        if all(abs(end) < _FARTHEST for end in self._edges):
            return self.exact(ORDERS[level])
        _, values, weights = self.cut(np.empty((1, 0)), level)
        return Nodes(values, weights)

    def exact(self, order: int) -> Nodes:
        """A rule for polynomials of degree below 2 ``order``, as far as they have averages."""
        if self.source is None:
            return gaussian_nodes(order)
        few = order <= _MOST_NODES
        if few and all(math.isfinite(self.source.moment(k)) for k in range(2 * order)):
            return gauss(self.source.nodes, order)
        return composite_rule(self.source.law, np.empty(0))

    def nodes(self, level: int, cuts: int) -> int:
        """About how many points a rule has that is cut so often."""
        law = self.law(level)
        panels = sum(len(part.first) - 1 + cuts for part in law.parts)
        return panels * ORDERS[level] + (0 if law.atoms is None else law.atoms.points.size)

    @cached_property
    def ends(self) -> tuple[float, ...]:
        """Where its density ends or has a corner."""
        return tuple(sorted({end for end in self._edges if abs(end) < _FARTHEST}))

    @property
    def _edges(self) -> list[float]:
        """Both ends of every smooth part of the law of a source."""
        parts = () if self.source is None else self.source.law.parts
        ends = ((part, t) for part in parts for t in (part.first[0], part.first[-1]))
        return [float(part.point(np.array([t]))[0]) for part, t in ends]

    def surrounds(self, places: Array) -> NDArray[np.bool_]:
        """Whether values as near to these as one likes are drawn, on either side."""
        if self.source is None:
            return np.isfinite(places)
        inside = np.zeros(places.shape, dtype=bool)
        for low, high in np.sort(np.reshape(self._edges, (-1, 2))):
            inside |= (low < places) & (places < high)
        return inside

    def far(self) -> tuple[Nodes, NDArray[np.bool_], NDArray[np.bool_]]:
        """A rule that goes far out, and which of its points are far out, and which farther."""
        if self.source is None:
            points = np.linspace(-_FARTHEST, _FARTHEST, 128)
            weights = np.exp(-points * points / 2)
            out = np.abs(points)
            return Nodes(points, weights / weights.sum()), (out > _NEAR) & (out <= _FAR), out > _FAR
        rule = composite_rule(self.source.law, np.empty(0))
        density = rule.weights if self.source.law.parts else np.ones(rule.points.size)
        return rule, (density < _LITTLE_MASS) & (density >= _NO_MASS), density < _NO_MASS

    def looks(self, count: int) -> Array:
        """Values at which a function of it is looked at for changes of sign."""
        if self.source is None:
            return np.linspace(-REACH, REACH, count)
        nodes = self.source.nodes
        points = np.sort(nodes.points[nodes.weights > 1e-16])
        return points[np.unique(np.linspace(0, points.size - 1, count).astype(int))]

    def quantile(self, share: Array) -> Array:
        """Values of which as many are below: uniform numbers in, the law out.

        Pieces of the law follow each other, so that it need not increase.
        """
        from scipy.special import ndtri

        if self.source is None:
            return np.asarray(ndtri(share))
        return _quantile(self.source.law, share)

    def cut(self, places: Array, level: int) -> tuple[NDArray[np.intp], Array, Array]:
        """A rule for each row of places at which it is cut, shape (rows, cuts).

        Returned are the row, the value and the weight of every node.
        """
        law, rows = self.law(level), places.shape[0]
        made = [] if law.atoms is None else [_atoms(law.atoms, rows)]
        for part in law.parts:
            edges = np.array(part.first) if self.source is None else part_edges(part)
            made.append(cut_rows(edges, part, places, ORDERS[level]))
        row, value, weight = (np.concatenate(column) for column in zip(*made, strict=True))
        order = np.argsort(row, kind="stable")
        return row[order], value[order], weight[order]


def _atoms(atoms: Nodes, rows: int) -> tuple[NDArray[np.intp], Array, Array]:
    each = atoms.points.size
    return (
        np.repeat(np.arange(rows), each),
        np.tile(atoms.points, rows),
        np.tile(atoms.weights, rows),
    )


def eliminated(planes: Array) -> Array:
    """Planes without the last variable where two of some planes meet, and those without it.

    A plane is a row of coefficients of the variables and then the constant.
    """
    last = planes[:, -2]
    has = np.abs(last) > _SAME * np.abs(planes[:, :-1]).max(axis=1, initial=_SAME)
    rest = [np.delete(row, -2) for row in planes[~has]]
    inside = planes[has] / last[has][:, None]
    for i in range(len(inside)):
        rest += [np.delete(inside[i] - other, -2) for other in inside[i + 1 :]]
    kept: list[Array] = []
    for row in rest:
        size = float(np.abs(row[:-1]).max(initial=0.0))
        if size <= _SAME:
            continue
        row = row / size
        row = row * np.sign(row[np.argmax(np.abs(row[:-1]))])
        if not any(np.abs(row - other).max() < _SAME for other in kept):
            kept.append(row)
    return np.array(kept).reshape(-1, planes.shape[1] - 1)


def best_order(planes: Array, discrete: Sequence[int] = ()) -> NDArray[np.intp]:
    """The order of the variables, the outermost first, in which switches are widest.

    An integral over a variable changes with those outside of it over as much as its coefficient in
    a plane is of theirs; a sum over those that are discrete would jump, so that they come first.
    """
    count = planes.shape[1] - 1
    smooth = [j for j in range(count) if j not in discrete]
    widths: dict[tuple[int, ...], float] = {}
    for free in itertools.permutations(smooth):
        order = (*discrete, *free)
        left, least = planes[:, [*order, count]], math.inf
        for _ in range(count - 1):
            sizes = np.abs(left[:, :-1])
            inner, outer = sizes[:, -1], sizes[:, :-1].max(axis=1, initial=0.0)
            both = (inner > _SAME) & (outer > _SAME)
            least = min(least, float(np.min(inner[both] / outer[both], initial=math.inf)))
            left = eliminated(left)
        widths[order] = least
    return np.array(max(widths, key=lambda order: (widths[order], order)), dtype=np.intp)


Curves = Callable[[Array, int], Array]
"""``curves(values, variable)``: further places at which to cut a variable, given those outside."""


def cut_points(
    variables: Sequence[Variable], planes: Array, level: int, curves: Curves | None = None
) -> Points:
    """Nested rules of variables, the outermost first, cut where planes of all of them lie."""
    count = len(variables)
    by_depth = [planes]
    for _ in range(count - 1):
        by_depth.append(eliminated(by_depth[-1]))
    values, weights = np.zeros((0, 1)), np.ones(1)
    for depth, variable in enumerate(variables):
        own = by_depth[count - 1 - depth]
        own = own[np.abs(own[:, -2]) > _SAME] if own.size else np.zeros((0, depth + 2))
        places = -(own[:, :-2] @ values + own[:, -1:]) / own[:, -2:-1]
        places = places.T
        if curves is not None:
            places = np.concatenate([places, curves(values, depth)], axis=1)
        row, value, weight = variable.cut(places, level)
        values = np.vstack([values[:, row], value])
        weights = weights[row] * weight
    return Points(values, weights)


_INVERSIONS = 60


def _quantile(law: Law, share: Array) -> Array:
    """Values of a law at shares of its mass, atoms first and then part by part."""
    value, left = np.empty(share.shape), share.copy()
    open_ = np.ones(share.shape, dtype=bool)
    atoms = [] if law.atoms is None else list(zip(law.atoms.points, law.atoms.weights, strict=True))
    for point, mass in atoms:
        here = open_ & (left < mass)
        value[here], left = point, left - mass
        open_ &= ~here
    for part in law.parts:
        edges = part_edges(part)
        x, w = gauss_legendre(ORDERS[-1])
        half = np.diff(edges)[:, None] / 2
        masses = np.sum(part.mass(edges[:-1, None] + half * (x + 1)) * half * w, axis=1)
        ends = np.concatenate([[0.0], np.cumsum(masses)])
        here = open_ & (left < ends[-1])
        panel = np.clip(np.searchsorted(ends, left[here], side="right") - 1, 0, masses.size - 1)
        low, high = edges[panel], edges[panel + 1]
        first, wanted = low.copy(), left[here] - ends[panel]
        for _ in range(_INVERSIONS):
            middle = (low + high) / 2
            width = (middle - first)[:, None] / 2
            below = np.sum(part.mass(first[:, None] + width * (x + 1)) * width * w, axis=1)
            low, high = (
                np.where(below < wanted, middle, low),
                np.where(below < wanted, high, middle),
            )
        value[here] = part.point((low + high) / 2)
        left = left - ends[-1]
        open_ &= ~here
    # What rounding leaves over belongs to the last value.
    value[open_] = value[~open_].max() if not open_.all() else 0.0
    return value


def quasi_random(variables: Sequence[Variable], replicate: int) -> Points:
    """Scrambled Sobol points of one replicate (Owen 1998), one coordinate a variable."""
    from scipy.stats import qmc

    sobol = qmc.Sobol(len(variables), scramble=True, rng=np.random.default_rng([QUASI, replicate]))
    shares = np.clip(sobol.random(QUASI).T, 1e-16, 1 - 1e-16)
    pairs = zip(variables, shares, strict=True)
    values = np.array([variable.quantile(share) for variable, share in pairs])
    return Points(values, np.full(QUASI, 1 / QUASI))
