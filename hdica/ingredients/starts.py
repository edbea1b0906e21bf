"""Starts: the law of the estimate x at t = 0 given the feature, with |x|^2 = n but for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from hdica.errors import HdicaError, unknown_word
from hdica.ingredients.plain import VECTOR, Array, is_number, plain
from hdica.ingredients.prior import Prior, normalised
from hdica.ingredients.priors import of_length
from hdica.ingredients.quadrature import dot

NAMES = ("overlap", "normal", VECTOR)
ALLOWED = (
    "{overlap: Q0} with -1 <= Q0 <= 1, {overlap: Q0, exact: true}, or "
    "{normal: {mean: m, var: v}} with v >= 0"
)
NOT_NORMAL = (
    "is a vector, whose entries follow no normal law given those of the feature, as the densities "
    "of this method do at t = 0 (the methods 'vector', 'chain' and 'ode' take any start)"
)


class Start(NamedTuple):
    """Where a rule begins.

    ``estimate(rng, xi)`` is x of shape (n,), |x|^2 = n, given the feature xi. As n -> infinity,
    ``overlap(prior)`` is Q at t = 0, ``spread(prior)`` n times its variance, and
    ``conditional(xi)`` mean (of the shape of xi) and variance of the normal law of an entry of x
    given that of xi. ``draw_overlap(rng, n)`` is Q of an estimate in n dimensions, exact in law and
    without drawing the estimate; None where its law depends on the feature's entries. ``length`` is
    the only n of an estimate that is a vector, which has no normal law; None for all others.
    ``exact`` says that Q is the same at every n; ``square`` is |x|^2/n;
    ``bias(prior)`` is n (E Q - overlap) as n -> inf, NaN where it is not known.
    """

    label: str
    estimate: Callable[[Generator, Array], Array]
    overlap: Callable[[Prior], float]
    spread: Callable[[Prior], float]
    conditional: Callable[[Array], tuple[Array, float]]
    draw_overlap: Callable[[Generator, int], float] | None = None
    length: int | None = None
    exact: bool = False
    square: float = 1.0
    bias: Callable[[Prior], float] = lambda prior: 0.0


def overlap_start(q0: float, exact: bool, square: float = 1.0) -> Start:
    """X = Q0 xi + rest z; ``square`` is |x|^2/n, which is 1 but for one that is exact."""
    rest = math.sqrt(square - q0 * q0)

    def sampled(rng: Generator, xi: Array) -> Array:
        return normalised(q0 * xi + rest * rng.standard_normal(xi.size))

    def rotated(rng: Generator, xi: Array) -> Array:
        z = rng.standard_normal(xi.size)
        z -= xi * (dot(xi, z) / xi.size)
        return q0 * xi + rest * normalised(z)

    def drawn(rng: Generator, n: int) -> float:
        # The component of q0 xi + rest z along xi, and the squared length of the rest.
        along = q0 * math.sqrt(n) + rest * rng.standard_normal()
        return float(along / math.hypot(along, rest * math.sqrt(rng.chisquare(n - 1))))

    return Start(
        f"Q0 = {q0:g}",
        rotated if exact else sampled,
        lambda prior: q0,
        # The noise along xi, and the length of z, each move Q at order n^-1/2.
        lambda prior: 0.0 if exact else rest**6 + q0**2 * rest**4 / 2,
        lambda xi: (q0 * xi, square - q0 * q0),
        (lambda rng, n: q0) if exact else drawn,
        exact=exact,
        square=square,
        # Q = (q0 + a)/(1 + b)^(1/2): - <a b>/2 + 3 q0 <b^2>/8, a and b as in the spread.
        bias=lambda prior: 0.0 if exact else q0 * rest**2 * (1.5 * q0**2 + 0.75 * rest**2 - 1),
    )


def _normal(mean: float, var: float) -> Start:
    norm = mean**2 + var
    m, v = mean / math.sqrt(norm), var / norm

    def first(prior: Prior) -> float:
        return float(prior.nodes.mean(prior.nodes.points))

    def overlap(prior: Prior) -> float:
        return mean * first(prior) / math.sqrt(norm)

    def spread(prior: Prior) -> float:
        # delta Q = <xi g> - Q (<x g>), g = sqrt(v) z: xi and x = m + g are the two directions.
        q, drawn = overlap(prior), m * m * prior.sum_spread
        return drawn + v - 2 * q * m * v * first(prior) + q * q * (m * m * v + v * v / 2)

    def bias(prior: Prior) -> float:
        if prior.random:
            return math.nan
        return -m * v * first(prior) + 1.5 * overlap(prior) * (m * m * v + v * v / 2)

    return Start(
        f"normal({mean:g}, {var:g})",
        lambda rng, xi: normalised(mean + math.sqrt(var) * rng.standard_normal(xi.size)),
        overlap,
        spread,
        lambda xi: (np.full(np.shape(xi), m), v),
        bias=bias,
    )


def make_start(spec: object) -> Start:
    """The start that a study names.

    ``{"overlap": Q0}``: x = Q0 xi + sqrt(1 - Q0^2) z with z standard normal, then |x|^2 = n, so
    that Q fluctuates about Q0 by O(n^-1/2); with ``"exact": True`` z is orthogonal to xi and Q = Q0
    at every n. ``{"normal": {"mean": m, "var": v}}``: x_i independent of xi, then |x|^2 = n.
    """
    spec = plain(spec)
    if isinstance(spec, Mapping) and "overlap" in spec and set(spec) <= {"overlap", "exact"}:
        q0, exact = spec["overlap"], spec.get("exact", False)
        if not is_number(q0) or not abs(q0) <= 1:
            raise HdicaError(f"start: overlap = {q0!r} is not allowed (-1 <= Q0 <= 1)")
        if not isinstance(exact, bool):
            raise HdicaError(f"start: exact = {exact!r} is not allowed (true or false)")
        return overlap_start(float(q0), exact)
    if isinstance(spec, Mapping) and set(spec) == {"normal"}:
        law = spec["normal"]
        if isinstance(law, Mapping) and set(law) == {"mean", "var"}:
            mean, var = law["mean"], law["var"]
            fits = all(is_number(v) and abs(v) < 1e300 for v in (mean, var)) and var >= 0
            if fits and 0 < float(mean) * float(mean) + var < math.inf:
                return _normal(float(mean), float(var))
    raise unknown_word("start", spec, NAMES, ALLOWED)


def vector_start(values: Array) -> Start:
    """The estimate that begins with these entries, shape (n,), times what makes |x|^2 = n."""
    x = normalised(values)

    def conditional(xi: Array) -> tuple[Array, float]:
        raise HdicaError(f"start {NOT_NORMAL}")

    return Start(
        VECTOR,
        lambda rng, xi: of_length(x, "start", xi.size),
        # Of a feature that is not drawn: its entries are known, and so is the joint law.
        lambda prior: dot(prior.feature(np.random.default_rng(0), x.size), x) / x.size,
        lambda prior: 0.0,
        conditional,
        length=x.size,
    )
