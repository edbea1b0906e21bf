"""What a source is: a law of mean 0 and variance 1, by atoms and smooth parts.

On a part the variable is c(t), and c and the mass dP/dt are smooth in t: ends of the support,
cusps and algebraic tails are taken away by the choice of t, so that panels of t of moderate width
resolve the law, and an integral may be cut at any c.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients import quadrature
from hdica.ingredients.plain import Array, Function

Sampler = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True, eq=False)
class Source:
    """A standardised law.

    ``sample(rng, size)`` draws an array of shape (size,). ``nodes`` is a discrete measure for
    expectations of functions as smooth as the law itself; its error is not known, and averages that
    carry an error are taken over ``law``. ``moment(k)`` is E c^k, ``inf`` where it does not exist;
    ``symmetric`` says whether -c has the same law. ``shift`` is the mean of the law as it was
    written, in units of its standard deviation, 0 for the laws that are standardised by their name:
    c + shift is that law up to a scale.
    """

    label: str
    sample: Sampler
    nodes: quadrature.Nodes = field(repr=False)
    moment: Callable[[int], float] = field(repr=False)
    symmetric: bool
    find_law: Callable[[], Law] = field(repr=False)
    shift: float = 0.0

    @cached_property
    def law(self) -> Law:
        """The law as atoms and smooth pieces, over which quadrature refines itself."""
        return self.find_law()


def double_factorial(k: int) -> float:
    """The product k (k - 2) (k - 4) ... down to 1 or 2; 1 for k <= 0."""
    return math.prod(range(k, 0, -2)) if k > 0 else 1.0


FARTHEST = 184.0
"""Minus the logarithm of the mass beyond which tails are cut off: exp(-184) = 1e-80."""


@dataclass(frozen=True, eq=False)
class Part:
    """A smooth piece of a law: c(t), increasing, and its mass dP/dt, both vectorised.

    ``slope`` is dc/dt; ``place`` is t at which c(t) has a given value, anything beyond the range
    for values outside;
    ``first`` are the range of t and places in it at which to begin to cut, increasing. ``width`` is
    the standard deviation of a normal piece wherever it lies, whose tails are known by that; else
    0, and tails are judged by where the range ends.
    """

    point: Function
    slope: Function
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
    atoms: quadrature.Nodes | None = None
    endless: bool = False


@lru_cache(maxsize=256)
def part_edges(part: Part) -> Array:
    """Edges in t between which mass, mean and variance of a part are short polynomials."""

    def functions(t: Array) -> Array:
        c, mass = part.point(t), part.mass(t)
        return np.stack([mass, c * mass, c * c * mass])

    # An integrand that needs more in the tails has its panels halved there.
    return quadrature.resolving_edges(functions, np.array(part.first), 1e-8, floor=1.0)


def cut(part: Part, points: Array) -> Array:
    """The edges of a part and the places in it of some values of c, increasing."""
    edges = part_edges(part)
    with np.errstate(all="ignore"):
        places = part.place(np.asarray(points, dtype=float))
    inside = places[(places > edges[0]) & (places < edges[-1])]
    return np.unique(np.concatenate([edges, inside]))


def cut_rows(
    edges: Array, part: Part, places: Array, order: int
) -> tuple[NDArray[np.intp], Array, Array]:
    """Composite Gauss rules of a part with these edges in t, one for each row of values of c.

    Each is cut at the values in its row, shape (rows, cuts), NaN for none. Returned are the row,
    the value and the weight of every node.
    """
    with np.errstate(all="ignore"):
        at = np.nan_to_num(part.place(places), nan=edges[0], posinf=edges[-1], neginf=edges[0])
    inner = np.broadcast_to(edges, (places.shape[0], edges.size))
    every = np.sort(np.concatenate([inner, np.clip(at, edges[0], edges[-1])], axis=1), axis=1)
    row, column = np.nonzero(np.diff(every, axis=1) > _EMPTY * (1 + np.abs(every[:, 1:])))
    low, high = every[row, column], every[row, column + 1]
    x, w = quadrature.gauss_legendre(order)
    half = (high - low)[:, None] / 2
    t = low[:, None] + half * (x + 1)
    return np.repeat(row, order), part.point(t).ravel(), (part.mass(t) * half * w).ravel()


_EMPTY = 1e-13
"""Width of a panel, relative to its place, below which nothing lies in it."""


def composite_rule(law: Law, points: Array, order: int = quadrature.ORDER) -> quadrature.Nodes:
    """A composite Gauss rule of a whole law, its panels cut at some values of c."""
    x, w = quadrature.gauss_legendre(order)
    rules = [] if law.atoms is None else [law.atoms]
    for part in law.parts:
        edges = cut(part, points)
        half = np.diff(edges)[:, None] / 2
        t = (edges[:-1, None] + half * (x + 1)).ravel()
        rules.append(quadrature.Nodes(part.point(t), part.mass(t) * (half * w).ravel()))
    return quadrature.Nodes(*map(np.concatenate, zip(*rules, strict=True)))


def _doubling(end: float, step: float = 1.0) -> tuple[float, ...]:
    """0, step, 2 step, 4 step, ... up to the end."""
    points = [0.0]
    while step < end:
        points.append(step)
        step *= 2
    return (*points, end)


def uniform_law(low: float, high: float) -> Law:
    """Density 1/(high - low) between two ends."""
    width = high - low
    flat = Part(
        lambda t: t, np.ones_like, lambda t: np.full(t.shape, 1 / width), lambda c: c, (low, high)
    )
    return Law((flat,))


def normal_law(scale: float, mass: float = 1.0) -> Law:
    """A centred normal law of a given width; the rest of the mass is an atom at zero."""
    part = replace(normal_part(0.0, scale, mass), width=0.0)
    atom = quadrature.Nodes(np.zeros(1), np.array([1 - mass])) if mass < 1 else None
    return Law((part,), atom)


def normal_part(mean: float, scale: float, mass: float) -> Part:
    """A normal law of given mean and width, of a given mass."""
    half = _doubling(19.2)
    norm = mass / math.sqrt(2 * math.pi)
    return Part(
        lambda t: mean + scale * t,
        lambda t: np.full(t.shape, scale),
        lambda t: norm * np.exp(-t * t / 2),
        lambda c: (c - mean) / scale,
        (*(-t for t in half[:0:-1]), *half),
        scale,
    )


def symmetric_law(right: Part) -> Law:
    """The law of which one half, on c >= 0, is given."""
    left = Part(
        lambda t: -right.point(-t),
        lambda t: right.slope(-t),
        lambda t: right.mass(-t),
        lambda c: -right.place(-c),
        tuple(-t for t in right.first[::-1]),
    )
    return Law((left, right))


def laplace_law(scale: float) -> Law:
    """Density exp(-|c|/scale)/(2 scale)."""
    ends = _doubling(FARTHEST)
    right = Part(
        lambda t: scale * t,
        lambda t: np.full(t.shape, scale),
        lambda t: np.exp(-t) / 2,
        lambda c: c / scale,
        ends,
    )
    return symmetric_law(right)


def _with_mass(part: Part, total: float) -> Part:
    """A part whose mass is known but for a factor."""
    weights = composite_rule(Law((part,)), np.empty(0)).weights
    factor = total / float(np.sum(weights))
    return replace(part, mass=lambda t: factor * part.mass(t))


def student_law(nu: float, scale: float) -> Law:
    """Student's t with nu degrees of freedom, times a scale."""

    def mass(t: Array) -> Array:
        y = np.sinh(t)
        return np.exp(-(nu + 1) / 2 * np.log1p(y * y / nu)) * np.cosh(t)

    t = np.linspace(0.5, FARTHEST / 2 + 8, 4000)
    with np.errstate(all="ignore"):
        matters = mass(t) > math.exp(-FARTHEST)
    end = float(t[np.flatnonzero(matters)[-1]])
    ends = _doubling(end, 0.5)
    half = Part(
        lambda t: scale * np.sinh(t),
        lambda t: scale * np.cosh(t),
        mass,
        lambda c: np.arcsinh(c / scale),
        ends,
    )
    return symmetric_law(_with_mass(half, 0.5))


