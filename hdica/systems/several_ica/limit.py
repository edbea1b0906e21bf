"""The limit of online ICA with several features: its equation and its steady states.

With u = sum_j Q_j c_j + s z, z normal and s^2 = 1 - sum_j Q_j^2,

    dQ_j/dt = -tau (<c_j f(u)> - Q_j <u f(u)>) - (tau^2/2) <f(u)^2> Q_j,

which is below (11) of Wang and Lu 2017, with the sign of G corrected, for one feature. For a
polynomial f the averages are moments of the sources, polynomials in Q.

Steady states are roots of the drift inside the sphere. <c_j f(u)> vanishes with Q_j, because c_j is
centred and independent of the rest of u. So every face of zeros Q_j = 0 is invariant, and the
states are those of every choice of features that have an overlap, each looked for by itself from
many starts (Powell's hybrid method). Features with equal sources are exchanged, and symmetric
sources take signs, so that of such states one is looked for and all are listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.numerics.solvers import integrate

FINE, COARSE = 1e-12, 1e-10
"""Tolerances of the integration, and of the run that tells its error."""
CONTROL = 1.02
"""Factor by which the drift of the negative control is wrong."""


@dataclass(frozen=True, eq=False)
class Averages:
    """<c_j f(u)>, <u f(u)> and <f(u)^2> of a polynomial f, from moments of the sources."""

    coefficients: Array  # of f, lowest degree first, shape (d + 1,)
    square: Array  # of f^2, shape (2 d + 1,)
    moments: Array  # E c_j^p / p! at [j, p], shape (M, size)
    raised: Array  # E c_j^(p + 1) / p! at [j, p], shape (M, d + 1)

    def at(self, q: Array) -> tuple[Array, float, float]:
        """The three averages at overlaps of shape (M,); the first is of shape (M,)."""
        size, degree = self.moments.shape[1], self.coefficients.size
        powers = q[:, None] ** np.arange(size)
        series = self.moments * powers
        normal = _normal(max(0.0, 1.0 - math.fsum(q * q)), size)
        moment = _product([normal, *series]) * _FACTORIALS[:size]
        along = np.empty(q.size)
        for j in range(q.size):
            others = [series[k, :degree] for k in range(q.size) if k != j]
            own = self.raised[j] * powers[j, :degree]
            mixed = _product([normal[:degree], *others, own]) * _FACTORIALS[:degree]
            along[j] = math.fsum(self.coefficients * mixed)
        mean_u = math.fsum(self.coefficients * moment[1 : degree + 1])
        return along, mean_u, math.fsum(self.square * moment[: self.square.size])


_MOST = 130
_FACTORIALS = np.array([float(math.factorial(p)) for p in range(_MOST)])


def _normal(variance: float, size: int) -> Array:
    """E (s z)^p / p!, the coefficients of exp(s^2 t^2/2), shape (size,)."""
    series = np.zeros(size)
    for p in range(0, size, 2):
        series[p] = (variance / 2) ** (p // 2) / math.factorial(p // 2)
    return series


def _product(series: Sequence[Array]) -> Array:
    """Product of power series of one length, cut off there."""
    product = series[0]
    for other in series[1:]:
        product = np.convolve(product, other)[: product.size]
    return product


def averages_of(f: Formula, sources: Sequence[Source]) -> Averages:
    """The averages of a polynomial ``f``, whose moments are known to be finite."""
    c = f.coefficients
    if c is None or 2 * c.size >= _MOST:
        raise HdicaError(
            f"nonlinearity = {f.text!r} is not allowed here (a polynomial of degree below "
            f"{_MOST // 2 - 1})",
            ["nonlinearity"],
        )
    square = np.convolve(c, c)
    size = max(square.size, c.size + 1)

    def table(orders: int, more: int) -> Array:
        rows = [[s.moment(p + more) / math.factorial(p) for p in range(orders)] for s in sources]
        return np.array(rows)

    return Averages(c, square, table(size, 0), table(c.size, 1))


def drift(averages: Averages, q: Array, tau: float) -> Array:
    """dQ/dt at overlaps of shape (M,)."""
    along, mean_u, square = averages.at(q)
    return np.asarray(-tau * (along - q * mean_u) - tau * tau / 2 * square * q)


@dataclass(frozen=True)
class Path:
    """The limit at the asked times, each array of shape (T, M)."""

    q: Array
    error: Array  # difference to a run of 100 times coarser tolerance, plus the finer tolerance
    control: Array  # with the drift wrong by 2 %: what a comparison must be able to reject


def limit_path(averages: Averages, schedule: Schedule, start: Array, times: Array) -> Path:
    """Overlaps at increasing times from those of the start, by Dormand and Prince's order 8."""

    def rate(q: Array, tau: float) -> Array:
        return drift(averages, q, tau)

    fine, close = integrate(rate, schedule, start, times, FINE)
    step = max(COARSE, close)
    coarse, _ = integrate(rate, schedule, start, times, step)
    wrong, _ = integrate(lambda q, tau: CONTROL * rate(q, tau), schedule, start, times, step)
    return Path(fine, np.abs(fine - coarse) + close, wrong)


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

    roots: list[Array] = []
    for start in starts:
        answer = root(lambda q: drift(averages, q, tau) / tau, start, method="hybr", tol=1e-14)
        q = np.asarray(answer.x)
        inside = np.isfinite(q).all() and float(q @ q) <= 1 + _SAME
        if not inside or np.abs(q).min() < _APART:
            continue
        if np.abs(drift(averages, q, tau)).max() > _ROOT * tau:
            continue
        if all(np.abs(q - other).max() > _SAME for other in roots):
            roots.append(q)
    return roots


