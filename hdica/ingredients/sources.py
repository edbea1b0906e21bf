"""Sources: the laws of the non-Gaussian latent variable c, always mean 0 and variance 1."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator

from hdica.errors import HdicaError, unknown_word
from hdica.ingredients import laws
from hdica.ingredients.laws import Law
from hdica.ingredients.laws import Source as Source
from hdica.ingredients.plain import Array, is_number, plain
from hdica.ingredients.quadrature import (
    Nodes,
    density_nodes,
    dot,
    from_recurrence,
    gaussian_nodes,
    numbers,
    quantile_nodes,
    uniform_nodes,
)

if TYPE_CHECKING:
    from scipy.stats.distributions import rv_frozen

LEAST, MOST = 1e-9, 1e6
"""Smallest and largest number of a law: beyond, its moments are no floating-point numbers."""


def _signs(rng: Generator, size: int) -> Array:
    """Numbers 1 and -1 from single bits."""
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8))
    return np.asarray(bits[:size] * 2.0 - 1.0)


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
        lambda: laws.uniform_law(-r, r),
    )


def _laplace() -> Source:
    b = math.sqrt(0.5)

    return Source(
        "laplace",
        # Faster than rng.laplace by half.
        lambda rng, size: b * _signs(rng, size) * rng.standard_exponential(size),
        density_nodes(lambda x: np.exp(-np.abs(x) / b) / (2 * b), -math.inf, math.inf, (0.0,)),
        lambda k: 0.0 if k % 2 else math.factorial(k) * b**k,
        True,
        lambda: laws.laplace_law(b),
    )


def _gaussian() -> Source:
    return Source(
        "gaussian",
        lambda rng, size: rng.standard_normal(size),
        gaussian_nodes(128),
        lambda k: 0.0 if k % 2 else laws.double_factorial(k - 1),
        True,
        lambda: laws.normal_law(1.0),
    )


def _bernoulli_gaussian(p: float) -> Source:
    if not 0 < p <= 1:
        raise HdicaError(f"source: bernoulli_gaussian = {p} is not allowed (0 < p <= 1)")
    scale = 1 / math.sqrt(p)
    normal = gaussian_nodes(128)
    nodes = Nodes(np.append(scale * normal.points, 0.0), np.append(p * normal.weights, 1 - p))

    def sample(rng: Generator, size: int) -> Array:
        active = rng.random(size) < p
        return np.where(active, scale * rng.standard_normal(size), 0.0)

    def moment(k: int) -> float:
        if k == 0:
            return 1.0
        return 0.0 if k % 2 else p * scale**k * laws.double_factorial(k - 1)

    label = f"bernoulli_gaussian({p:g})"
    return Source(label, sample, nodes, moment, True, lambda: laws.normal_law(scale, p))


def _student(nu: float) -> Source:
    if not nu > 2:
        raise HdicaError(f"source: student = {nu} is not allowed (nu > 2, for unit variance)")
    from scipy.special import gammaln

    scale = math.sqrt((nu - 2) / nu)
    log_norm = gammaln((nu + 1) / 2) - gammaln(nu / 2) - math.log(nu * math.pi) / 2

    def density(x: Array) -> Array:
        y = x / scale
        return np.exp(log_norm - (nu + 1) / 2 * np.log1p(y * y / nu)) / scale

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
        lambda: laws.student_law(nu, scale),
    )


def _chi2(k: float) -> Source:
    if not k > 0:
        raise HdicaError(f"source: chi2 = {k} is not allowed (degrees of freedom k > 0)")
    from scipy.special import gammaln

    scale = 1 / math.sqrt(2 * k)
    log_norm = k / 2 * math.log(2) + gammaln(k / 2)

    raw = density_nodes(lambda x: np.exp((k / 2 - 1) * np.log(x) - x / 2 - log_norm), 0.0, math.inf)
    nodes = Nodes((raw.points - k) * scale, raw.weights)
    cumulants = [2.0 ** (i - 1) * math.factorial(i - 1) * k * scale**i for i in range(1, 65)]

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

    return Source(
        f"chi2({k:g})",
        lambda rng, size: (rng.chisquare(k, size) - k) * scale,
        nodes,
        moment,
        False,
        lambda: laws.chi2_law(k),
    )


def _beta(a: float) -> Source:
    if not a > 0:
        raise HdicaError(f"source: beta = {a} is not allowed (a > 0)")
    r = math.sqrt(2 * a + 1)
    # Polynomials of Gegenbauer, scaled to variance 1.
    k = np.arange(2, 96, dtype=float)
    squares = (2 * a + 1) * k * (k + 2 * a - 2) / ((2 * k + 2 * a - 1) * (2 * k + 2 * a - 3))
    nodes = from_recurrence(np.zeros(96), np.sqrt(np.append(1.0, squares)))

    def moment(k: int) -> float:
        factors = (r * r * (j - 0.5) / (a + j - 0.5) for j in range(1, k // 2 + 1))
        return 0.0 if k % 2 else math.prod(factors)

    return Source(
        f"beta({a:g})",
        lambda rng, size: r * (2 * rng.beta(a, a, size) - 1),
        nodes,
        moment,
        True,
        lambda: laws.beta_law(a, r),
    )


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
    "beta": lru_cache(maxsize=64)(_beta),
}
NAMES = (*_NAMED, *_WITH_NUMBER, "scipy", "discrete", "mixture", "sum")
ALLOWED = (
    ", ".join(_NAMED)
    + ", {bernoulli_gaussian: p}, {student: nu}, {chi2: k}, {beta: a}, "
    + "{scipy: name, ...}, {discrete: {values, weights}}, {mixture: {weights, means, sds}} or "
    + "{sum: [{law, weight}, ...]}, as {sum: {uniform: 1, laplace: 0.5}} too"
)


def make_source(spec: object) -> Source:
    """The source that a study names.

    ``"rademacher"``, ``"uniform"``, ``"laplace"``, ``"gaussian"``, ``{"bernoulli_gaussian": p}``,
    ``{"student": nu}``, ``{"chi2": k}``, ``{"beta": a}``, of density (1 - c^2/r^2)^(a - 1) where
    r^2 = 2 a + 1 (two values at a = 0, uniform at 1, normal at infinity),
    ``{"discrete": {"values": ..., "weights": ...}}``,
    ``{"mixture": {"weights": ..., "means": ..., "sds": ...}}`` of normal laws, with atoms where an
    sd is 0, or ``{"scipy": name, shape...}``: any law of ``scipy.stats`` with a finite variance,
    ``{"scipy": "poisson", "mu": 3}`` as well as ``{"scipy": "gamma", "a": 2}``.
    """
    if isinstance(spec, str) and spec in _NAMED:
        return _NAMED[spec]()
    if isinstance(spec, str) and spec.lower() in ("normal", "norm", "gauss"):
        raise HdicaError(
            f"source: {spec!r} is not known (did you mean 'gaussian', which no rule can learn? "
            f"allowed: {ALLOWED})"
        )
    spec = plain(spec)
    if not isinstance(spec, dict):
        raise unknown_word("source", spec, NAMES, ALLOWED)
    if "scipy" in spec:
        names = [key for key in spec if key != "scipy"]
        shape = numbers([spec[key] for key in names])
        if shape is None or not np.all(np.abs(shape) < MOST):
            raise HdicaError(f"source: {spec!r} is not allowed (its shapes are finite numbers)")
        pairs = sorted(zip(names, shape.tolist(), strict=True))
        return scipy_source(str(spec["scipy"]), **dict(pairs))
    if len(spec) == 1:
        ((name, value),) = spec.items()
        if name in _WITH_NUMBER and is_number(value):
            if 0 < value < LEAST or abs(value) > MOST:
                raise HdicaError(
                    f"source: {name} = {value!r} is not allowed (from {LEAST:g} to {MOST:g})"
                )
            return _WITH_NUMBER[name](float(value))
        if name == "discrete" and isinstance(value, dict) and set(value) <= {"values", "weights"}:
            return _discrete(value.get("values", []), value.get("weights"))
        if name == "mixture":
            return laws.mixture(value)
        if name == "sum":
            return _sum(value)
    raise unknown_word("source", spec, NAMES, ALLOWED)


def _sum(value: object) -> Source:
    from hdica.ingredients.sums import MOST_LAWS, sum_of  # which needs the laws that are made here

    rows = value if isinstance(value, list) else []
    if isinstance(value, dict):
        # A law that a sweep of its weight begins without.
        rows = [{"law": law, "weight": w} for law, w in value.items() if w != 0 or w is False]
    fits = (
        (not isinstance(value, dict) or len(value) > 1)
        and 1 <= len(rows) <= MOST_LAWS
        and all(
            isinstance(row, dict) and set(row) == {"law", "weight"} and is_number(row["weight"])
            for row in rows
        )
    )
    if not fits or not all(LEAST <= row["weight"] <= MOST for row in rows):
        raise HdicaError(
            f"source: sum = {value!r} is not allowed (a list of at most {MOST_LAWS} laws, each "
            f"{{law: ..., weight: w}} with w from {LEAST:g} to {MOST:g}, or weights by the names "
            "of two or more laws, some of them 0)"
        )
    return sum_of([(make_source(row["law"]), float(row["weight"])) for row in rows])


MOST_ATOMS = 4096
"""Values of a law on the whole numbers: each is an atom of every average."""
LIGHTEST, DECAYED = 1e-80, 1e-40
"""Atoms below the first are left out; a law that needs more atoms than that many may be cut where
they are below the second, beyond all that a double tells apart."""
_LOST, _TAIL = 1e-9, 1e-10


class _Frozen(NamedTuple):
    """A law of ``scipy.stats`` with its shapes, mean and standard deviation."""

    name: str
    shape: dict[str, float]
    law: rv_frozen
    mean: float
    sd: float

    def refused(self, why: str) -> HdicaError:
        return HdicaError(f"source: scipy {self.name!r} with {self.shape} is not allowed ({why})")

    def sample(self, rng: Generator, size: int) -> Array:
        draws = self.law.rvs(size=size, random_state=rng)
        return (draws - self.mean) / self.sd

    def open_ends(self, k: Array, values: Array) -> list[float]:
        """What lies at the ends of a window beyond which the support goes on."""
        least, most = self.law.support()
        below = [float(values[0])] if k[0] > least else []
        return below + ([float(values[-1])] if k[-1] < most else [])


@lru_cache(maxsize=64)
def scipy_source(name: str, **shape: float) -> Source:
    """A law of ``scipy.stats`` by its name there, standardised; ``shape`` as SciPy calls it.

    Refused if SciPy has no such law or refuses its shapes; if mean or variance are not finite; if
    quadrature cannot follow the density, or a tail of whole numbers is too long.
    """
    from scipy import stats  # half a second, and only this source needs it

    family = vars(stats).get(name)
    discrete = isinstance(family, stats.rv_discrete)
    if not discrete and not isinstance(family, stats.rv_continuous):
        raise HdicaError(
            f"source: scipy = {name!r} is not allowed (a continuous law or one on whole numbers "
            "of scipy.stats, such as 'arcsine', 'gamma' or 'poisson')"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sums that do not converge are refused below
            # Samplers of laws on whole numbers take whole shapes as whole numbers alone.
            whole = {k: int(v) if v.is_integer() else v for k, v in shape.items()}
            law = family(**(whole if discrete else shape))
            mean, var = map(float, law.stats(moments="mv"))
    except TypeError as exc:
        raise HdicaError(f"source: scipy {name!r} with {shape} is not allowed ({exc})") from None
    frozen = _Frozen(name, shape, law, mean, math.sqrt(var) if var > 0 else math.nan)
    if not (math.isfinite(mean) and math.isfinite(var) and var > 0):
        raise frozen.refused("it needs a finite mean and a finite, positive variance")
    return _on_whole_numbers(frozen) if discrete else _continuous(frozen)


def _continuous(frozen: _Frozen) -> Source:
    law, mean, sd = frozen.law, frozen.mean, frozen.sd
    raw = quantile_nodes(law.ppf, law.isf)
    nodes = Nodes((raw.points - mean) / sd, raw.weights)
    error = max(abs(float(nodes.mean(nodes.points))), abs(float(nodes.mean(nodes.points**2)) - 1))
    if not error < 1e-8:
        raise HdicaError(
            f"source: scipy = {frozen.name!r} is not allowed (its density cannot be integrated "
            f"accurately: mean and variance are off by {error:.1e})"
        )

    def moment(k: int) -> float:
        if not math.isfinite(float(law.moment(k))):
            return math.inf
        return float(nodes.mean(nodes.points**k))

    symmetric = all(abs(nodes.mean(nodes.points**k)) < 1e-9 for k in (1, 3, 5))
    parts = law.ppf, law.isf, law.logcdf, law.logsf, mean, sd
    pieces = partial(laws.quantile_law, *parts)
    label = f"scipy {frozen.name}"
    return Source(label, frozen.sample, nodes, moment, symmetric, pieces, mean / sd)


def _window(frozen: _Frozen) -> tuple[Array, Array]:
    """Whole numbers around the mean and their masses, until these are next to nothing."""
    least, most = map(float, frozen.law.support())
    mean, reach = frozen.mean, 8.0
    while True:
        low = max(least, math.floor(mean - reach * frozen.sd))
        high = min(most, math.ceil(mean + reach * frozen.sd))
        wide = high - low >= MOST_ATOMS
        if wide:
            # As much as is allowed, on the side where there is more to come.
            low = max(low, math.floor(mean - MOST_ATOMS / 2)) if low > least else low
            high = min(high, low + MOST_ATOMS - 1)
        k = np.arange(low, high + 1)
        with np.errstate(all="ignore"):
            p = np.nan_to_num(frozen.law.pmf(k))
        if wide or all(end < LIGHTEST for end in frozen.open_ends(k, p)):
            return k, p
        reach *= 1.5


def _atoms(frozen: _Frozen) -> Nodes:
    """Atoms of the standardised law; refused where they cannot stand for it."""
    k, p = _window(frozen)
    edge = max(frozen.open_ends(k, p), default=0.0)
    if edge > DECAYED:
        raise frozen.refused(
            f"it has more than {MOST_ATOMS} values that matter: the outermost of so many has the "
            f"mass {edge:.1e}, and below {DECAYED:.0e} is needed; take a continuous law that is "
            "near to it"
        )
    matters = p > LIGHTEST
    k, p = k[matters], p[matters]
    z = (k - frozen.mean) / frozen.sd
    lost = max(abs(dot(p, z**power) - (power != 1)) for power in (0, 1, 2))
    if not lost < _LOST:
        raise frozen.refused(
            f"mass, mean and variance of its values are off by {lost:.1e} of what SciPy says that "
            "they are"
        )
    # To rounding: what SciPy's masses lack is next to nothing, as was just seen.
    p = p / p.sum()
    z = z - dot(p, z)
    return Nodes(z / math.sqrt(dot(p, z * z)), p)


def _on_whole_numbers(frozen: _Frozen) -> Source:
    nodes = _atoms(frozen)
    z, p = nodes
    # Which ends of the list are none of the law.
    goes_on = [not math.isfinite(float(end)) for end in frozen.law.support()]
    even = bool(
        np.allclose(z, -z[::-1], rtol=0, atol=1e-10) and np.allclose(p, p[::-1], rtol=1e-8, atol=0)
    )
    shape = ", ".join(f"{key}={value:g}" for key, value in frozen.shape.items())
    label = f"scipy {frozen.name}({shape})"

    def moment(k: int) -> float:
        if k <= 2:
            return (1.0, 0.0, 1.0)[k]
        if even and k % 2:
            return 0.0
        terms = p * z**k
        if _cut_off(np.abs(terms), goes_on):
            raise HdicaError(
                f"source: {label} has no moment of order {k} to rely on (the {p.size} values that "
                "stand for the law do not reach far enough)"
            )
        return float(np.sum(terms))

    law, shift = Law(atoms=nodes, endless=any(goes_on)), frozen.mean / frozen.sd
    return Source(label, frozen.sample, nodes, moment, even, lambda: law, shift)


def _cut_off(sizes: Array, goes_on: list[bool]) -> bool:
    """Whether the outermost terms of a sum matter at an end where some were left out."""
    few = max(1, sizes.size // 20)
    ends = (float(sizes[:few].sum()), float(sizes[-few:].sum()))
    most = _TAIL * float(sizes.sum())
    return any(end > most for end, on in zip(ends, goes_on, strict=True) if on)
