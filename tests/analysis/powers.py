"""A toy quantity with an exact power law of two parameters, and runs that succeed or do not.

tan2 = 3 d^1.1 T^-0.9 times a log-normal factor of median 1; a run succeeds with a probability that
is logistic in log(kappa d^0.3), one half at kappa = d^-0.3. Results have no dimension n, unless one
is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import special

from hdica.status import DONE
from tests.analysis import toy

D, T = [10, 20, 40, 80], [1e3, 1e4, 1e5]
EXPONENTS = (1.1, -0.9)
KAPPAS = [float(k) for k in np.round(np.geomspace(0.05, 2.0, 9), 4)]
BOUNDARY = -0.3
POWERS: dict[str, Any] = {"simulation": "training", "variable": "tan2", "over": ["d", "T"]}
ALONG: dict[str, Any] = {"simulation": "training", "variable": "tan2", "over": "T", "log": "both"}
EVENT: dict[str, Any] = {"simulation": "start", "variable": "tan2", "below": 1 / 3}
EVENT |= {"x": "d", "y": "kappa"}


def marked(data: xr.Dataset, method: str) -> xr.Dataset:
    """Add what every group of a published store carries."""
    grid = [d for d in data["tan2"].dims if d != "time"]
    shape = tuple(data.sizes[d] for d in grid)
    data["status"] = (grid, np.full(shape, DONE, np.uint8))
    data["cpu_seconds"] = (grid, np.full(shape, 1e-3))
    about = {"method": method, "accuracy": "exact in law", "equations": "toy", "kernel": "1"}
    data.attrs = {**about, "stochastic": int("seed" in data.dims)}
    return data


def law(factor: float = 3.0) -> np.ndarray:
    """The exact median over d and T."""
    d, t = np.meshgrid(D, T, indexing="ij")
    return np.asarray(factor * d ** EXPONENTS[0] * t ** EXPONENTS[1])


def training(
    rng: np.random.Generator, seeds: int = 16, sigma: float = 0.5, bend: float = 0.0
) -> xr.Dataset:
    """Group of the simulation over (d, T, seed); ``bend`` curves the law in log d."""
    spread = sigma * rng.standard_normal((len(D), len(T), seeds))
    curve = bend * (np.log(D) - np.log(D).mean()) ** 2
    values = law()[..., None] * np.exp(spread + curve[:, None, None])
    coords = {"d": D, "T": T, "seed": np.arange(seeds)}
    return marked(xr.Dataset({"tan2": (("d", "T", "seed"), values)}, coords), "training")


def theory(factor: float = 3.0) -> xr.Dataset:
    """Group of the prediction over (d, T, time), of which the last time counts."""
    values = np.stack([law(factor) * 7, law(factor)], axis=-1)
    coords = {"d": D, "T": T, "time": [0.0, 1.0]}
    return marked(xr.Dataset({"tan2": (("d", "T", "time"), values)}, coords), "bounds")


def probability(steep: float = 3.0) -> np.ndarray:
    """Exact probability of success over d and kappa."""
    d, kappa = np.meshgrid(D, KAPPAS, indexing="ij")
    return np.asarray(special.expit(steep * (np.log(kappa) - BOUNDARY * np.log(d))))


def start(rng: np.random.Generator, seeds: int = 24, steep: float = 3.0) -> xr.Dataset:
    """Group of runs over (d, kappa, seed) that end at tan2 = 0.1 if they succeed, else at 5."""
    shape = (len(D), len(KAPPAS), seeds)
    good = rng.random(shape) < probability(steep)[..., None]
    coords = {"d": D, "kappa": KAPPAS, "seed": np.arange(seeds)}
    return marked(
        xr.Dataset({"tan2": (("d", "kappa", "seed"), np.where(good, 0.1, 5.0))}, coords), "start"
    )


def with_n(data: xr.Dataset, n: int = 100) -> xr.Dataset:
    """The same where results have a dimension n, of one value."""
    grid = [d for d in data.dims if d not in ("seed", "time")]
    return data.expand_dims(n=[n]).transpose(*grid, "n", ...)


def store(seeds: int = 16, **groups: xr.Dataset) -> xr.DataTree:
    """Both analyses of one study, the power law with its theory."""
    rng = np.random.default_rng(3)
    own = {"training": training(rng, seeds), "bounds": theory(), "start": start(rng)}
    asked = {
        "exponents": {**POWERS, "theory": "bounds"},
        "dependence": {**ALONG, "theory": "bounds"},
        "success": EVENT,
    }
    return toy.tree({**own, **groups}, asked)
