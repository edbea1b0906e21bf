"""Averages of an update over its sample, given R and P, by the rule that suits it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import sympy as sp

from hdica.ingredients import switches
from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import Nodes, dot, gauss, root_of
from hdica.ingredients.update import Update, degree_in, values_of, writer
from hdica.limits.rules.closed import Closed, Series, closed_of, series_of
from hdica.limits.rules.lines import LOOKS, Line, sign_changes
from hdica.limits.rules.points import (
    QUASI,
    Points,
    Variable,
    best_order,
    cut_points,
    quasi_random,
    tensor,
)

NESTED = 4
"""Variables up to which rules are nested; beyond, points are quasi-random."""
MOST_POINTS = 4_000_000
"""Points of a rule that is exact or refined."""
FIRST = 1
"""The first level of refinement."""
REPLICATES = 8
"""Independent sets of quasi-random points, whose scatter is the error."""
_FEW, _GROWS, _CORNER = 4, 0.5, 1e-13
_BLOCK = 2**14
"""Points at a time, whose values stay in a cache."""


class Means(NamedTuple):
    """<F_k v_m>, shape (K, M), and <F_k u_l> and <F_k F_l>, shape (K, K)."""

    v: Array
    u: Array
    square: Array


@dataclass(frozen=True, eq=False)
class Sample:
    """What an update is averaged over."""

    update: Update
    sources: tuple[Source, ...]
    """Laws of v_m over its scale, standardised."""
    scales: Array
    """Standard deviations of the v_m, shape (M,)."""
    noise: tuple[Source, ...] = ()
    """Laws of the noise."""
    squared: bool = False
    """Whether squares of what a step adds are averaged, fourth powers of F among them."""

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """v_1 ... v_M over their scales, e_1 ... e_K and the noise."""
        laws = [*self.sources, *[None] * len(self.update.expressions), *self.noise]
        return tuple(
            Variable(None if law is None or law.label == "gaussian" else law) for law in laws
        )

    @cached_property
    def closed(self) -> Closed | None:
        """The averages in closed form, if there is one."""
        normal = all(one.source is None for one in self.variables) and not self.squared
        return closed_of(self.update) if normal and self.update.degree is None else None

    @cached_property
    def series(self) -> Series | None:
        """The averages from the moments of the sources, if they are all that matters."""
        return None if self.squared else series_of(self.update, self.sources, self.scales)

    def _coefficients(self, expressions: Sequence[sp.Expr]) -> Callable[..., list[list[float]]]:
        """Rows of coefficients of u, v, noise and 1 in affine expressions, at other arguments."""
        symbols = self.update.random
        polys = [sp.Poly(one, *symbols) for one in expressions]
        rows = [[poly.coeff_monomial(one) for one in (*symbols, 1)] for poly in polys]
        return sp.lambdify(self.update.arguments[len(symbols) :], rows, "numpy")

    @cached_property
    def _forms(self) -> tuple[Callable[..., list[list[float]]], int] | None:
        """Affine forms of which F is a function, and their rank if it is below the variables.

        The variables are normal then, and given the forms all others are their conditional means.
        """
        known = self.update.degree is not None or self.closed is not None or self.squared
        if known or self._curved or any(one.source is not None for one in self.variables):
            return None
        forms = self._coefficients(self.update.forms)
        # Numbers at which nothing vanishes that does not always.
        rest = range(len(self.update.arguments) - len(self.update.random))
        rows = np.array(forms(*(math.sqrt(k + 1.7) for k in rest)), dtype=float)
        rank = int(np.linalg.matrix_rank(rows[:, :-1]))
        return (forms, rank) if rank < len(self.variables) else None

    @cached_property
    def integrated(self) -> tuple[Variable, ...]:
        """The variables over which is integrated: those of the sample, or fewer normal ones."""
        return self.variables if self._forms is None else (Variable(None),) * self._forms[1]

    @cached_property
    def _discrete(self) -> tuple[int, ...]:
        """Which of these have atoms alone."""
        each = enumerate(self.integrated)
        return tuple(j for j, one in each if one.source is not None and not one.source.law.parts)

    def _planes(
        self, rows: Callable[..., list[list[float]]], along: Array, across: Array, constant: Array
    ) -> Array:
        """Affine expressions in the variables of the sample: coefficients, and the constant."""
        k, m = along.shape
        every = np.array(rows(*constant.tolist()), dtype=float)
        every = every.reshape(-1, len(self.update.random) + 1)
        u, v, z, c = np.split(every, [k, k + m, -1], axis=1)
        return np.concatenate([(v + u @ along) * self.scales, u @ across, z, c], axis=1)

    def basis(self, along: Array, across: Array, constant: Array) -> Array | None:
        """Orthonormal directions of the variables on which F depends; None of all."""
        if self._forms is None:
            return None
        forms, rank = self._forms
        planes = self._planes(forms, along, across, constant)
        return np.asarray(np.linalg.svd(planes[:, :-1])[2][:rank].T)

    @property
    def _order(self) -> int:
        degree = self.update.degree or 0
        return max(2, 2 * degree + 1) if self.squared else degree + 1

    @cached_property
    def _is_exact(self) -> bool:
        """Whether averages are those of a polynomial, by no more points than are allowed."""
        if self.update.degree is None:
            return False
        sizes = (one.exact(self._order).points.size for one in self.variables)
        return math.prod(sizes) <= MOST_POINTS

    @property
    def is_known(self) -> bool:
        """Whether averages are in closed form or exact, with nothing to refine."""
        return self.closed is not None or self.series is not None or self._is_exact

    @property
    def seconds(self) -> float:
        """What a path takes, by the points of its averages."""
        if self.closed is not None or self.series is not None:
            return 0.5
        each = 2e-8 + 1.5e-8 * self.update.transcendental
        points = REPLICATES * QUASI if self.is_random else 3 * self.size(FIRST + 1)
        return 0.3 + 500 * each * points

    def size(self, level: int) -> int:
        """About how many points there are at a level."""
        if self._is_exact:
            return math.prod(one.exact(self._order).points.size for one in self.variables)
        if not self.update.factors:
            return math.prod(one.smooth(level).points.size for one in self.integrated)
        cuts = 2 * len(self.update.factors)
        return math.prod(one.nodes(level, cuts) for one in self.integrated)

    def refusal(self, r: Array, p: Array) -> str:
        """Empty if the mean of every F_k^2, or F_k^4, is finite at R and P, else why not."""
        laws = [one.source for one in self.variables]
        named = [
            *(f"source {law.label}" for law in self.sources),
            *("normal part" for _ in self.update.u),
            *(f"noise {law.label}" for law in self.noise),
        ]
        degree, power = self.update.degree, self._power
        what = "fluctuations are infinite" if self.squared else "limit does not exist"
        for variable, name in enumerate(named):
            source = laws[variable]
            if degree is None:
                infinite = self._diverges(variable, r, p)
            elif source is None:
                infinite = False
            else:
                moments = map(source.moment, range(power * degree + 1))
                infinite = not all(map(math.isfinite, moments))
            if infinite:
                return (
                    f"the {what}: the mean of F^{power} over the {name} is infinite (its tails are "
                    "too heavy for this update)"
                )
        if degree is not None:
            return ""
        line = self._line(r, root_of(p - r @ r.T), self.constant(p, 1.0))
        base = line.pole(power)
        return (
            ""
            if base is None
            else (
                f"the {what}: the mean of F^{power} is infinite, because {base} is a denominator "
                "of the update and samples come as near to its zeros as they like"
            )
        )

    def constant(self, p: Array, t: float) -> Array:
        """The arguments of F that are not random."""
        norms = [math.sqrt(max(square, 0.0)) for square in p.diagonal().tolist()]
        return self.update.fixed(norms, t)

    def _line(self, along: Array, across: Array, constant: Array) -> Line:
        return Line(self.update, self.variables, along, across, self.scales, constant)

    @property
    def _power(self) -> int:
        """The power of F whose mean has to be finite."""
        return 4 if self.squared else 2

    def _diverges(self, variable: int, r: Array, p: Array) -> bool:
        """Whether the tails of one variable carry the mean of F^2, or F^4, with moderate others.

        Of a finite mean, what is farther out is less than what is far out.
        """
        few = [
            one.exact(_FEW) if one.source is None else gauss(one.source.nodes, _FEW)
            for one in self.variables
        ]
        few[variable], *masks = self.variables[variable].far()
        points, sums = tensor(few), []
        if 0 <= (k := variable - len(self.sources)) < len(self.update.u):
            # The tail of u_k is along all normal variables of which it is made.
            parts = (r[k] * self.scales, root_of(p - r @ r.T)[k], np.zeros(len(self.noise)))
            u = np.concatenate(parts) * [one.source is None for one in self.variables]
            if (size := math.sqrt(float(u @ u))) > 0:
                u /= size
                x, rest = points.values[variable].copy(), points.values
                rest[variable] = 0.0
                rest += np.outer(u, x - u @ rest)
        for mask in masks:
            ones = Nodes(mask.astype(float), few[variable].weights)
            there = tensor([*few[:variable], ones, *few[variable + 1 :]]).values[variable]
            tail = Points(points.values, points.weights * there)
            with np.errstate(all="ignore"):
                blocks = Averages(self, 0).blocks(tail, r, p, 0.0)
                sums.append(sum(np.nansum(w * f**self._power, axis=1) for w, *_, f in blocks))
        far, farther = sums
        return bool(np.any(farther > _GROWS * far) or not np.isfinite(farther).all())

    @cached_property
    def is_random(self) -> bool:
        """Whether averages are those of replicates of quasi-random points."""
        if self.is_known:
            return False
        return len(self.integrated) > NESTED or self.size(FIRST + 1) > MOST_POINTS

    def fixed(self, level: int) -> Points | None:
        """Points that do not depend on R and P; None where the update switches.

        The level is that of refinement, or the number of a replicate.
        """
        if self._is_exact:
            return tensor([one.exact(self._order) for one in self.variables])
        if self.is_random:
            return quasi_random(self.variables, level)
        if self.update.factors or self._forms is not None:
            return None
        points = tensor([one.smooth(level) for one in self.variables])
        if not self.squared:
            return points
        # Of a product of rules most points lie in corners where there is next to no mass.
        kept = points.weights > _CORNER * points.weights.max()
        return Points(points.values[:, kept], points.weights[kept])

    @cached_property
    def _affine(self) -> Callable[..., list[list[float]]]:
        """Coefficients of u, v, noise and 1 of the switches that are linear in them."""
        symbols = self.update.random
        return self._coefficients(
            [one for one in self.update.factors if degree_in([one], symbols) == 1]
        )

    @cached_property
    def _ends(self) -> Array:
        """Planes on which the density of a variable ends or has a corner."""
        rows = [(j, end) for j, one in enumerate(self.variables) for end in one.ends]
        planes = np.zeros((len(rows), len(self.variables) + 1))
        for row, (j, end) in zip(planes, rows, strict=True):
            row[j], row[-1] = 1.0, -end
        return planes

    @cached_property
    def _curved(self) -> tuple[tuple[frozenset[int], Callable[..., Array]], ...]:
        """The other switches: the variables on which each depends, and its function."""
        update, made = self.update, []
        k, m = len(update.u), len(update.v)
        for factor in update.factors:
            if degree_in([factor], update.random) != 1:
                places: set[int] = set()
                for symbol in factor.free_symbols & set(update.random):
                    at = update.random.index(symbol)
                    if at < k:  # u_k has all v and e_1 ... e_k
                        places |= {*range(m), *range(m, m + at + 1)}
                    else:
                        places.add(at - k if at < k + m else at)
                function = switches.vectorised(factor, *update.arguments)
                made.append((frozenset(places), function))
        return tuple(made)

    def cut(self, along: Array, across: Array, constant: Array, level: int) -> Points:
        """Points cut where the update switches, in the order of the variables."""
        basis = self.basis(along, across, constant)
        if basis is not None and not self.update.factors:
            few = tensor([one.smooth(level) for one in self.integrated])
            return Points(basis @ few.values, few.weights)
        planes = self._planes(self._affine, along, across, constant)
        planes = np.concatenate([planes, self._ends])
        if basis is not None:
            planes = np.concatenate([planes[:, :-1] @ basis, planes[:, -1:]], axis=1)
        order = best_order(planes, self._discrete)
        line = self._line(along, across, constant)

        def curves(values: Array, depth: int) -> Array:
            """Where curved switches change sign along a variable, given those outside of it."""
            inside, found = set(order[depth + 1 :].tolist()), []
            for places, function in self._curved:
                if order[depth] in places and not places & inside:
                    whole = np.zeros((len(order), values.shape[1]))
                    whole[order[:depth]] = values
                    looks = self.variables[order[depth]].looks(LOOKS)
                    value = line.along(function, whole, order[depth])
                    found.append(sign_changes(value, looks, values.shape[1]))
            return np.concatenate([np.zeros((values.shape[1], 0)), *found], axis=1)

        points = cut_points(
            [self.integrated[j] for j in order], planes[:, [*order, -1]], level, curves
        )
        values = np.empty_like(points.values)
        values[order] = points.values
        return Points(values if basis is None else basis @ values, points.weights)


class _Table:
    """Few points that do not move, in arrays of which only what depends on R and P is written."""

    def __init__(self, sample: Sample, points: Points) -> None:
        k, m = len(sample.update.u), len(sample.update.v)
        count, arguments = points.weights.size, len(sample.update.arguments)
        self.weights, self.e = points.weights, points.values[m : m + k]
        self.v = sample.scales[:, None] * points.values[:m]
        self.rows, self.others = np.empty((arguments, count)), np.empty((m + 2 * k, count))
        self.last = len(sample.update.random)
        self.rows[k : k + m] = self.others[:m] = self.v
        self.rows[k + m : self.last] = points.values[m + k :]
        self.force = self.others[m + k :]
        self.k, self.write = k, writer(sample.update, self.rows, self.force)

    def sums(self, along: Array, across: Array, constant: Array) -> Array:
        """<F_k v_m>, <F_k u_l> and <F_k F_l>, shape (K, M + 2 K)."""
        u = _combined(along, self.v) + _combined(across, self.e)
        self.rows[: self.k] = u
        self.others[-2 * self.k : -self.k] = u
        self.rows[self.last :] = constant[:, None]
        self.write()
        return np.einsum("kn,jn->kj", self.force * self.weights, self.others)


@dataclass(eq=False)
class Averages:
    """Averages of an update at one level of refinement, or of one replicate."""

    sample: Sample
    level: int

    @cached_property
    def _fixed(self) -> Points | None:
        return self.sample.fixed(self.level)

    def at(self, r: Array, p: Array, t: float) -> Means:
        """The averages at R, shape (K, M), and P, shape (K, K), and a time."""
        k, m = r.shape
        scales = self.sample.scales
        if self.sample.series is not None:
            rest = max(0.0, float(p[0, 0]) - dot(r[0], r[0]))
            along, mean_u, mean_square = self.sample.series.means(r[0], rest)
            return Means(along[None], np.array([[mean_u]]), np.array([[mean_square]]))
        if self.sample.closed is not None:
            square = scales * scales
            u = p + (r * (square - 1)) @ r.T
            noise = np.eye(len(self.sample.noise))
            cross = np.zeros((k + m, len(noise)))
            signal = np.block([[u, r * square], [(r * square).T, np.diag(square)]])
            return _means(self.sample.closed.sums(np.block([[signal, cross], [cross.T, noise]])), m)
        if self._table is not None:
            across = root_of(p - r @ r.T)
            return _means(self._table.sums(r, across, self.sample.constant(p, t)), m)
        return self.over(self.points(r, p, t), r, p, t)

    @cached_property
    def _table(self) -> _Table | None:
        points = self._fixed
        return (
            None if points is None or points.weights.size > _BLOCK else _Table(self.sample, points)
        )

    def over(self, points: Points, r: Array, p: Array, t: float) -> Means:
        """The averages over some points."""
        k, m = r.shape
        sums = np.zeros((k, m + 2 * k))
        for weights, u, v, _, force in self.blocks(points, r, p, t):
            sums += np.einsum("kn,jn->kj", force * weights, np.concatenate([v, u, force]))
        return _means(sums, m)

    def points(self, r: Array, p: Array, t: float) -> Points:
        """Points and weights of v, e and the noise."""
        if self._fixed is not None:
            return self._fixed
        return self.sample.cut(r, root_of(p - r @ r.T), self.sample.constant(p, t), self.level)

    def blocks(
        self, points: Points, r: Array, p: Array, t: float
    ) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
        """Weights, u, v, e and F of some points, a block at a time."""
        k, m = r.shape
        across, constant = root_of(p - r @ r.T), self.sample.constant(p, t)
        for first in range(0, points.weights.size, _BLOCK):
            part = slice(first, first + _BLOCK)
            base, weights = points.values[:, part], points.weights[part]
            v = self.sample.scales[:, None] * base[:m]
            u = _combined(r, v) + _combined(across, base[m : m + k])
            fixed = np.broadcast_to(constant[:, None], (constant.size, weights.size))
            force = values_of(self.sample.update, np.concatenate([u, v, base[m + k :], fixed]))
            yield weights, u, v, base[m : m + k], force


def _combined(matrix: Array, rows: Array) -> Array:
    """The product of a small matrix and long rows, without threads of BLAS."""
    return matrix * rows if len(rows) == 1 else np.einsum("ki,in->kn", matrix, rows)


def _means(sums: Array, features: int) -> Means:
    estimates = len(sums)
    v, u = sums[:, :features], sums[:, features : features + estimates]
    square = sums[:, features + estimates :]
    if estimates > 1:
        square = np.tril(square) + np.tril(square, -1).T
    return Means(v, u, square)
