"""Stores of escape times with known laws, and of overlaps whose decay is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tests.analysis import toy

NUS, LADDER, RUNS, END = [0.5, 1.0, 2.0, 10.0], [100, 200], 60, 6.0
AGES = np.geomspace(1 / 256, 8, 45)
PAIRS = {"projection": [0.0, 1.0], "source": [0.0, 1.0]}
SIMULATED = {"simulation": ["escape_times"], "limits": ["escape_diffusion", "escape"], "x": "nu"}
ENOUGH = {"simulation": "escape_times", "theory": "escape_diffusion", "limit": "escape"}


def mean(nu: float, n: float = np.inf) -> float:
    """Mean of the first of two exponential escapes, least at nu = 1; it grows as n falls."""
    return float(np.exp(nu) / nu * (1 + 50 * nu / n))


def group(data: xr.Dataset, method: str, own: set[str]) -> xr.Dataset:
    """Add what every group of a published store carries."""
    dims = [d for d in data.dims if d not in own]
    shape = tuple(data.sizes[d] for d in dims)
    data["status"] = (dims, np.ones(shape, np.uint8))
    data["cpu_seconds"] = (dims, np.full(shape, 1e-3))
    data["reason"] = (dims, np.full(shape, "", np.dtypes.StringDType()))
    data.attrs = {"method": method, "accuracy": "exact in law", "equations": f"toy, {method}"}
    data.attrs |= {"kernel": "1", "stochastic": int("seed" in data.dims)}
    return data


def times(error: float = 1.0, runs: int = RUNS, stream: int = 0, end: float = END) -> xr.Dataset:
    """Two exponential escapes a run, observed until ``end``; means wrong by a factor ``error``."""
    rng = np.random.default_rng(stream)
    shape = (len(NUS), len(LADDER), runs, 2)
    means = np.array([[mean(nu, n) for n in LADDER] for nu in NUS])
    drawn = rng.exponential(size=shape) * 2 * error * means[..., None, None]
    first, last = drawn.min(axis=-1), drawn.max(axis=-1)
    dims = ("nu", "n", "seed")
    data = {}
    for name, values in (("first", first), ("last", last)):
        data[name] = (dims, np.minimum(values, end))
        data[f"{name}_seen"] = (dims, (values <= end).astype(float))
    coords = {"nu": NUS, "n": LADDER, "seed": np.arange(runs)}
    return group(xr.Dataset(data, coords), "escape_times", set())


def theory(method: str, ladder: list[float], **extra: Any) -> xr.Dataset:
    """The law itself: diagonal pairs escape, the others never do."""
    own = {"projection", "source", "age"}
    means = np.array([[mean(nu, n) for n in ladder] for nu in NUS])
    pair = np.full((*means.shape, 2, 2), np.inf)
    pair[..., 0, 0] = pair[..., 1, 1] = 2 * means
    grid, two = ("nu", "n"), ("nu", "n", "projection", "source")
    survival = np.broadcast_to(np.exp(-AGES), (*means.shape, AGES.size))
    data = {
        "mean": (grid, means),
        "mean_last": (grid, 3 * means),
        "survival": ((*grid, "age"), survival.copy()),
        **{k: (two, pair.copy()) for k in ("pair_mean", "pair_sd", "pair_median", "kramers")},
        **{k: (two, np.sqrt(pair)) for k in extra.get("also", ())},
    }
    coords = {"nu": NUS, "n": ladder, "age": AGES, **PAIRS}
    found = xr.Dataset(data, coords)
    if ladder == [np.inf]:
        found = found.isel(n=0, drop=True)
    return group(found, method, own)


def groups(**settings: Any) -> dict[str, xr.Dataset]:
    """Simulation, the theory at every n, and the theory for n -> infinity."""
    return {
        "escape_times": times(**settings),
        "escape_diffusion": theory("escape_diffusion", LADDER),
        "escape": theory("escape", [np.inf], also=["printed"]),
    }


def store(analysis: dict[str, Any] | None = None, **settings: Any) -> xr.DataTree:
    """A store with known escape times."""
    return toy.tree(groups(**settings), analysis or {"escape": SIMULATED})


POWERS, MOMENTS = (1.0, 0.5), np.array([0.0, *np.geomspace(1, 1000, 25)])


def overlaps(seeds: int = 12, noise: float = 0.02, n: int = 1000) -> dict[str, xr.Dataset]:
    """R with 1 - R_ii = c_i (1 + t)^-p_i, its noise falling as fast, and the law itself."""
    rng = np.random.default_rng(5)
    clock = 1.0 + MOMENTS
    law = np.zeros((MOMENTS.size, 2, 2))
    for i, p in enumerate(POWERS):
        law[:, i, i] = 1 - 0.5 * clock**-p
    law[:, 0, 1], law[:, 1, 0] = 0.3 / clock, -0.3 / clock
    scale = noise * clock[:, None, None] ** -np.array([[POWERS[0], 1.0], [1.0, POWERS[1]]])
    noises = rng.standard_normal((2, seeds, 1, 2, 2)) + 0.3 * rng.standard_normal(
        (2, seeds, *law.shape)
    )
    ladder = np.array([n // 4, n])
    sd = scale * np.sqrt(n / ladder)[:, None, None, None, None]
    dims = ("n", "seed", "time", "projection", "source")
    coords = {"time": MOMENTS, **PAIRS}
    chain = xr.Dataset(
        {"R": (dims, law + sd * noises)}, {"n": ladder, "seed": np.arange(seeds), **coords}
    )
    wrong = 1 - 1.1 * (1 - law)
    ode = xr.Dataset(
        {
            "R": (dims[2:], law),
            "R_error": (dims[2:], np.full_like(law, 1e-12)),
            "R_control": (dims[2:], wrong),
        },
        coords,
    )
    own = {"time", "projection", "source"}
    return {"chain": group(chain, "chain", own), "ode": group(ode, "ode", own)}


def trap() -> xr.Dataset:
    """The potential at two values of nu; one pair is confined."""
    r = np.linspace(0, 6, 61)
    nu = np.array([0.5, 1.0])[:, None, None, None]
    sign = np.array([[1.0, -1.0]])[..., None]
    power, pull = 1.5, 0.8
    potential = power * nu**2 * r**2 / 4 - sign * pull * nu * r**4 / 24
    potential = np.broadcast_to(potential, (2, 1, 2, r.size)).copy()
    at = nu[:, :, :, 0]
    escapes = np.broadcast_to(sign[..., 0] > 0, (2, 1, 2))
    barrier = np.where(escapes, 3 * power**2 * at**3 / (8 * pull), np.inf)
    summit = np.where(escapes, np.sqrt(3 * power * at / pull), np.inf)
    dims = ("nu", "projection", "source")
    data = xr.Dataset(
        {"U": ((*dims, "r"), potential), "barrier": (dims, barrier), "summit": (dims, summit)},
        {"nu": [0.5, 1.0], "projection": [0.0], "source": [0.0, 1.0], "r": r},
    )
    return group(data, "trapping", {"projection", "source", "r"})