def beta_law(a: float, end: float) -> Law:
    """Density in proportion to (1 - c^2/end^2)^(a - 1): c = end tanh(t) tames the ends."""

    def mass(t: Array) -> Array:
        # 1/cosh(t)^(2 a), which overflows nowhere.
        return np.exp(-2 * a * (t + np.log1p(np.exp(-2 * t)) - math.log(2)))

    def place(c: Array) -> Array:
        with np.errstate(divide="ignore"):  # the ends themselves
            return np.arctanh(np.clip(c / end, -1.0, 1.0))

    half = Part(
        lambda t: end * np.tanh(t),
        lambda t: end / np.cosh(np.minimum(t, 350.0)) ** 2,
        mass,
        place,
        _doubling(FARTHEST / (2 * a) + 1, min(1.0, 1 / math.sqrt(a))),
    )
    return symmetric_law(_with_mass(half, 0.5))


def chi2_law(k: float) -> Law:
    """The standardised chi-squared law: t = log(y/k) tames the edge at y = 0."""
    scale = math.sqrt(k / 2)

    def place(c: Array) -> Array:
        with np.errstate(divide="ignore"):  # the edge itself, at -inf
            return np.log1p(np.maximum(c / scale, -1.0))

    # Left of the peak the mass falls as exp(k t/2), right of it faster than any power of y.
    step = min(1.0, math.sqrt(2 / k))
    high = math.log1p((2 * FARTHEST + 40 * math.sqrt(k)) / k)
    left = [-t for t in _doubling(2 * FARTHEST / k + 1, step)[:0:-1]]
    ends = (*left, *_doubling(high, step))
    part = Part(
        lambda t: scale * np.expm1(t),
        lambda t: scale * np.exp(t),
        lambda t: np.exp(k / 2 * (t - np.expm1(t))),
        place,
        ends,
    )
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
                return (quantile(np.exp(sign * t)) - mean) / sd

        # The first edges are where quantiles are numbers.
        t = sign * (-math.log(2) - np.array(_doubling(FARTHEST)))
        finite = np.isfinite(raw(t))
        last = t.size if finite.all() else np.argmin(finite)
        edges = tuple(sorted(t[:last].tolist()))
        part = Part(
            raw, raw, lambda t: np.exp(sign * t), lambda c: sign * log_mass(c * sd + mean), edges
        )
        # As a polynomial on every panel: quantiles may be slow to find.
        resolved = part_edges(part)
        point, slope = tabulated(raw, resolved)
        return replace(part, point=point, slope=slope, first=tuple(resolved.tolist()))

    return Law((half(lower, log_cdf, 1.0), half(upper, log_sf, -1.0)))


