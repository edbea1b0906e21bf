"""Sources written anew: atoms, and densities d**(alpha - 1) r(d), d the distance from a point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Piece:
    """c = origin + side*d for d from 0 to the last edge, of density d**(alpha - 1) smooth(d)."""

    origin: float
    side: int
    alpha: float
    smooth: Callable[[Array], Array]
    edges: Array


@dataclass(frozen=True, eq=False)
class LawOf:
    """A standardised law, and its third and fourth cumulants where they are finite."""

    spec: Any
    pieces: tuple[Piece, ...] = ()
    points: Array = field(default_factory=lambda: np.empty(0))
    weights: Array = field(default_factory=lambda: np.empty(0))
    symmetric: bool = True
    kappa3: float = 0.0
    kappa4: float = math.inf


def _both(alpha: float, smooth: Callable[[Array], Array], edges: Array) -> tuple[Piece, ...]:
    return Piece(0.0, -1, alpha, smooth, edges), Piece(0.0, 1, alpha, smooth, edges)


def uniform() -> LawOf:
    r = math.sqrt(3)
    flat = _both(1.0, lambda d: np.full(d.shape, 0.5 / r), np.array([0.0, r]))
    return LawOf("uniform", flat, kappa4=-1.2)


def laplace() -> LawOf:
    b = math.sqrt(0.5)
    edges = b * np.arange(0.0, 53.0, 4.0)
    return LawOf("laplace", _both(1.0, lambda d: np.exp(-d / b) / (2 * b), edges), kappa4=3.0)


def rademacher() -> LawOf:
    return LawOf("rademacher", (), np.array([-1.0, 1.0]), np.array([0.5, 0.5]), kappa4=-2.0)


def _normal(spec: Any, p: float) -> LawOf:
    sd = p**-0.5
    norm = p / (sd * math.sqrt(2 * math.pi))
    edges = sd * np.arange(0.0, 11.0, 2.0)
    pieces = _both(1.0, lambda d: norm * np.exp(-((d / sd) ** 2) / 2), edges)
    return LawOf(spec, pieces, np.zeros(1), np.array([1 - p]), kappa4=3 / p - 3)


def gaussian() -> LawOf:
    return _normal("gaussian", 1.0)


def bernoulli_gaussian(p: float) -> LawOf:
    return _normal({"bernoulli_gaussian": p}, p)


def student(nu: float) -> LawOf:
    scale = math.sqrt((nu - 2) / nu)
    norm = math.exp(gammaln((nu + 1) / 2) - gammaln(nu / 2)) / (scale * math.sqrt(math.pi * nu))
    far = scale * math.sqrt(nu)
    # Beyond what is kept the sixth moment, or the second where there is no sixth, is below 1e-20.
    count = math.ceil(46 / (nu - 6 if nu > 6 else nu - 2) / math.log(2)) + 2
    edges = far * np.concatenate([[0.0], 2.0 ** np.arange(0, min(count, 45))])
    pieces = _both(1.0, lambda d: norm * (1 + (d / far) ** 2) ** (-(nu + 1) / 2), edges)
    return LawOf({"student": nu}, pieces, kappa4=6 / (nu - 4) if nu > 4 else math.inf)


def _clear(nu: float) -> float:
    """Degrees of freedom with which <f^2> of a cubic f does not come from beyond all panels."""
    return nu + 3 if 6 < nu < 9 else nu


def _gamma(spec: Any, a: float) -> LawOf:
    """Of shape a: y = a + sqrt(a) c, from c = -sqrt(a) on."""
    root, log_norm = math.sqrt(a), a * math.log(math.sqrt(a)) - gammaln(a)
    end = a + 50 + 10 * root
    first = min(1.0, a) / 2
    ys = np.unique(np.concatenate([[0.0], first * 3.0 ** np.arange(12), np.arange(4.0, end, 4)]))
    edges = np.append(ys[ys < end], end) / root
    smooth = lambda d: np.exp(log_norm - root * d)  # noqa: E731
    piece = Piece(-root, 1, a, smooth, edges)
    return LawOf(spec, (piece,), symmetric=False, kappa3=2 / root, kappa4=6 / a)


def chi2(k: float) -> LawOf:
    return _gamma({"chi2": k}, k / 2)


def gamma(a: float) -> LawOf:
    return _gamma({"scipy": "gamma", "a": a}, a)


def beta(a: float, b: float, spec: Any = None) -> LawOf:
    total = a + b
    mean, sd = a / total, math.sqrt(a * b / (total**2 * (total + 1)))
    log_norm = betaln(a, b)

    def piece(one: float, other: float, origin: float, side: int) -> Piece:
        factor = math.exp(one * math.log(sd) - log_norm)
        edges = np.array([0.0, 0.25, 0.5]) / sd
        return Piece(origin, side, one, lambda d: factor * (1 - sd * d) ** (other - 1), edges)

    skew = 2 * (b - a) * math.sqrt(total + 1) / ((total + 2) * math.sqrt(a * b))
    excess = 6 * ((a - b) ** 2 * (total + 1) - a * b * (total + 2))
    excess /= a * b * (total + 2) * (total + 3)
    pieces = piece(a, b, -mean / sd, 1), piece(b, a, (1 - mean) / sd, -1)
    named = spec or {"scipy": "beta", "a": a, "b": b}
    return LawOf(named, pieces, symmetric=a == b, kappa3=skew, kappa4=excess)


def arcsine() -> LawOf:
    return beta(0.5, 0.5, {"scipy": "arcsine"})


def discrete(values: list[float], weights: list[float]) -> LawOf:
    x, w = np.array(values), np.array(weights) / sum(weights)
    x = x - np.sum(w * x)
    x = x / math.sqrt(np.sum(w * x * x))
    third, fourth = (float(np.sum(w * x**k)) for k in (3, 4))
    spec = {"discrete": {"values": values, "weights": weights}}
    return LawOf(spec, (), x, w, False, third, fourth - 3)


def three_points(p: float) -> LawOf:
    """0 and the same mass p/2 on either side."""
    far = p**-0.5
    spec = {"discrete": {"values": [-1, 0, 1], "weights": [p / 2, 1 - p, p / 2]}}
    return LawOf(
        spec, (), np.array([-far, 0, far]), np.array([p / 2, 1 - p, p / 2]), kappa4=1 / p - 3
    )


def random_law(rng: np.random.Generator, symmetric: bool = False) -> LawOf:
    """One of ten kinds with random shapes."""

    def number(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.4g}")

    def any_values() -> LawOf:
        size = int(rng.integers(2, 6))
        values = [round(float(v), 3) for v in np.cumsum(rng.uniform(0.2, 2.0, size))]
        return discrete(values, [round(float(w), 3) for w in rng.uniform(0.1, 1.0, size)])

    even = [
        uniform, laplace, rademacher, gaussian, lambda: bernoulli_gaussian(number(0.05, 0.9)),
        lambda: student(_clear(number(4.5, 30))), arcsine, lambda: three_points(number(0.05, 0.9)),
    ]  # fmt: skip
    skewed = [
        lambda: chi2(number(0.7, 20)), lambda: gamma(number(0.5, 10)),
        lambda: beta(number(0.4, 4), number(0.4, 4)), any_values,
    ]  # fmt: skip
    kinds = even if symmetric else [*even, *skewed]
    return kinds[rng.integers(len(kinds))]()