def _starts(size: int) -> Array:
    """Points of the ball, the same for every system, and both ends of every axis of signs."""
    rng = np.random.default_rng(20170101 + size)
    way = rng.standard_normal((STARTS * size, size))
    radius = rng.random((STARTS * size, 1)) ** (1 / size)
    ball = radius * way / np.sqrt(np.sum(way**2, axis=1, keepdims=True))
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=size))) / np.sqrt(size)
    return np.concatenate([0.95 * corners, 0.3 * corners, ball])


def _with_overlap(f: Formula, laws: tuple[Source, ...], tau: float) -> list[Array]:
    """States of these features all of whose overlaps are not 0, signs and exchanges included."""
    averages, labels = averages_of(f, laws), [law.label for law in laws]
    odd = range(1, averages.moments.shape[1] + 1, 2)
    mirrored = [all(abs(law.moment(p)) < 1e-12 for p in odd) for law in laws]
    signs = list(itertools.product(*((1.0, -1.0) if one else (1.0,) for one in mirrored)))
    exchanges = [
        list(order)
        for order in itertools.permutations(range(len(laws)))
        if [labels[i] for i in order] == labels
    ]
    roots, states = _roots(averages, tau, _starts(len(laws))), list[Array]()
    for q, order, sign in itertools.product(roots, exchanges, signs):
        image = q[order] * np.array(sign)
        if all(np.abs(image - other).max() > 10 * _SAME for other in states):
            states.append(image)
    return states


def steady_states(f: Formula, laws: tuple[Source, ...], tau: float) -> States:
    """Every steady state that a search finds, the largest overlap first, and its stability."""
    many, averages = len(laws), averages_of(f, laws)
    by_labels: dict[tuple[str, ...], list[Array]] = {}
    states = [np.zeros(many)]
    for size in range(1, many + 1):
        for chosen in itertools.combinations(range(many), size):
            of_face = tuple(laws[j] for j in chosen)
            key = tuple(law.label for law in of_face)
            if key not in by_labels:
                by_labels[key] = _with_overlap(f, of_face, tau)
            for q in by_labels[key]:
                whole = np.zeros(many)
                whole[list(chosen)] = q
                states.append(whole)
    states.sort(key=lambda q: (-round(float(np.abs(q).max()), 9), *np.round(-q, 9).tolist()))
    slopes = [jacobian(averages, q, tau) for q in states]
    eigenvalue = np.array([float(np.linalg.eigvals(one).real.max()) for one in slopes])
    # Two equal normal sources turn into each other: their states are no list.
    flat = np.flatnonzero(np.abs(eigenvalue) < _MARGINAL * tau)
    if flat.size:
        raise HdicaError(
            "the fixed points are not a list (one is neither stable nor unstable at Q = "
            f"{np.round(states[flat[0]], 6).tolist()}: a continuum of them, or a critical step "
            "size)",
            ["sources", "tau"],
        )
    pairs = zip(slopes, states, strict=True)
    steps = [np.linalg.solve(one, drift(averages, q, tau)) for one, q in pairs]
    error = np.array([np.abs(step).max() + 1e-14 for step in steps])
    return States(np.array(states), eigenvalue, error)