def tabulated(function: Function, edges: Array) -> tuple[Function, Function]:
    """A function as a polynomial on every panel between edges that resolve it, and its slope."""
    x, w = quadrature.gauss_legendre(quadrature.ORDER)
    points = edges[:-1, None] + np.diff(edges)[:, None] * (x + 1) / 2
    values = function(points.ravel()).reshape(points.shape)
    basis = legendre.legvander(x, quadrature.ORDER - 1).T
    to_series = (np.arange(quadrature.ORDER) + 0.5)[:, None] * basis * w
    coefficients = np.sum(values[:, None, :] * to_series, axis=-1).T
    slopes = 2 / np.diff(edges) * legendre.legder(coefficients, axis=0)

    def value(table: Array, t: Array) -> Array:
        panel = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, edges.size - 2)
        inside = 2 * (t - edges[panel]) / (edges[panel + 1] - edges[panel]) - 1
        return np.asarray(legendre.legval(inside, table[:, panel], tensor=False))

    return partial(value, coefficients), partial(value, slopes)


MOST_COMPONENTS = 64
"""Components of a mixture: each brings quadrature points of its own to every average."""
_KEYS = ("weights", "means", "sds")
_NARROWEST = 1e-9
"""Smallest standard deviation of a component beside that of the whole, unless it is zero."""
_EVEN = 1e-12


