"""Sums of independent laws, as sources: (w_1 c_1 + w_2 c_2 + ...)/sqrt(w_1^2 + w_2^2 + ...).

Where every law is a mixture of normal laws and atoms, so is the sum. Else its density is that of
one law averaged over the other, as a polynomial on panels between the sums of their ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import pairwise

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients import laws
from hdica.ingredients.laws import Function, Law, Part, Source, cut_rows, part_edges
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import Nodes

MOST_LAWS = 8
_MOST_ATOMS = 4096
_ORDER, _ROWS = 24, 2048

Components = list[tuple[float, float, float]]
"""Weights, means and standard deviations; 0 of an atom."""


def sum_of(parts: Sequence[tuple[Source, float]]) -> Source:
    """The standardised sum of independent sources times weights > 0."""
    total = math.sqrt(math.fsum(weight * weight for _, weight in parts))
    if len(parts) == 1:
        return parts[0][0]
    sources, shares = zip(*((source, weight / total) for source, weight in parts), strict=True)
    return _sum(sources, shares)


@lru_cache(maxsize=64)
def _sum(sources: tuple[Source, ...], weights: tuple[float, ...]) -> Source:
    named = " + ".join(f"{w:.4g} {s.label}" for s, w in zip(sources, weights, strict=True))
    label = f"sum({named})"
    mixed = _mixture(sources, weights)
    if mixed is not None:
        return mixed if mixed.label == "gaussian" else replace(mixed, label=label)

    def sample(rng: np.random.Generator, size: int) -> Array:
        pairs = zip(sources, weights, strict=True)
        return np.asarray(sum(weight * source.sample(rng, size) for source, weight in pairs))

    def moment(k: int) -> float:
        pairs = zip(sources, weights, strict=True)
        return math.factorial(k) * float(reduce(_product, (_series(s, w, k) for s, w in pairs))[k])

    pairs = [(source.law, weight) for source, weight in zip(sources, weights, strict=True)]
    whole = reduce(_convolved, pairs[1:], _scaled(*pairs[0]))
    symmetric = all(source.symmetric for source in sources)
    rule = laws.composite_rule(whole, np.empty(0))
    # Far out a polynomial may lie below 0 by rounding.
    nodes = Nodes(rule.points[rule.weights > 0], rule.weights[rule.weights > 0])
    return Source(label, sample, nodes, moment, symmetric, lambda: whole)


def _series(source: Source, weight: float, k: int) -> Array:
    """E (w c)^p/p! up to p = k."""
    return np.array([weight**p * source.moment(p) / math.factorial(p) for p in range(k + 1)])


def _product(one: Array, other: Array) -> Array:
    with np.errstate(invalid="ignore"):
        product = np.array([np.sum(one[: p + 1] * other[p::-1]) for p in range(one.size)])
    # An infinite moment times 0 is no number: the moment of the sum is infinite.
    return np.where(np.isnan(product), np.inf, product)


def _components(source: Source) -> Components | None:
    """The law as a mixture of normal laws and atoms, None if it is none."""
    if source.label == "gaussian":
        return [(1.0, 0.0, 1.0)]
    law = source.law
    atoms = law.atoms
    made: Components = []
    if atoms is not None and not law.endless:
        made = [
            (w, c, 0.0) for c, w in zip(atoms.points.tolist(), atoms.weights.tolist(), strict=True)
        ]
    for part in law.parts:
        width = part.width
        if source.label.startswith("bernoulli_gaussian"):
            width = float(part.point(np.ones(1))[0])
        if not width:
            return None
        at = np.zeros(1)
        mass = float(part.mass(at)[0]) * math.sqrt(2 * math.pi)
        made.append((mass, float(part.point(at)[0]), width))
    return None if law.endless else made


def _mixture(sources: tuple[Source, ...], weights: tuple[float, ...]) -> Source | None:
    """The sum where it is a mixture of few normal laws and atoms."""
    from hdica.ingredients.sources import make_source

    total: Components = [(1.0, 0.0, 0.0)]
    for source, weight in zip(sources, weights, strict=True):
        own = _components(source)
        if own is None or len(own) * len(total) > laws.MOST_COMPONENTS:
            return None
        total = [
            (p * q, m + weight * k, math.hypot(s, weight * r))
            for p, m, s in total
            for q, k, r in own
        ]
    if len(total) == 1:
        return make_source("gaussian")
    w, means, sds = (list(column) for column in zip(*total, strict=True))
    return laws.mixture({"weights": w, "means": means, "sds": sds})


def _scaled(law: Law, factor: float) -> Law:
    def part_of(part: Part) -> Part:
        return replace(
            part,
            point=lambda t: factor * part.point(t),
            slope=lambda t: factor * part.slope(t),
            place=lambda c: part.place(c / factor),
            width=factor * part.width,
        )

    atoms = law.atoms
    moved = None if atoms is None else Nodes(factor * atoms.points, atoms.weights)
    return replace(law, parts=tuple(map(part_of, law.parts)), atoms=moved)


def _density(part: Part) -> Function:
    """Density of a part at values, 0 outside of it."""
    edges = part_edges(part)

    def density(values: Array) -> Array:
        with np.errstate(all="ignore"):
            t = part.place(values)
            inside = (t >= edges[0]) & (t <= edges[-1])
            t = np.where(inside, t, edges[0])
            return np.where(inside, part.mass(t) / part.slope(t), 0.0)

    return density


def _mixed(one: Part, other: Part) -> Function:
    """Density of the sum of a variable of one part and another of the other."""
    edges, density = part_edges(one), _density(other)
    with np.errstate(all="ignore"):
        bends = other.point(part_edges(other))
    bends = bends[np.isfinite(bends)]

    def mixed(values: Array) -> Array:
        rows = []
        for first in range(0, values.size, _ROWS):
            some = values[first : first + _ROWS]
            row, value, weight = cut_rows(edges, one, some[:, None] - bends, _ORDER)
            terms = weight * density(some[row] - value)
            rows.append(np.bincount(row, terms, minlength=some.size))
        return np.concatenate(rows)

    return mixed


def _ends(part: Part) -> Array:
    with np.errstate(all="ignore"):
        ends = part.point(np.array([part.first[0], part.first[-1]]))
    return np.asarray(ends[np.isfinite(ends)])


def _convolved(law: Law, other: tuple[Law, float]) -> Law:
    """The law of the sum of a variable and another one times a weight."""
    second, atoms = _scaled(*other), None
    if law.atoms is not None and second.atoms is not None:
        points = (law.atoms.points[:, None] + second.atoms.points).ravel()
        masses = (law.atoms.weights[:, None] * second.atoms.weights).ravel()
        points, place = np.unique(np.round(points, 14), return_inverse=True)
        if points.size > _MOST_ATOMS:
            raise HdicaError(
                f"source: a sum with {points.size} values is not allowed (at most {_MOST_ATOMS})"
            )
        atoms = Nodes(points, np.asarray(np.bincount(place.ravel(), masses), dtype=float))
    densities = [_mixed(a, b) for a in law.parts for b in second.parts]
    bends = [a + b for a in map(_ends, law.parts) for b in _ends_of(second)]
    for one, rest in ((law, second.atoms), (second, law.atoms)):
        for part in one.parts if rest is not None else ():
            assert rest is not None
            densities.append(_shifted(_density(part), rest))
            bends += [_ends(part) + point for point in rest.points.tolist()]
    endless = law.endless or second.endless
    if not densities:
        return Law(atoms=atoms, endless=endless)
    edges: Array = np.unique(np.round(np.arcsinh(np.concatenate(bends)), 13))

    def mass(t: Array) -> Array:
        values = np.sinh(t.ravel())
        total = np.sum([density(values) for density in densities], axis=0)
        return np.asarray(total.reshape(t.shape) * np.cosh(t))

    return Law(_pieces(mass, edges), atoms, endless)


def _pieces(mass: Function, edges: Array) -> tuple[Part, ...]:
    """Parts in t = arcsinh(c) between edges, each with its mass as a polynomial on panels."""
    parts = []
    for low, high in pairwise(edges.tolist()):
        first = np.linspace(low, high, max(2, math.ceil(high - low) + 1))
        part = Part(np.sinh, np.cosh, mass, np.arcsinh, tuple(first.tolist()))
        resolved = part_edges(part)
        table, _ = laws.tabulated(mass, resolved)
        parts.append(replace(part, mass=table, first=tuple(resolved.tolist())))
    return tuple(parts)


def _ends_of(law: Law) -> list[float]:
    return [float(end) for part in law.parts for end in _ends(part)]


def _shifted(density: Function, atoms: Nodes) -> Function:
    pairs = list(zip(atoms.points.tolist(), atoms.weights.tolist(), strict=True))
    return lambda values: np.sum([mass * density(values - at) for at, mass in pairs], axis=0)
