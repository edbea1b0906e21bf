"""Laws as smooth pieces: what quadrature that refines itself needs to know of a source.

A law is atoms and parts. On a part the variable is c(t), and c and the mass dP/dt are smooth in
t: ends of the support, cusps and algebraic tails are taken away by the choice of t, so that
panels of t of moderate width resolve the law, and an integral may be cut at any c.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hdica.ingredients.adaptive import ORDER, gauss_legendre, resolving_edges
from hdica.ingredients.quadrature import Nodes

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
FARTHEST = 184.0
"""Minus the logarithm of the mass beyond which tails are cut off: exp(-184) = 1e-80."""


@dataclass(frozen=True, eq=False)
class Part:
    """A smooth piece of a law: c(t), increasing, and its mass dP/dt, both vectorised.

    ``place`` is t at which c(t) has a given value, anything beyond the range for values outside;
    ``first`` are the range of t and places in it at which to begin to cut, increasing. ``width`` is
    the standard deviation of a normal piece wherever it lies, whose tails are known by that; else
    0, and tails are judged by where the range ends.
    """

    point: Function
    mass: Function
    place: Function
    first: tuple[float, ...]
    width: float = 0.0


@dataclass(frozen=True, eq=False)
class Law:
    """Smooth pieces and atoms (None if there are none), all masses together 1.

    ``endless`` says that there are more atoms, of no weight, than could be listed.
    """

    parts: tuple[Part, ...] = ()
    atoms: Nodes | None = None
    endless: bool = False


@lru_cache(maxsize=256)
def part_edges(part: Part) -> Array:
    """Edges in t between which mass, mean and variance of a part are short polynomials."""

    def functions(t: Array) -> Array:
        c, mass = part.point(t), part.mass(t)
        return np.stack([mass, c * mass, c * c * mass])

    # An integrand that needs more in the tails has its panels halved there.
    return resolving_edges(functions, np.array(part.first), 1e-8, floor=1.0)


def cut(part: Part, points: Array) -> Array:
    """The edges of a part and the places in it of some values of c, increasing."""
    edges = part_edges(part)
    with np.errstate(all="ignore"):
        places = part.place(np.asarray(points, dtype=float))
    inside = places[(places > edges[0]) & (places < edges[-1])]
    return np.unique(np.concatenate([edges, inside]))


def composite_rule(law: Law, points: Array, order: int = ORDER) -> Nodes:
    """A composite Gauss rule of a whole law, its panels cut at some values of c."""
    x, w = gauss_legendre(order)
    found = [] if law.atoms is None else [(law.atoms.points, law.atoms.weights)]
    for part in law.parts:
        edges = cut(part, points)
        half = np.diff(edges)[:, None] / 2
        t = (edges[:-1, None] + half * (x + 1)).ravel()
        found.append((part.point(t), part.mass(t) * (half * w).ravel()))
    return Nodes(np.concatenate([c for c, _ in found]), np.concatenate([w for _, w in found]))


def _doubling(end: float, step: float = 1.0) -> tuple[float, ...]:
    """0, step, 2 step, 4 step, ... up to the end."""
    found = [0.0]
    while step < end:
        found.append(step)
        step *= 2
    return (*found, end)


def uniform_law(low: float, high: float) -> Law:
    """Density 1/(high - low) between two ends."""
    width = high - low
    flat = Part(lambda t: t, lambda t: np.full(t.shape, 1 / width), lambda c: c, (low, high))
    return Law((flat,))


def normal_law(scale: float, mass: float = 1.0) -> Law:
    """A centred normal law of a given width; the rest of the mass is an atom at zero."""
    norm = mass / math.sqrt(2 * math.pi)
    half = _doubling(19.2)
    ends = (*(-t for t in half[:0:-1]), *half)
    part = Part(lambda t: scale * t, lambda t: norm * np.exp(-t * t / 2), lambda c: c / scale, ends)
    atom = Nodes(np.zeros(1), np.array([1 - mass])) if mass < 1 else None
    return Law((part,), atom)


def normal_part(mean: float, scale: float, mass: float) -> Part:
    """A normal law of given mean and width, of a given mass."""
    half = _doubling(19.2)
    norm = mass / math.sqrt(2 * math.pi)
    return Part(
        lambda t: mean + scale * t,
        lambda t: norm * np.exp(-t * t / 2),
        lambda c: (c - mean) / scale,
        (*(-t for t in half[:0:-1]), *half),
        scale,
    )


def symmetric_law(right: Part) -> Law:
    """The law of which one half, on c >= 0, is given."""
    left = Part(
        lambda t: -right.point(-t),
        lambda t: right.mass(-t),
        lambda c: -right.place(-c),
        tuple(-t for t in right.first[::-1]),
    )
    return Law((left, right))


def laplace_law(scale: float) -> Law:
    """Density exp(-|c|/scale)/(2 scale)."""
    return symmetric_law(
        Part(
            lambda t: scale * t,
            lambda t: np.exp(-t) / 2,
            lambda c: c / scale,
            _doubling(FARTHEST),
        )
    )


def _with_mass(part: Part, total: float) -> Part:
    """A part whose mass is known but for a factor."""
    found = composite_rule(Law((part,)), np.empty(0)).weights
    factor = total / float(np.sum(found))
    return replace(part, mass=lambda t: factor * part.mass(t))


def student_law(nu: float, scale: float) -> Law:
    """Student's t with nu degrees of freedom, times a scale."""

    def mass(t: Array) -> Array:
        y = np.sinh(t)
        return np.asarray(np.exp(-(nu + 1) / 2 * np.log1p(y * y / nu)) * np.cosh(t))

    t = np.linspace(0.5, FARTHEST / 2 + 8, 4000)
    with np.errstate(all="ignore"):
        held = mass(t) > math.exp(-FARTHEST)
    end = float(t[np.flatnonzero(held)[-1]])
    ends = _doubling(end, 0.5)
    half = Part(lambda t: scale * np.sinh(t), mass, lambda c: np.arcsinh(c / scale), ends)
    return symmetric_law(_with_mass(half, 0.5))


