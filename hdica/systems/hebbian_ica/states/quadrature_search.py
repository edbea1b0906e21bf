"""Search for the fixed points of (17) where phi is no polynomial, and averages need quadrature.

Polynomials near phi have fixed points near those of phi, mostly: they are starts, beside patterns
and random ones. Each is followed by Powell's hybrid method with the coarser quadrature, and what is
new is polished with the finer one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.quadrature import gaussian_nodes
from hdica.process.progress import check_deadline
from hdica.systems.hebbian_ica.limit.equation_17 import Array, Field, Parts, make_field
from hdica.systems.hebbian_ica.states.polynomial import polynomial
from hdica.systems.hebbian_ica.states.search import (
    SEED,
    Search,
    mixed_starts,
    pattern_starts,
    search,
    unknown,
)
from hdica.systems.hebbian_ica.states.symmetries import Symmetries, representatives, symmetries

_DEGREES = (3, 5, 7, 9)
_MOST_NEAR, _MOST_PATTERNS, _RANDOM, _ROUNDS = 300, 40, 20, 2
_APART = 0.02
"""Starts nearer to each other than this lead to the same place."""
_SCAN = 200
_ROUGH, _NEAR, _SOLVED = 1e-5, 1e-4, 1e-10
_MOST_STEPS = 40


@dataclass(frozen=True)
class _Found(Search):
    """Zeros found so far, polished; ``rough`` are those of the coarser quadrature, (N, K, M)."""

    rough: Array


def search_by_quadrature(field: Field, group: Symmetries, mu: float) -> Search:
    """Zeros of a field whose phi is no polynomial."""
    rng, shape = np.random.default_rng(SEED), field.shape
    found = _Found(np.zeros((0, *shape)), np.zeros(0), 0, np.zeros((0, *shape)))
    for begin in (
        _near(field, group, mu),
        pattern_starts(rng, group, shape, _MOST_PATTERNS),
        _scan(field, mu),
    ):
        found = _followed(field, group, mu, found, begin)
    for _ in range(_ROUNDS):
        begin = mixed_starts(rng, group, found.zeros, mu, _RANDOM)
        found = _followed(field, group, mu, found, begin)
    return found


def _followed(field: Field, group: Symmetries, mu: float, found: _Found, begin: Array) -> _Found:
    """What is known after the given starts."""
    found = replace(found, starts=found.starts + len(begin), hits=found.hits.copy())
    for start in begin:
        rough = _solved(field.rough, mu, start, _ROUGH, 1e-6)
        if rough is None:
            continue
        one, _ = representatives(group, rough[None])
        gap = np.abs(found.rough - one).max(axis=(1, 2), initial=0.0)
        if len(gap) and float(gap.min()) < _NEAR:
            found.hits[int(np.argmin(gap))] += 1.0
            continue
        r = _solved(field.parts, mu, one[0], _SOLVED, 1e-14)
        if r is None:
            continue
        new, _ = representatives(group, r[None])
        if len(unknown(new, found.zeros)):
            found = _Found(
                np.concatenate([found.zeros, new]),
                np.append(found.hits, 1.0),
                found.starts,
                np.concatenate([found.rough, one]),
            )
    return found


def _solved(parts: Parts, mu: float, start: Array, tolerance: float, step: float) -> Array | None:
    """The zero of L + mu D that Powell's hybrid method finds from a start; None if none."""
    from scipy.optimize import root

    def value(x: Array) -> Array:
        check_deadline()
        if not np.all(np.isfinite(x)):  # it has run away
            return np.full(x.size, np.nan)
        learning, loss = parts(x.reshape(start.shape))
        return np.asarray((learning + mu * loss).ravel())

    most = start.size + _MOST_STEPS
    found = root(value, start.ravel(), method="hybr", tol=step, options={"maxfev": most})
    small = float(np.abs(found.fun).max()) < tolerance and float(np.abs(found.x).max()) < 1.1
    return np.asarray(found.x.reshape(start.shape)) if small else None


def _near(field: Field, group: Symmetries, mu: float) -> Array:
    """Fixed points of polynomials near phi."""
    found = np.zeros((1, *field.shape))
    for degree in _DEGREES:
        try:
            other = make_field(field.sigma.tolist(), _fitted(field.phi, degree), field.sources)
        except HdicaError:
            continue  # A source without the moments.
        size = min(9, field.sigma.size * len(field.sources))
        zeros = search(polynomial(other, mu), symmetries(other), 50 * size, 2000).zeros
        zeros = zeros[np.linalg.norm(zeros, 2, axis=(1, 2)) <= 1.0]
        found = np.concatenate([found, representatives(group, zeros)[0]])
    return unknown(found, np.zeros((0, *field.shape)), _APART)[:_MOST_NEAR]


def _fitted(phi: Formula, degree: int) -> Formula:
    """The polynomial nearest to phi in the mean square over the normal law."""
    nodes = gaussian_nodes(200)
    basis = np.polynomial.hermite_e.hermevander(nodes.points, degree)
    norms = np.cumprod(np.maximum(1.0, np.arange(degree + 1.0)))
    series = np.sum(basis * (nodes.weights * phi.value(nodes.points))[:, None], axis=0) / norms
    series[np.abs(series) < 1e-9 * np.abs(series).max()] = 0.0
    powers = np.polynomial.hermite_e.herme2poly(series)
    return parse_formula(" + ".join(f"({c:.15f})*x**{n}" for n, c in enumerate(powers)))


def _scan(field: Field, mu: float) -> Array:
    """For one overlap, the places between which the right-hand side changes its sign or turns."""
    if field.shape != (1, 1):
        return np.zeros((0, *field.shape))
    places = np.linspace(-1.0, 1.0, 2 * _SCAN + 1)
    learning, loss = np.array([field.rough(np.full((1, 1), r)) for r in places])[:, :, 0, 0].T
    rate = learning + mu * loss
    change = rate[:-1] * rate[1:] <= 0.0
    size = np.abs(rate)
    turn = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:])
    begin = np.concatenate([(places[:-1] + places[1:])[change] / 2, places[1:-1][turn]])
    return begin.reshape(-1, 1, 1)
