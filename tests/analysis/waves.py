"""A store of two variables over training and seed, known at every step: powers and their halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tests.analysis import escapes, toy

TIMES = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
SEEDS, PACES = 4, [1.0, 2.0]
SETTINGS: dict[str, Any] = {
    "method": "walk", "variables": ["early", "late"], "theory": "law", "log": True, "rises": True,
}  # fmt: skip


def value(name: str, pace: float, seed: int) -> np.ndarray:
    """Early is half-way of 16 pace at t = 4 (a root), late at t = 8 (a line); seeds are apart."""
    t = np.array(TIMES)
    return np.asarray((np.sqrt(t) if name == "early" else -t) * pace + seed)


def walk(late_too: bool = True) -> xr.Dataset:
    """Runs over pace and seed."""
    data = {}
    for name in ("early", "late") if late_too else ("early",):
        runs = [[value(name, pace, seed) for seed in range(SEEDS)] for pace in PACES]
        data[name] = (("pace", "seed", "time"), np.array(runs))
    found = xr.Dataset(data, {"pace": PACES, "seed": np.arange(SEEDS), "time": TIMES})
    found["early"].attrs["long_name"] = "early & rising"
    found["time"].attrs = {"units": "steps", "long_name": "time"}
    return escapes.group(found, "walk", {"time"})


def law() -> xr.Dataset:
    """The mean of one of them, without seeds."""
    runs = np.array([value("early", pace, 0) + (SEEDS - 1) / 2 for pace in PACES])
    found = xr.Dataset({"early": (("pace", "time"), runs)}, {"pace": PACES, "time": TIMES})
    return escapes.group(found, "law", {"time"})


def store(**settings: Any) -> xr.DataTree:
    """A store with variables side by side."""
    return toy.tree({"walk": walk(), "law": law()}, {"curves": {**SETTINGS, **settings}})