def chi2_law(k: float) -> Law:
    """The standardised chi-squared law: t = log(y/k) tames the edge at y = 0."""
    scale = math.sqrt(k / 2)

    def mass(t: Array) -> Array:
        return np.asarray(np.exp(k / 2 * (t - np.expm1(t))))

    def place(c: Array) -> Array:
        with np.errstate(divide="ignore"):  # the edge itself, at -inf
            return np.log1p(np.maximum(c / scale, -1.0))

    # Left of the peak the mass falls as exp(k t/2), right of it faster than any power of y.
    step = min(1.0, math.sqrt(2 / k))
    high = math.log1p((2 * FARTHEST + 40 * math.sqrt(k)) / k)
    left = [-t for t in _doubling(2 * FARTHEST / k + 1, step)[:0:-1]]
    part = Part(lambda t: scale * np.expm1(t), mass, place, (*left, *_doubling(high, step)))
    return Law((_with_mass(part, 1.0),))


def quantile_law(
    lower: Function, upper: Function, log_cdf: Function, log_sf: Function, mean: float, sd: float
) -> Law:
    """A law known by its quantiles, standardised: for densities that are singular or unknown.

    ``lower`` and ``upper`` are the quantile functions of u and of 1 - u, for u in (0, 1/2);
    ``mean`` and ``sd`` are those of the law that they describe.
    """

    def half(quantile: Function, log_mass: Function, sign: float) -> Part:
        # t = sign log u, so that c increases on both sides.
        def raw(t: Array) -> Array:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some laws complain at u = 1e-80
                return np.asarray((quantile(np.exp(sign * t)) - mean) / sd, dtype=float)

        def place(c: Array) -> Array:
            return np.asarray(sign * log_mass(c * sd + mean), dtype=float)

        edges = _finite(raw, sign)
        return _tabulated(Part(raw, lambda t: np.exp(sign * t), place, edges))

    return Law((half(lower, log_cdf, 1.0), half(upper, log_sf, -1.0)))


def _finite(raw: Function, sign: float) -> tuple[float, ...]:
    """First edges of a half of a law: where its quantiles are numbers."""
    t = sign * (-math.log(2) - np.array(_doubling(FARTHEST)))
    known = np.isfinite(raw(t))
    last = t.size if known.all() else int(np.argmin(known))
    return tuple(sorted(t[:last].tolist()))


def _tabulated(part: Part) -> Part:
    """The same with c(t) as a polynomial on every panel: quantiles may be slow to find."""
    edges = part_edges(part)
    x, w = gauss_legendre(ORDER)
    values = part.point(edges[:-1, None] + np.diff(edges)[:, None] * (x + 1) / 2)
    orders = np.arange(ORDER) + 0.5
    coefficients = np.sum(
        values[:, None, :] * (orders[:, None] * legendre.legvander(x, ORDER - 1).T * w), axis=-1
    )

    def point(t: Array) -> Array:
        panel = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, edges.size - 2)
        inside = 2 * (t - edges[panel]) / (edges[panel + 1] - edges[panel]) - 1
        return np.asarray(legendre.legval(inside, coefficients.T[:, panel], tensor=False))

    return Part(point, part.mass, part.place, tuple(edges.tolist()))
