"""Steady states of online ICA with several features: roots of its drift inside the sphere.

<c_j f(u)> vanishes with Q_j, because c_j is centred and independent of the rest of u. So every
face of zeros Q_j = 0 is invariant, and the states are those of every choice of features that have
an overlap, each looked for by itself from many starts (Powell's hybrid method). Features with equal
sources are exchanged, and symmetric sources take signs, so that of such states one is looked for
and all are listed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.systems.several_ica.limit import Averages, averages_of, drift

Array = NDArray[np.float64]
STARTS = 60
"""Starts for each feature that has an overlap."""
_ROOT, _SAME, _APART = 1e-10, 1e-7, 1e-6
_BEND = 1e-5
_MARGINAL = 1e-8
"""Share of the step size below which an eigenvalue is 0 with rounding."""


@dataclass(frozen=True)
class States:
    """Steady states: ``q`` (states, M), ``eigenvalue`` (states,), ``error`` of Q (states,)."""

    q: Array
    eigenvalue: Array
    error: Array


def jacobian(averages: Averages, q: Array, tau: float) -> Array:
    """Derivatives of dQ_j/dt at [j, k], by central differences that are extrapolated once."""
    rows = []
    for k in range(q.size):
        step = np.zeros(q.size)
        step[k] = _BEND
        near, wide = (
            (drift(averages, q + s * step, tau) - drift(averages, q - s * step, tau))
            / (2 * s * _BEND)
            for s in (1.0, 2.0)
        )
        rows.append((4 * near - wide) / 3)
    return np.stack(rows, axis=1)


def _roots(averages: Averages, tau: float, starts: Array) -> list[Array]:
    """Roots of dQ/dt, divided by tau, inside the sphere, none of whose overlaps is 0."""
    from scipy.optimize import root

    found: list[Array] = []
    for start in starts:
        answer = root(lambda q: drift(averages, q, tau) / tau, start, method="hybr", tol=1e-14)
        q = np.asarray(answer.x)
        inside = np.isfinite(q).all() and float(q @ q) <= 1 + _SAME
        if not inside or np.abs(q).min() < _APART:
            continue
        if np.abs(drift(averages, q, tau)).max() > _ROOT * tau:
            continue
        if all(np.abs(q - other).max() > _SAME for other in found):
            found.append(q)
    return found


def _starts(size: int) -> Array:
    """Points of the ball, the same for every system, and both ends of every axis of signs."""
    rng = np.random.default_rng(20170101 + size)
    way = rng.standard_normal((STARTS * size, size))
    radius = rng.random((STARTS * size, 1)) ** (1 / size)
    ball = radius * way / np.sqrt(np.sum(way**2, axis=1, keepdims=True))
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=size))) / np.sqrt(size)
    return np.concatenate([0.95 * corners, 0.3 * corners, ball])


def _is_symmetric(law: Source, orders: int) -> bool:
    return all(abs(law.moment(p)) < 1e-12 for p in range(1, orders, 2))


def _images(q: Array, mirrored: list[bool]) -> list[Array]:
    """A state under the signs of symmetric sources."""
    signs = itertools.product(*((1.0, -1.0) if one else (1.0,) for one in mirrored))
    return [q * np.array(s) for s in signs]


def _merged(found: list[Array]) -> list[Array]:
    """States that are different."""
    kept: list[Array] = []
    for q in found:
        if all(np.abs(q - other).max() > 10 * _SAME for other in kept):
            kept.append(q)
    return kept


def _with_overlap(f: Formula, laws: tuple[Source, ...], tau: float) -> list[Array]:
    """States of these features all of whose overlaps are not 0, signs and exchanges included."""
    averages = averages_of(f, laws)
    orders = averages.moments.shape[1] + 1
    mirrored = [_is_symmetric(law, orders) for law in laws]
    labels = [law.label for law in laws]
    exchanges = [
        list(order)
        for order in itertools.permutations(range(len(laws)))
        if [labels[i] for i in order] == labels
    ]
    found = _roots(averages, tau, _starts(len(laws)))
    return _merged(
        [one for q in found for order in exchanges for one in _images(q[order], mirrored)]
    )


def steady_states(f: Formula, laws: tuple[Source, ...], tau: float) -> States:
    """Every steady state that a search finds, the largest overlap first, and its stability."""
    many, averages = len(laws), averages_of(f, laws)
    known: dict[tuple[str, ...], list[Array]] = {}
    found = [np.zeros(many)]
    for size in range(1, many + 1):
        for chosen in itertools.combinations(range(many), size):
            here = tuple(laws[j] for j in chosen)
            key = tuple(law.label for law in here)
            if key not in known:
                known[key] = _with_overlap(f, here, tau)
            for q in known[key]:
                whole = np.zeros(many)
                whole[list(chosen)] = q
                found.append(whole)
    found.sort(key=lambda q: (-round(float(np.abs(q).max()), 9), *np.round(-q, 9).tolist()))
    slopes = [jacobian(averages, q, tau) for q in found]
    eigenvalue = np.array([float(np.linalg.eigvals(one).real.max()) for one in slopes])
    _refuse_continuum(found, eigenvalue, tau)
    error = np.array(
        [
            np.abs(np.linalg.solve(one, drift(averages, q, tau))).max() + 1e-14
            for one, q in zip(slopes, found, strict=True)
        ]
    )
    return States(np.array(found), eigenvalue, error)


def _refuse_continuum(found: list[Array], eigenvalue: Array, tau: float) -> None:
    """Two equal normal sources turn into each other: their states are no list."""
    flat = [q for q, e in zip(found, eigenvalue.tolist(), strict=True) if abs(e) < _MARGINAL * tau]
    if flat:
        raise HdicaError(
            "the fixed points are not a list (one is neither stable nor unstable at Q = "
            f"{np.round(flat[0], 6).tolist()}: a continuum of them, or a critical step size)",
            ["sources", "tau"],
        )
