"""Stores of runs at a transition whose law is known exactly, for every n."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from hdica.limits.collapse import LAWS
from tests.analysis import toy
from tests.analysis.escapes import group

SIZES = [100, 1000, 10000]
AXES = {
    "fold": [0.0, 0.01, 0.05],
    "separatrix": [-0.2, -0.05, -0.01, 0.0, 0.02, 0.1],
    "pitchfork": [-0.1, -0.02, 0.0, 0.03],
}
WINDOW = {"fold": 2 / 3, "separatrix": 1 / 2, "pitchfork": 1 / 2}
SIZE = {"fold": 1 / 3, "separatrix": 0.0, "pitchfork": -1 / 2}
OFFSET = {"fold": -1.5, "separatrix": 0.0, "pitchfork": 0.001}
SHIFT = {"fold": 0.0, "separatrix": 0.02, "pitchfork": 0.0}
"""Of the prediction at n beyond the law."""


def settings(kind: str, **more: Any) -> dict[str, Any]:
    """What a study asks for."""
    simulation = "fall_times" if kind == "fold" else "chain"
    found = {"kind": kind, "simulation": simulation, "theory": "normal", **more}
    return found if kind == "fold" else {**found, "variable": "Q"}


def theory(kind: str) -> xr.Dataset:
    """The law and the prediction at n over (tau, n)."""
    axis, n = np.array(AXES[kind])[:, None], np.array(SIZES)[None, :]
    x = axis * n ** WINDOW[kind]
    unit = 1.3 * n ** SIZE[kind] if SIZE[kind] else np.ones_like(n, dtype=float)
    unit = np.broadcast_to(unit, x.shape)
    law = np.vectorize(LAWS[kind])(x)
    predicted = unit * np.vectorize(LAWS[kind])(x + SHIFT[kind]) + OFFSET[kind]
    dims = ("tau", "n")
    data = {"scaled": x, "unit": unit, "law": law, "predicted": predicted}
    data["edge"] = np.full(x.shape, 0.5)
    if kind == "fold":
        data["sd"] = predicted / 2
    coords = {"tau": AXES[kind], "n": SIZES}
    return group(xr.Dataset({k: (dims, v) for k, v in data.items()}, coords), "normal", set())


def runs(
    kind: str,
    seeds: int = 200,
    stream: int = 0,
    wrong: tuple[float, float] = (0.0, 0.0),
    end: float = np.inf,
) -> xr.Dataset:
    """Runs over (tau, n, seed) with those means; ``wrong`` adds to the powers of n.

    Falls are gamma with a standard deviation of half their mean, and end at ``end``.
    """
    rng, known = np.random.default_rng(stream), theory(kind)
    grown = np.array(SIZES)[None, :] / 1000.0
    x = known["scaled"].values * grown ** wrong[0]
    law = np.vectorize(LAWS[kind])(x + SHIFT[kind])
    mean = known["unit"].values * grown ** wrong[1] * law
    mean = (mean + OFFSET[kind])[..., None]
    shape, dims = (*mean.shape[:2], seeds), ("tau", "n", "seed")
    coords: dict[str, Any] = {"tau": AXES[kind], "n": SIZES, "seed": np.arange(seeds)}
    if kind == "fold":
        drawn = rng.gamma(4.0, 0.25 * np.broadcast_to(mean, shape))
        seen = (drawn <= end).astype(float)
        data = {"first": (dims, np.minimum(drawn, end)), "first_seen": (dims, seen)}
        found = xr.Dataset(data, coords)
        found["first"].attrs["units"] = "samples per dimension"
        return group(found, "fall_times", set())
    if kind == "separatrix":
        up = rng.random(shape) < mean
        paths = np.stack([np.full(shape, 0.5), np.where(up, 0.9, 0.0)], axis=-1)
        coords["time"] = [0.0, 1.0]
    else:
        square = rng.gamma(2.0, 0.5 * np.broadcast_to(mean, shape))
        paths = np.sqrt(np.stack([np.zeros(shape), 1.2 * square, 0.8 * square], axis=-1))
        coords["time"] = [0.0, 2.0, 4.0]
    return group(xr.Dataset({"Q": ((*dims, "time"), paths)}, coords), "chain", {"time"})


def store(kind: str = "fold", **changes: Any) -> xr.DataTree:
    """A published store of one of the three."""
    asked = settings(kind)
    groups = {asked["simulation"]: runs(kind, **changes), "normal": theory(kind)}
    return toy.tree(groups, {"collapse": asked})
