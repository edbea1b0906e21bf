"""Stores in which cells share the noise of a seed, drawn again and again from a known law.

A run succeeds if its start exceeds the threshold of its seed, MIDDLE + SHIFT tau + SPREAD z_s +
OWN z_s(tau) with normal z; then it ends at 1 + STEEP tau + NOISE z_s and a tenth of that of its
own, else at 0. Each dimension n of a store is a draw of its own.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tests.analysis import toy

TAUS = [0.01, 0.02, 0.03]
STARTS = np.round(np.arange(0.05, 1.0, 0.025), 3).tolist()
MIDDLE, SHIFT, SPREAD, OWN = 0.4, 4.0, 0.1, 0.01
STEEP, NOISE = -3.0, 0.05
PHASE = {"simulation": "chain", "x": "tau", "y": "Q0", "limit": "ode"}
DIMS = ("tau", "Q0", "n", "seed", "time")


def chain(rng: np.random.Generator, draws: int, seeds: int, noise: str = "shared") -> xr.Dataset:
    """Group of a stochastic method with noise ``"shared"`` or ``"own"``."""
    shape = (len(TAUS), len(STARTS), draws, seeds)
    common = (1, 1, draws, seeds) if noise == "shared" else shape
    tau, start = np.reshape(TAUS, (-1, 1, 1, 1)), np.reshape(STARTS, (1, -1, 1, 1))
    threshold = MIDDLE + SHIFT * tau + SPREAD * rng.standard_normal(common)
    threshold = threshold + OWN * rng.standard_normal((len(TAUS), *common[1:]))
    learnt = 1 + STEEP * tau + NOISE * rng.standard_normal(common)
    learnt = learnt + NOISE / 10 * rng.standard_normal(shape)
    end = np.where(start > threshold, learnt, 0.0)
    q = np.stack([np.broadcast_to(start, shape), end], axis=-1)
    coords = {"n": 100 + np.arange(draws), "seed": np.arange(seeds)}
    data = xr.Dataset({"Q": (DIMS, q)}, {"tau": TAUS, "Q0": STARTS, **coords, "time": [0.0, 9.0]})
    data["status"] = (DIMS[:-1], np.ones(shape, np.uint8))
    data["cpu_seconds"] = (DIMS[:-1], np.zeros(shape))
    return data.assign_attrs(method="chain", stochastic=1, noise=noise)


def ode(boundary: np.ndarray) -> xr.Dataset:
    """Group of a limit that learns from starts above a boundary for each tau."""
    end = (np.array(STARTS) > boundary[:, None]).astype(float)
    q = np.stack([np.broadcast_to(STARTS, end.shape), end], axis=-1)
    dims = ("tau", "Q0", "time")
    data = xr.Dataset({"Q": (dims, q)}, {"tau": TAUS, "Q0": STARTS, "time": [0.0, 9.0]})
    data["status"] = (dims[:-1], np.ones(end.shape, np.uint8))
    data["cpu_seconds"] = (dims[:-1], np.zeros(end.shape))
    return data.assign_attrs(method="ode", stochastic=0)


def boundary() -> np.ndarray:
    """Start with even odds at every tau."""
    return MIDDLE + SHIFT * np.array(TAUS)


def store(
    draws: int, seeds: int = 16, noise: str = "shared", wrong: float = 0.06, seed: int = 0
) -> xr.DataTree:
    """A published store of a simulation, and of a limit whose boundary lies too high."""
    groups = {
        "chain": chain(np.random.default_rng(seed), draws, seeds, noise),
        "ode": ode(boundary() + wrong),
    }
    return toy.tree(groups, {"phase": PHASE})