def _columns(spec: object) -> tuple[Array, Array, Array]:
    """Weights of sum one, means and standard deviations of the components."""
    if not isinstance(spec, dict) or set(spec) != set(_KEYS):
        raise HdicaError(
            f"source: mixture = {spec!r} is not allowed (three lists: weights, means and sds)"
        )
    rows = [quadrature.numbers(spec[key]) for key in _KEYS]
    w, means, sds = (np.empty(0) if row is None else row for row in rows)
    fits = w.size > 0 and w.size == means.size == sds.size
    finite = fits and all(np.all(np.abs(row) < 1e100) for row in (w, means, sds))
    lists = "weights, means and sds are lists of finite numbers, one of each a component"
    for allowed, what, why in (
        (finite, f" = {spec!r} is", lists),
        (w.size <= MOST_COMPONENTS, f" with {w.size} components is", f"at most {MOST_COMPONENTS}"),
        (np.all(w > 0), f" weights {w.tolist()} are", "all above zero"),
        (np.all(sds >= 0), f" sds {sds.tolist()} are", "all >= 0; 0 makes an atom"),
    ):
        if not allowed:
            raise HdicaError(f"source: mixture{what} not allowed ({why})")
    return w / w.sum(), means, sds


def _rule(w: Array, means: Array, sds: Array) -> quadrature.Nodes:
    """Gauss-Hermite nodes of every component."""
    normal, wide = quadrature.gaussian_nodes(128), sds > 0
    points = (means[wide, None] + sds[wide, None] * normal.points).ravel()
    weights = (w[wide, None] * normal.weights).ravel()
    return quadrature.Nodes(np.append(points, means[~wide]), np.append(weights, w[~wide]))


def mixture(spec: object) -> Source:
    """The mixture sum_k w_k N(m_k, s_k^2), moved and scaled to mean 0 and variance 1.

    Of ``{"weights": [w_1, ...], "means": [m_1, ...], "sds": [s_1, ...]}``: weights above zero, of
    which only the ratios count; an s_k of zero is an atom at m_k. Refused if the lists do not fit,
    a number is not allowed, or the law has no width.
    """
    return _mixture(*(tuple(column.tolist()) for column in _columns(spec)))


@lru_cache(maxsize=64)
def _mixture(*columns: tuple[float, ...]) -> Source:
    w, means, sds = map(np.array, columns)
    first = quadrature.dot(w, means)
    away = means - first
    width = math.sqrt(quadrature.dot(w, away**2) + quadrature.dot(w, sds**2))
    if not width > 0 or np.any((sds > 0) & (sds < _NARROWEST * width)):
        raise HdicaError(
            f"source: mixture with means {means.tolist()} and sds {sds.tolist()} is not allowed "
            "(it needs a positive variance, and sds that are 0 or no tiny part of it)"
        )
    z, s = away / width, sds / width
    # Even if the mirror image has the same components, some of which may be in parts.
    table = np.round(np.stack([z, s], axis=1), 12) + 0.0
    both = np.concatenate([table, table * [-1.0, 1.0] + 0.0])
    _, place = np.unique(both, axis=0, return_inverse=True)
    balance = np.bincount(np.ravel(place), np.concatenate([w, -w]))
    even = bool(np.all(np.abs(balance) < _EVEN))

    def moment(k: int) -> float:
        if k <= 2:
            return (1.0, 0.0, 1.0)[k]
        if even and k % 2:
            return 0.0
        terms = (
            math.comb(k, 2 * j) * double_factorial(2 * j - 1) * z ** (k - 2 * j) * s ** (2 * j)
            for j in range(k // 2 + 1)
        )
        return math.fsum(quadrature.dot(w, term) for term in terms)

    edges = np.cumsum(w)[:-1]

    def sample(rng: np.random.Generator, size: int) -> Array:
        component = np.searchsorted(edges, rng.random(size), side="right")
        return z[component] + s[component] * rng.standard_normal(size)

    def law() -> Law:
        wide = s > 0
        rows = zip(z[wide].tolist(), s[wide].tolist(), w[wide].tolist(), strict=True)
        atoms = None if wide.all() else quadrature.Nodes(z[~wide], w[~wide])
        return Law(tuple(normal_part(*row) for row in rows), atoms)

    label = f"mixture of {w.size}"
    return Source(label, sample, _rule(w, z, s), moment, even, law, first / width)
