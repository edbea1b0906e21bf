"""Sources that are laws of SciPy, with a density or on the whole numbers."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.parts import Law, quantile_law
from hdica.ingredients.quadrature import Nodes, dot, quantile_nodes
from hdica.ingredients.source import Source

Array = NDArray[np.float64]
MOST_ATOMS = 4096
"""Values of a law on the whole numbers: each is an atom of every average."""
LIGHTEST, DECAYED = 1e-80, 1e-40
"""Atoms below the first are left out; a law that needs more atoms than that many may be cut where
they are below the second, beyond all that a double tells apart."""
_LOST, _TAIL = 1e-9, 1e-10


@lru_cache(maxsize=64)
def scipy_source(name: str, **shape: float) -> Source:
    """A law of ``scipy.stats`` by its name there, standardised; ``shape`` as SciPy calls it.

    Raises
    ------
    HdicaError
        If SciPy has no such law or refuses its shapes; if mean or variance are not finite; if
        quadrature cannot follow the density, or a tail of whole numbers is too long.
    """
    from scipy import stats  # half a second, and only this source needs it

    family: Any = getattr(stats, name, None)
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
            frozen = family(**(_whole(shape) if discrete else shape))
            mean, var = (float(v) for v in frozen.stats(moments="mv"))
    except TypeError as exc:
        raise HdicaError(f"source: scipy {name!r} with {shape} is not allowed ({exc})") from None
    if not (math.isfinite(mean) and math.isfinite(var) and var > 0):
        raise HdicaError(
            f"source: scipy {name!r} with {shape} is not allowed "
            "(it needs a finite mean and a finite, positive variance)"
        )
    return (_discrete if discrete else _continuous)(name, shape, frozen, mean, math.sqrt(var))


def _whole(shape: dict[str, float]) -> dict[str, float]:
    return {key: int(value) if value.is_integer() else value for key, value in shape.items()}


def _sampler(frozen: Any, mean: float, sd: float) -> Any:
    def sample(rng: np.random.Generator, size: int) -> Array:
        return np.asarray((frozen.rvs(size=size, random_state=rng) - mean) / sd, dtype=float)

    return sample


def _continuous(name: str, shape: dict[str, float], frozen: Any, mean: float, sd: float) -> Source:
    raw = quantile_nodes(frozen.ppf, frozen.isf)
    nodes = Nodes((raw.points - mean) / sd, raw.weights)
    _check_nodes(nodes, name)

    def moment(k: int) -> float:
        if not math.isfinite(float(frozen.moment(k))):
            return math.inf
        return float(nodes.mean(nodes.points**k))

    def law() -> Law:
        return quantile_law(frozen.ppf, frozen.isf, frozen.logcdf, frozen.logsf, mean, sd)

    symmetric = all(abs(nodes.mean(nodes.points**k)) < 1e-9 for k in (1, 3, 5))
    sample = _sampler(frozen, mean, sd)
    return Source(f"scipy {name}", sample, nodes, moment, symmetric, law, mean / sd)


def _check_nodes(nodes: Nodes, name: str) -> None:
    """A law whose density the quadrature cannot follow is refused, not integrated wrongly."""
    error = max(abs(float(nodes.mean(nodes.points))), abs(float(nodes.mean(nodes.points**2)) - 1))
    if not error < 1e-8:
        raise HdicaError(
            f"source: scipy = {name!r} is not allowed (its density cannot be integrated "
            f"accurately: mean and variance are off by {error:.1e})"
        )


def _window(frozen: Any, mean: float, sd: float) -> tuple[Array, Array]:
    """Whole numbers around the mean and their masses, until these are next to nothing."""
    least, most = (float(end) for end in frozen.support())
    reach = 8.0
    while True:
        low = max(least, math.floor(mean - reach * sd))
        high = min(most, math.ceil(mean + reach * sd))
        wide = high - low >= MOST_ATOMS
        if wide:
            # As much as is allowed, on the side where there is more to come.
            low = max(low, math.floor(mean - MOST_ATOMS / 2)) if low > least else low
            high = min(high, low + MOST_ATOMS - 1)
        k = np.arange(low, high + 1)
        with np.errstate(all="ignore"):
            p = np.nan_to_num(np.asarray(frozen.pmf(k), dtype=float))
        if wide or all(end < LIGHTEST for end in _open_ends(frozen, k, p)):
            return k, p
        reach *= 1.5


def _atoms(name: str, shape: dict[str, float], frozen: Any, mean: float, sd: float) -> Nodes:
    """Atoms of the standardised law; refused where they cannot stand for it."""
    k, p = _window(frozen, mean, sd)
    edge = max(_open_ends(frozen, k, p), default=0.0)
    if edge > DECAYED:
        raise HdicaError(
            f"source: scipy {name!r} with {shape} is not allowed (it has more than {MOST_ATOMS} "
            f"values that matter: the outermost of so many has the mass {edge:.1e}, and below "
            f"{DECAYED:.0e} is needed; take a continuous law that is near to it)"
        )
    kept = p > LIGHTEST
    k, p = k[kept], p[kept]
    z = (k - mean) / sd
    lost = max(abs(dot(p, z**power) - (power != 1)) for power in (0, 1, 2))
    if not lost < _LOST:
        raise HdicaError(
            f"source: scipy {name!r} with {shape} is not allowed (mass, mean and variance of its "
            f"values are off by {lost:.1e} of what SciPy says that they are)"
        )
    # To rounding: what SciPy's masses lack is next to nothing, as was just seen.
    p = p / p.sum()
    z = z - dot(p, z)
    return Nodes(z / math.sqrt(dot(p, z * z)), p)


def _open_ends(frozen: Any, k: Array, values: Array) -> list[float]:
    """What lies at the ends of a window beyond which the support goes on."""
    least, most = frozen.support()
    below = [float(values[0])] if k[0] > least else []
    return below + ([float(values[-1])] if k[-1] < most else [])


def _discrete(name: str, shape: dict[str, float], frozen: Any, mean: float, sd: float) -> Source:
    nodes = _atoms(name, shape, frozen, mean, sd)
    z, p = nodes.points, nodes.weights
    # Which ends of the list are none of the law.
    goes_on = [not math.isfinite(float(end)) for end in frozen.support()]
    even = bool(
        np.allclose(z, -z[::-1], rtol=0, atol=1e-10) and np.allclose(p, p[::-1], rtol=1e-8, atol=0)
    )
    label = f"scipy {name}({', '.join(f'{key}={value:g}' for key, value in shape.items())})"

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

    sample = _sampler(frozen, mean, sd)
    law = Law(atoms=nodes, endless=any(goes_on))
    return Source(label, sample, nodes, moment, even, lambda: law, mean / sd)


def _cut_off(sizes: Array, goes_on: list[bool]) -> bool:
    """Whether the outermost terms of a sum matter at an end where some were left out."""
    few = max(1, sizes.size // 20)
    ends = (float(sizes[:few].sum()), float(sizes[-few:].sum()))
    most = _TAIL * float(sizes.sum())
    return any(end > most for end, on in zip(ends, goes_on, strict=True) if on)
