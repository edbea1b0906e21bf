"""Runs without a dimension n that wait, fall and fluctuate about a level, all by known laws.

A run stays at START for a lognormal time W with median WAIT, falls as exp(-rate (t - W)), and
stays above LEVEL exp(NOISE z) with normal z, drawn anew at each time. Where a value lies well
above that floor, the run first goes below it at W + log(START/value)/rate; at the end the median
is LEVEL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tests.analysis import escapes, toy

START, LEVEL, NOISE = 8.0, 1e-3, 0.3
WAIT, SPREAD = 3.0, 0.5
RATES, RUNS = [1.0, 2.0], 60
VALUE = 1 / 3
END = 30.0
TIMES = np.linspace(0.0, END, 301)
STEPS = {"long_name": "time t = k", "units": "steps"}
SETTINGS: dict[str, Any] = {
    "simulation": "walk",
    "variable": "tan2",
    "theory": ["path", "still"],
    "predicted": ["tan2", "level"],
    "bound": "above",
    "terms": ["first", "second"],
    "power": 2,
    "levels": {"warm": 0.5, "<cold>": 0.01},
    "crossings": [VALUE],
    "times": "traversal",
    "stages": ["middle"],
}


def crossing(rate: float, share: float = 0.5) -> float:
    """Quantile of the time at which runs first go below VALUE."""
    from scipy import stats

    wait = WAIT * float(np.exp(SPREAD * stats.norm.ppf(share)))
    return wait + float(np.log(START / VALUE)) / rate


def curve(rate: Any, wait: Any, time: np.ndarray) -> np.ndarray:
    """Runs that wait and fall, over the broadcast shape of rate and wait, and time."""
    late = np.maximum(time - np.asarray(wait)[..., None], 0.0)
    return np.asarray(START * np.exp(-np.asarray(rate)[..., None] * late))


def walk(runs: int = RUNS, stream: int = 0, time: np.ndarray = TIMES) -> xr.Dataset:
    """The runs, over rate and seed; without n."""
    rng = np.random.default_rng(stream)
    shape = (len(RATES), runs)
    wait = WAIT * np.exp(SPREAD * rng.standard_normal(shape))
    floor = LEVEL * np.exp(NOISE * rng.standard_normal((*shape, time.size)))
    values = np.maximum(curve(np.reshape(RATES, (-1, 1)), wait, time), floor)
    coords = {"rate": RATES, "seed": np.arange(runs), "time": ("time", time, STEPS)}
    data = xr.Dataset({"tan2": (("rate", "seed", "time"), values)}, coords)
    return escapes.group(data, "walk", {"time"})


def path(wait: float = WAIT, time: np.ndarray = TIMES) -> xr.Dataset:
    """The curve of a run with the median wait, and a bound of its root."""
    values = np.maximum(curve(np.array(RATES), np.full(2, wait), time), LEVEL)
    data = xr.Dataset({"tan2": (("rate", "time"), values)}, {"rate": RATES, "time": time})
    return escapes.group(data, "path", {"time"})


def still(level: float = LEVEL) -> xr.Dataset:
    """The level alone; it does not depend on the rate."""
    return escapes.group(xr.Dataset({"level": ((), level)}), "still", set())


def above(time: np.ndarray = TIMES) -> xr.Dataset:
    """Two terms of a bound: one over time, one constant."""
    data = xr.Dataset(
        {"first": (("rate", "time"), np.ones((2, time.size))), "second": (("rate",), [0.1, 0.2])},
        {"rate": RATES, "time": time},
    )
    return escapes.group(data, "above", {"time"})


def traversal() -> xr.Dataset:
    """Predicted times: the exact median."""
    data = {"middle": (("rate",), [crossing(r) for r in RATES])}
    return escapes.group(xr.Dataset(data, {"rate": RATES}), "traversal", set())


def with_n(data: xr.Dataset) -> xr.Dataset:
    """The same at two dimensions n, of which the smaller is another number."""
    two = [data.assign(tan2=data["tan2"] * 2), data]
    out = xr.concat(two, dim=xr.DataArray([100, 400], dims="n", name="n"))
    return out.transpose("rate", "n", ...).assign_attrs(data.attrs)


def groups(**settings: Any) -> dict[str, xr.Dataset]:
    """Simulation, theory, bounds and times."""
    return {
        "walk": walk(**settings),
        "path": path(),
        "still": still(),
        "above": above(),
        "traversal": traversal(),
    }


def store(**settings: Any) -> xr.DataTree:
    """A store with all of it, of a system whose time is in steps."""
    return toy.tree(groups(**settings), {"ensemble": SETTINGS})
