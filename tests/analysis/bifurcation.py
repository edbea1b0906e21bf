"""A subcritical transcritical point with a fold, and runs that end on its branches.

Informative states obey omega = 0.6 - 3.2 q + 6.4 q^2 with q = Q^2: a fold at omega = 0.2, q = 0.25;
above it they are stable. Q = 0 is stable and condensed below omega = 0.6, where they meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tests.analysis import toy
from tests.analysis.laws import marked

FOLD, PITCHFORK = 0.2, 0.6
OMEGAS = [0.1, 0.3, 0.5, 0.7, 0.9]
STARTS = [0.1, 0.9]
SIZES = [400, 6400]
STEADY: dict[str, Any] = {
    "x": "omega",
    "limits": ["fixed_points"],
    "branches": "branches",
    "critical": "critical",
    "simulation": ["vector"],
    "series": "Q0",
}


def omega_of(q: np.ndarray) -> np.ndarray:
    return 0.6 - 3.2 * q + 6.4 * q**2


def informative(omega: float) -> list[tuple[float, float]]:
    """|Q| and stability of the informative states."""
    root = 3.2**2 - 4 * 6.4 * (0.6 - omega)
    if root < 0:
        return []
    found = [((3.2 + s * np.sqrt(root)) / 12.8, float(s > 0)) for s in (-1, 1)]
    return [(float(np.sqrt(q)), stable) for q, stable in found if 0 < q <= 1]


def end(omega: float, start: float) -> float:
    """|Q| where a run ends: on the upper branch if it starts above the middle one."""
    states = informative(omega)
    if not states:
        return 0.0
    barrier = states[0][0] if len(states) == 2 else 0.0
    return states[-1][0] if start > barrier or omega > PITCHFORK else 0.0


def branches() -> xr.Dataset:
    """Two branches, padded by NaN: Q = 0, and the informative one."""
    low = np.array([0.01, 0.3, PITCHFORK, PITCHFORK, 1.0, 2.0])
    zero = {
        "value": low, "Q": 0 * low, "stable": np.array([1.0, 1, 1, 0, 0, 0]),
        "kind": np.array([2.0, 2, 2, 1, 1, 1]), "branch": 0 * low,
    }  # fmt: skip
    q = np.concatenate([np.linspace(0.0, 0.25, 40), np.linspace(0.25, 0.8, 60)[1:]])
    up = {
        "value": omega_of(q), "Q": np.sqrt(q), "stable": (q >= 0.25).astype(float),
        "kind": 0 * q, "branch": 0 * q + 1,
    }  # fmt: skip
    pad = np.full(20, np.nan)
    data = {k: ("branch_point", np.concatenate([zero[k], up[k], pad])) for k in zero}
    found = xr.Dataset(data)
    return _scalar(found, "branches")


def _scalar(data: xr.Dataset, method: str) -> xr.Dataset:
    data["status"] = ((), np.uint8(1))
    data["cpu_seconds"] = ((), 1e-3)
    data.attrs = {"method": method, "accuracy": "converged", "equations": "toy", "kernel": "1"}
    return data


def critical() -> xr.Dataset:
    pad = [np.nan] * 2
    columns = {
        "value": [FOLD, PITCHFORK],
        "Q": [0.5, 0.0],
        "kind": [0.0, 1.0],
        "error": [1e-12] * 2,
    }
    return _scalar(
        xr.Dataset({k: ("transition", [*v, *pad]) for k, v in columns.items()}), "critical"
    )


def fixed_points() -> xr.Dataset:
    columns = {k: np.full((len(OMEGAS), 5), np.nan) for k in ("Q", "stable", "kind", "bulk", "h")}
    for i, omega in enumerate(OMEGAS):
        condensed = omega < PITCHFORK
        states = [(0.0, float(condensed)), *informative(omega)]
        for k, (q, stable) in enumerate(states):
            columns["Q"][i, k], columns["stable"][i, k] = q, stable
            columns["kind"][i, k] = 0.0 if q else (2.0 if condensed else 1.0)
            columns["bulk"][i, k] = 0.43 if not q and condensed else 1.0
    data = xr.Dataset({k: (("omega", "fixed_point"), v) for k, v in columns.items()})
    return marked(data.assign_coords(omega=OMEGAS), "fixed_points", False)


def runs(seeds: int = 16) -> xr.Dataset:
    """Runs that end on the branches, with a finite-n noise; one entry large where condensed."""
    rng = np.random.default_rng(3)
    shape = (len(OMEGAS), len(STARTS), len(SIZES), seeds, 2)
    q, largest = np.empty(shape), np.empty(shape)
    for index in np.ndindex(*shape[:3]):
        omega, start, n = OMEGAS[index[0]], STARTS[index[1]], SIZES[index[2]]
        final = end(omega, start)
        q[index] = np.array([start, final]) + rng.standard_normal((seeds, 2)) / np.sqrt(n)
        q[index][:, 1] *= rng.choice([-1, 1], seeds)
        largest[index] = 0.55 if final == 0 else 5 / n
    dims = ("omega", "Q0", "n", "seed", "time")
    coords = {"omega": OMEGAS, "Q0": STARTS, "n": SIZES, "seed": np.arange(seeds)}
    data = xr.Dataset({"Q": (dims, q), "largest": (dims, largest)}, {**coords, "time": [0.0, 50.0]})
    return marked(data, "vector", True)


def store(**settings: Any) -> xr.DataTree:
    groups = {
        "vector": runs(),
        "branches": branches(),
        "critical": critical(),
        "fixed_points": fixed_points(),
    }
    return toy.tree(groups, {"steady": STEADY | settings})
