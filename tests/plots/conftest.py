"""Results of which every number is known, with the labels that hdica gives them."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr

from hdica.status import DIVERGED, DONE

TIMES = np.linspace(0.0, 10.0, 11)
SEEDS = 12


@pytest.fixture(autouse=True)
def closed() -> Any:
    """No window, and no figure that stays."""
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    yield
    plt.close("all")


def about(method: str) -> dict[str, str]:
    return {"system": "OnlineICA", "method": method, "parameters": '{"tau":0.05}'}


def simulated(shape: dict[str, list[float]] | None = None, n: Any = 100) -> xr.Dataset:
    """Noisy runs that fall from 0.8; the last seed of every point diverged half-way."""
    rng = np.random.default_rng(7)
    grid = dict(shape or {})
    if isinstance(n, list):
        grid["n"] = n
    sizes = [len(values) for values in grid.values()]
    q = 0.8 * np.exp(-0.1 * TIMES) + 0.02 * rng.standard_normal((*sizes, SEEDS, len(TIMES)))
    q[..., -1, 5:] = np.nan
    status = np.full((*sizes, SEEDS), DONE, np.uint8)
    status[..., -1] = DIVERGED
    coords: dict[str, Any] = {**grid, "seed": np.arange(SEEDS), "time": TIMES}
    if not isinstance(n, list):
        coords["n"] = n
    dims = (*grid, "seed")
    found = xr.Dataset(
        {"Q": ((*dims, "time"), q), "status": (dims, status)}, coords, about("chain")
    )
    found["time"].attrs["units"] = "samples per dimension"
    return found


def theory(shape: dict[str, list[float]] | None = None) -> xr.Dataset:
    """The curve without noise, with its deviation and an error of its own."""
    grid = dict(shape or {})
    sizes = tuple(len(values) for values in grid.values())
    q = np.broadcast_to(0.8 * np.exp(-0.1 * TIMES), (*sizes, len(TIMES)))
    dims = (*grid, "time")
    data = {
        "Q": (dims, q),
        "Q_sd": (dims, np.full_like(q, 0.2)),
        "Q_error": (dims, np.full_like(q, 1e-3)),
    }
    return xr.Dataset(data, {**grid, "time": TIMES}, about("ode"))


@pytest.fixture
def runs() -> xr.Dataset:
    return simulated()


@pytest.fixture
def limit() -> xr.Dataset:
    return theory()


@pytest.fixture
def states() -> xr.Dataset:
    """A fold at 0.035, as ``fixed_points`` gives it: both signs, fewer states beyond."""
    tau = np.array([0.01, 0.02, 0.03, 0.04])
    root = np.sqrt(np.clip(0.035 - tau, 0, None))
    high, low = 0.5 + root, 0.5 - root
    q = np.stack([-high, -low, 0 * tau, low, high], axis=1)
    kind = np.full(q.shape, "informative", dtype=object)
    kind[:, 2] = "uninformative"
    stable = np.tile([True, False, True, False, True], (4, 1))
    q[3] = [0, *[np.nan] * 4]
    kind[3] = ["uninformative", "", "", "", ""]
    stable[3] = [True, False, False, False, False]
    dims = ("tau", "fixed_point")
    data = {"Q": (dims, q), "stable": (dims, stable), "kind": (dims, kind)}
    return xr.Dataset(data, {"tau": tau, "fixed_point": np.arange(5)}, about("fixed_points"))


@pytest.fixture
def fold() -> xr.Dataset:
    """The critical value of that fold, as ``critical`` gives it."""
    one = {"value": [0.035], "Q": [0.5], "error": [1e-9]}
    data: dict[str, Any] = {k: ("transition", v) for k, v in one.items()}
    data["kind"] = ("transition", np.array(["fold"], dtype=object))
    return xr.Dataset(data, {"transition": [0]}, about("critical"))
