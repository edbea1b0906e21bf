"""Sources: the laws of the non-Gaussian latent variable c, always mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, unknown_word
from hdica.ingredients.mixtures import mixture
from hdica.ingredients.parts import (
    Law,
    chi2_law,
    laplace_law,
    normal_law,
    student_law,
    uniform_law,
)
from hdica.ingredients.plain import plain
from hdica.ingredients.quadrature import (
    Nodes,
    density_nodes,
    dot,
    gaussian_nodes,
    numbers,
    uniform_nodes,
)
from hdica.ingredients.scipy_sources import scipy_source
from hdica.ingredients.source import LEAST, MOST, double_factorial
from hdica.ingredients.source import Source as Source

Array = NDArray[np.float64]


def _signs(rng: np.random.Generator, size: int) -> Array:
    """Numbers 1 and -1 from single bits."""
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8))
    return np.asarray(bits[:size] * 2.0 - 1.0, dtype=float)


def _rademacher() -> Source:
    nodes = Nodes(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    return Source(
        "rademacher", _signs, nodes, lambda k: float(k % 2 == 0), True, lambda: Law(atoms=nodes)
    )


def _uniform() -> Source:
    r = math.sqrt(3.0)
    return Source(
        "uniform",
        lambda rng, size: rng.uniform(-r, r, size),
        uniform_nodes(-r, r, 96),
        lambda k: 0.0 if k % 2 else r**k / (k + 1),
        True,
        lambda: uniform_law(-r, r),
    )


def _laplace() -> Source:
    b = math.sqrt(0.5)

    def density(x: Array) -> Array:
        return np.asarray(np.exp(-np.abs(x) / b) / (2 * b))

    return Source(
        "laplace",
        # Faster than rng.laplace by half.
        lambda rng, size: b * _signs(rng, size) * rng.standard_exponential(size),
        density_nodes(density, -math.inf, math.inf, (0.0,)),
        lambda k: 0.0 if k % 2 else math.factorial(k) * b**k,
        True,
        lambda: laplace_law(b),
    )


def _gaussian() -> Source:
    return Source(
        "gaussian",
        lambda rng, size: rng.standard_normal(size),
        gaussian_nodes(128),
        lambda k: 0.0 if k % 2 else double_factorial(k - 1),
        True,
        lambda: normal_law(1.0),
    )


def _bernoulli_gaussian(p: float) -> Source:
    if not 0 < p <= 1:
        raise HdicaError(f"source: bernoulli_gaussian = {p} is not allowed (0 < p <= 1)")
    scale = 1 / math.sqrt(p)
    normal = gaussian_nodes(128)
    nodes = Nodes(np.append(scale * normal.points, 0.0), np.append(p * normal.weights, 1 - p))

    def sample(rng: np.random.Generator, size: int) -> Array:
        active = rng.random(size) < p
        return np.where(active, scale * rng.standard_normal(size), 0.0)

    def moment(k: int) -> float:
        if k == 0:
            return 1.0
        return 0.0 if k % 2 else p * scale**k * double_factorial(k - 1)

    label = f"bernoulli_gaussian({p:g})"
    return Source(label, sample, nodes, moment, True, lambda: normal_law(scale, p))


def _student(nu: float) -> Source:
    if not nu > 2:
        raise HdicaError(f"source: student = {nu} is not allowed (nu > 2, for unit variance)")
    from scipy.special import gammaln

    scale = math.sqrt((nu - 2) / nu)
    log_norm = gammaln((nu + 1) / 2) - gammaln(nu / 2) - math.log(nu * math.pi) / 2

    def density(x: Array) -> Array:
        y = x / scale
        return np.asarray(np.exp(log_norm - (nu + 1) / 2 * np.log1p(y * y / nu)) / scale)

    def moment(k: int) -> float:
        if k >= nu:
            return math.inf
        if k % 2:
            return 0.0
        return math.prod((nu - 2) * (2 * i - 1) / (nu - 2 * i) for i in range(1, k // 2 + 1))

    return Source(
        f"student({nu:g})",
        lambda rng, size: scale * rng.standard_t(nu, size),
        density_nodes(density, -math.inf, math.inf, (0.0,)),
        moment,
        True,
        lambda: student_law(nu, scale),
    )


def _chi2(k: float) -> Source:
    if not k > 0:
        raise HdicaError(f"source: chi2 = {k} is not allowed (degrees of freedom k > 0)")
    from scipy.special import gammaln

    shift, scale = k, 1 / math.sqrt(2 * k)
    log_norm = k / 2 * math.log(2) + gammaln(k / 2)

    def density(x: Array) -> Array:
        return np.asarray(np.exp((k / 2 - 1) * np.log(x) - x / 2 - log_norm))

    raw = density_nodes(density, 0.0, math.inf)
    nodes = Nodes((raw.points - shift) * scale, raw.weights)

    cumulants = [2.0 ** (i - 1) * math.factorial(i - 1) * k * scale**i for i in range(1, 65)]
    cumulants[0] = 0.0

    def moment(j: int) -> float:
        # From the cumulants of the standardised law, all of one sign: nothing cancels.
        m = [1.0]
        for order in range(1, j + 1):
            terms = (
                math.comb(order - 1, i - 1) * cumulants[i - 1] * m[order - i]
                for i in range(2, order + 1)
            )
            m.append(math.fsum(terms))
        return m[j]

    def sample(rng: np.random.Generator, size: int) -> Array:
        return (rng.chisquare(k, size) - shift) * scale

    return Source(f"chi2({k:g})", sample, nodes, moment, False, lambda: chi2_law(k))


def _discrete(values: list[float], weights: list[float] | None = None) -> Source:
    x = numbers(values)
    w = numbers([1.0] * (0 if x is None else x.size) if weights is None else weights)
    if x is None or w is None or x.size < 2 or w.shape != x.shape:
        raise HdicaError("source: discrete needs as many weights as values, at least two of each")
    with np.errstate(all="ignore"):
        w = w / w.sum()
        if not np.all(w > 0):
            raise HdicaError(f"source: discrete weights {weights} are not allowed (all above zero)")
        mean = dot(w, x)
        sd = math.sqrt(dot(w, (x - mean) ** 2))
    if not 0 < sd < math.inf:
        raise HdicaError(
            f"source: discrete values {values} are not allowed (finite numbers: they must differ)"
        )
    return _standard_discrete(tuple(((x - mean) / sd).tolist()), tuple(w.tolist()), mean / sd)


@lru_cache(maxsize=64)
def _standard_discrete(
    values: tuple[float, ...], weights: tuple[float, ...], mean: float
) -> Source:
    """A law of mean 0 and variance 1, which was moved by ``mean`` standard deviations."""
    z, w = np.array(values), np.array(weights)
    edges = np.cumsum(w)[:-1]
    symmetric = all(abs(dot(w, z**k)) < 1e-12 for k in range(1, 2 * z.size, 2))
    nodes = Nodes(z, w)
    return Source(
        "discrete",
        lambda rng, size: z[np.searchsorted(edges, rng.random(size), side="right")],
        nodes,
        lambda k: dot(w, z**k),
        symmetric,
        lambda: Law(atoms=nodes),
        mean,
    )


# The same source is the same object, by which averages over it are remembered.
_NAMED: dict[str, Callable[[], Source]] = {
    "rademacher": cache(_rademacher),
    "uniform": cache(_uniform),
    "laplace": cache(_laplace),
    "gaussian": cache(_gaussian),
}
_WITH_NUMBER: dict[str, Callable[[float], Source]] = {
    "bernoulli_gaussian": lru_cache(maxsize=64)(_bernoulli_gaussian),
    "student": lru_cache(maxsize=64)(_student),
    "chi2": lru_cache(maxsize=64)(_chi2),
}
NAMES = (*_NAMED, *_WITH_NUMBER, "scipy", "discrete", "mixture")
ALLOWED = (
    ", ".join(_NAMED)
    + ", {bernoulli_gaussian: p}, {student: nu}, {chi2: k}, "
    + "{scipy: name, ...}, {discrete: {values, weights}} or {mixture: {weights, means, sds}}"
)


def make_source(spec: str | dict[str, Any]) -> Source:
    """The source that a study names.

    ``"rademacher"``, ``"uniform"``, ``"laplace"``, ``"gaussian"``, ``{"bernoulli_gaussian": p}``,
    ``{"student": nu}``, ``{"chi2": k}``, ``{"discrete": {"values": ..., "weights": ...}}``,
    ``{"mixture": {"weights": ..., "means": ..., "sds": ...}}`` of normal laws, with atoms where an
    sd is 0, or ``{"scipy": name, shape...}``: any law of ``scipy.stats`` with a finite variance,
    ``{"scipy": "poisson", "mu": 3}`` as well as ``{"scipy": "gamma", "a": 2}``.
    """
    if isinstance(spec, str):
        if spec.lower() in ("normal", "norm", "gauss"):
            raise HdicaError(
                f"source: {spec!r} is not known (did you mean 'gaussian', which no rule can learn? "
                f"allowed: {ALLOWED})"
            )
        if spec not in _NAMED:
            raise unknown_word("source", spec, NAMES, ALLOWED)
        return _NAMED[spec]()
    given = plain(spec)
    if not isinstance(given, dict):
        raise unknown_word("source", given, NAMES, ALLOWED)
    return _from_mapping(given)


def _from_mapping(spec: dict[str, Any]) -> Source:
    if "scipy" in spec:
        names = [key for key in spec if key != "scipy"]
        shape = numbers([spec[key] for key in names])
        if shape is None or not np.all(np.abs(shape) < MOST):
            raise HdicaError(f"source: {spec!r} is not allowed (its shapes are finite numbers)")
        pairs = sorted(zip(names, shape.tolist(), strict=True))
        return scipy_source(str(spec["scipy"]), **dict(pairs))
    if len(spec) == 1:
        ((name, value),) = spec.items()
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in _WITH_NUMBER and number:
            if 0 < value < LEAST or abs(value) > MOST:
                raise HdicaError(
                    f"source: {name} = {value!r} is not allowed (from {LEAST:g} to {MOST:g})"
                )
            return _WITH_NUMBER[name](float(value))
        if name == "discrete" and isinstance(value, dict) and set(value) <= {"values", "weights"}:
            return _discrete(value.get("values", []), value.get("weights"))
        if name == "mixture":
            return mixture(value)
    raise unknown_word("source", spec, NAMES, ALLOWED)
