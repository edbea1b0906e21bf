"""Averages in closed form: of polynomials of one u, and over normal variables of some products.

Those are products of erf, exp(-quadratic) and powers.

With C the covariance of y = (u, v, noise), a factor exp(-y'By) makes it C' = C (1 + 2 B C)^-1 and
gives det(1 + 2 B C)^(-1/2). Under C' (Saad and Solla 1995; the rest by Stein's identity)

    <y_i y_j> = C'_ij,   <y_i erf(a.y)> = 2 (C'a)_i / sqrt(pi (1 + 2 a'C'a)),
    <erf(a.y) erf(b.y)> = (2/pi) arcsin(2 a'C'b / sqrt((1 + 2 a'C'a)(1 + 2 b'C'b))).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array
from hdica.ingredients.update import Update


@dataclass(frozen=True, eq=False)
class Term:
    """coefficient times y_i for each place, erf(a.y) for each direction, and exp(-y'By)."""

    coefficient: float
    places: tuple[int, ...]
    directions: tuple[Array, ...]
    form: Array

    def __mul__(self, other: Term) -> Term:
        """The product of two."""
        return Term(
            self.coefficient * other.coefficient,
            self.places + other.places,
            self.directions + other.directions,
            self.form + other.form,
        )


def _terms(expression: sp.Expr, variables: tuple[sp.Symbol, ...]) -> list[Term] | None:
    """An expression as a sum of such terms; None if it is none."""
    terms = []
    for part in sp.Add.make_args(sp.expand(expression)):
        term = _term(part, variables)
        if term is None:
            return None
        terms.append(term)
    return terms


def _term(part: sp.Expr, variables: tuple[sp.Symbol, ...]) -> Term | None:
    size = len(variables)
    term = Term(1.0, (), (), np.zeros((size, size)))
    nothing = term.form
    for factor in sp.Mul.make_args(part):
        base, power = factor.as_base_exp()
        if factor.is_number:
            made = Term(float(factor), (), (), nothing)
        elif base in variables and power.is_Integer and power > 0:
            made = Term(1.0, (variables.index(base),) * int(power), (), nothing)
        elif isinstance(base, sp.erf) and power in (1, 2):
            direction = _linear(base.args[0], variables)
            if direction is None:
                return None
            made = Term(1.0, (), (direction,) * int(power), nothing)
        elif isinstance(factor, sp.exp):
            form = _quadratic(-factor.args[0], variables)
            if form is None:
                return None
            made = Term(1.0, (), (), form)
        else:
            return None
        term = term * made
    return term


def _homogeneous(
    expression: sp.Expr, variables: tuple[sp.Symbol, ...], degree: int
) -> sp.Poly | None:
    """A polynomial all of whose terms have this degree; None of any other expression."""
    if not expression.is_polynomial(*variables):
        return None
    poly = sp.Poly(expression, *variables)
    return poly if all(sum(powers) == degree for powers in poly.monoms()) else None


def _linear(expression: sp.Expr, variables: tuple[sp.Symbol, ...]) -> Array | None:
    """Coefficients of a linear form without a constant."""
    poly = _homogeneous(expression, variables, 1)
    return None if poly is None else np.array([float(poly.coeff_monomial(v)) for v in variables])


def _quadratic(expression: sp.Expr, variables: tuple[sp.Symbol, ...]) -> Array | None:
    """The matrix of a quadratic form that is nowhere negative."""
    if _homogeneous(expression, variables, 2) is None:
        return None
    form = np.array(sp.hessian(expression, variables), dtype=float) / 2
    return form if np.linalg.eigvalsh(form).min() > -1e-12 else None


_CLASSES = ((0, 0), (2, 0), (1, 1), (0, 2))
"""Numbers of powers and of erf of the terms that have a closed form; odd ones are 0."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Terms of one class: where they are added, and what they are."""

    row: NDArray[np.intp]
    coefficient: Array
    form: NDArray[np.intp]
    places: NDArray[np.intp]
    directions: Array


class Closed:
    """The averages of an update all of whose variables are normal, or None by :func:`closed_of`."""

    def __init__(self, terms: list[list[Term]], features: int, size: int) -> None:
        self.estimates, self.features, self.size = len(terms), features, size
        self.terms = terms

    @property
    def columns(self) -> int:
        """Averages of one estimate: with every v, every u and every F."""
        return self.features + 2 * self.estimates

    def _products(self) -> Iterator[tuple[int, Term]]:
        for k, own in enumerate(self.terms):
            for column, place in enumerate(
                [*range(self.estimates, self.estimates + self.features), *range(self.estimates)]
            ):
                unit = Term(1.0, (place,), (), np.zeros((self.size, self.size)))
                for term in own:
                    yield k * self.columns + column, term * unit
            for j in range(k + 1):
                for one, other in itertools.product(own, self.terms[j]):
                    yield k * self.columns + self.features + self.estimates + j, one * other

    @cached_property
    def groups(self) -> tuple[Array, dict[tuple[int, int], _Group]] | None:
        """Quadratic forms, and the terms of each class; None if there are others."""
        forms: dict[bytes, int] = {}
        matrices: list[Array] = []
        rows: dict[tuple[int, int], list[tuple[int, int, Term]]] = {}
        for row, term in self._products():
            kind = len(term.places), len(term.directions)
            if sum(kind) % 2:
                continue
            if kind not in _CLASSES:
                return None
            key = np.round(term.form, 14).tobytes()
            if key not in forms:
                forms[key] = len(matrices)
                matrices.append(term.form)
            rows.setdefault(kind, []).append((row, forms[key], term))
        groups = {
            kind: _Group(
                np.array([row for row, _, _ in each]),
                np.array([term.coefficient for _, _, term in each]),
                np.array([form for _, form, _ in each]),
                np.array([term.places for _, _, term in each], dtype=int),
                np.array([term.directions for _, _, term in each]),
            )
            for kind, each in rows.items()
        }
        return np.array(matrices), groups

    def sums(self, covariance: Array) -> Array:
        """<F_k v_m>, <F_k u_l> and, on and below the diagonal, <F_k F_l>: shape (K, M + 2 K)."""
        assert self.groups is not None
        forms, groups = self.groups
        turned = np.eye(self.size) + 2 * forms @ covariance
        factor = 1 / np.sqrt(np.linalg.det(turned))
        within = np.transpose(
            np.linalg.solve(
                np.transpose(turned, (0, 2, 1)), np.broadcast_to(covariance, turned.shape)
            ),
            (0, 2, 1),
        )
        total = np.zeros(self.estimates * self.columns)
        for kind, group in groups.items():
            value = _value(kind, group, within[group.form])
            np.add.at(total, group.row, group.coefficient * factor[group.form] * value)
        return total.reshape(self.estimates, self.columns)


def _value(kind: tuple[int, int], group: _Group, c: Array) -> Array:
    """The averages of a class of terms under their covariances, shape (terms,)."""
    every = np.arange(len(c))
    if kind == (0, 0):
        return np.ones(len(c))
    if kind == (2, 0):
        return c[every, group.places[:, 0], group.places[:, 1]]
    turned = np.einsum("tij,tkj->tki", c, group.directions)
    lengths = 1 + 2 * np.einsum("tki,tki->tk", turned, group.directions)
    if kind == (1, 1):
        along = turned[every, 0, group.places[:, 0]]
        return 2 / math.sqrt(math.pi) * along / np.sqrt(lengths[:, 0])
    mixed = 2 * np.einsum("ti,ti->t", turned[:, 0], group.directions[:, 1])
    return 2 / math.pi * np.arcsin(np.clip(mixed / np.sqrt(lengths[:, 0] * lengths[:, 1]), -1, 1))


def closed_of(update: Update) -> Closed | None:
    """The averages in closed form for normal u, v and noise; None where there is no such form."""
    if update.uses_norms or update.uses_time or update.factors:
        return None
    terms = []
    for expression in update.written_out:
        own = _terms(expression, update.random)
        if own is None:
            return None
        terms.append(own)
    closed = Closed(terms, len(update.v), len(update.random))
    return closed if closed.groups is not None else None


_MOST = 130
"""Moments of a series at most."""
_FACTORIALS = np.array([float(math.factorial(p)) for p in range(_MOST)])


@dataclass(frozen=True, eq=False)
class Series:
    """<v F(u)>, <u F(u)> and <F(u)^2> of one polynomial F, from the moments of v and of the rest.

    The p-th moment of a sum of independent numbers over p! is a product of power series.
    """

    coefficients: Array
    """Of F, the lowest power first, shape (d + 1,)."""
    moments: Array
    """E v_m^p/p! at [m, p], shape (M, size)."""
    raised: Array
    """E v_m^(p + 1)/p! at [m, p], shape (M, d + 1)."""

    @cached_property
    def square(self) -> Array:
        """Coefficients of F^2, shape (2 d + 1,)."""
        return np.convolve(self.coefficients, self.coefficients)

    def means(self, r: Array, variance: float) -> tuple[Array, float, float]:
        """The averages at overlaps of shape (M,), the first of shape (M,).

        ``variance`` is that of the part of u across the features.
        """
        size, degree = self.moments.shape[1], self.coefficients.size
        powers = r[:, None] ** np.arange(size)
        series = self.moments * powers
        normal = np.zeros(size)
        for p in range(0, size, 2):
            normal[p] = (variance / 2) ** (p // 2) / math.factorial(p // 2)
        moment = _power_series([normal, *series]) * _FACTORIALS[:size]
        along = np.empty(r.size)
        for j in range(r.size):
            others = [series[k, :degree] for k in range(r.size) if k != j]
            own = self.raised[j] * powers[j, :degree]
            mixed = _power_series([normal[:degree], *others, own]) * _FACTORIALS[:degree]
            along[j] = math.fsum(self.coefficients * mixed)
        mean_u = math.fsum(self.coefficients * moment[1 : degree + 1])
        return along, mean_u, math.fsum(self.square * moment[: self.square.size])


def _power_series(series: Sequence[Array]) -> Array:
    """Product of power series of one length, cut off there."""
    product = series[0]
    for other in series[1:]:
        product = np.convolve(product, other)[: product.size]
    return product


def series_of(update: Update, sources: Sequence[Source], scales: Array) -> Series | None:
    """The averages of one polynomial of u alone, if the update is one."""
    if len(update.u) > 1 or not update.used <= {*update.u, *update.constants}:
        return None
    (expression,), (u,) = update.written_out, update.u
    if not expression.is_polynomial(u):
        return None
    c = np.array([float(one) for one in reversed(sp.Poly(expression, u).all_coeffs())])
    size = max(2 * c.size - 1, c.size + 1)
    if size > _MOST:
        return None

    def table(orders: int, more: int) -> Array:
        rows = [
            [law.moment(p + more) * scale ** (p + more) / math.factorial(p) for p in range(orders)]
            for law, scale in zip(sources, scales, strict=True)
        ]
        return np.array(rows).reshape(len(sources), orders)

    return Series(c, table(size, 0), table(c.size, 1))
