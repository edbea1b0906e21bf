"""A toy rule whose entries are independent normals given the feature, with its exact limit.

The feature is sparse: xi = 2 with share 0.25, else 0. At time t the entries are
x = m(t) xi + s z + c/n with z standard normal, m(t) = 0.7 (1 - exp(-t)) and s = 0.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.ingredients.save import Save
from tests.analysis import toy

XI, WEIGHT = np.array([0.0, 2.0]), np.array([0.75, 0.25])
SNAPSHOTS, TIMES = [0.5, 3.0], [0.0, 0.5, 1.0, 3.0]
X = np.round(np.linspace(-2.5, 3.9, 65), 10)
EDGES = Save(x=tuple(X)).edges
THRESHOLDS = np.round(np.linspace(0.0, 2.5, 26), 10)
SPREAD = 0.5
LADDER = [500, 1000, 2000, 4000]
METHODS = {"simulation": ["vector"], "limit": "pde"}
ANALYSES: dict[str, Any] = {
    "distances": METHODS,
    "support": METHODS,
    "densities": {"simulation": "vector", "limit": "pde"},
    "potential": {"limit": "pde"},
    "compare": {"curves": ["vector", "pde"], "band": 2.0},
}


def center(time: np.ndarray | float, factor: float = 1.0) -> np.ndarray:
    return factor * 0.7 * (1 - np.exp(-np.asarray(time)))


def law(factor: float = 1.0) -> Any:
    """The limit's law at every snapshot, for every group."""
    return stats.norm(center(SNAPSHOTS, factor)[:, None, None] * XI[:, None], SPREAD)


def rates(factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Exact true and false positive rates, shape (snapshots, thresholds)."""
    above = law(factor).sf(THRESHOLDS) + law(factor).cdf(-THRESHOLDS)
    return above[:, 1], above[:, 0]


def draw(
    n: int, rng: np.random.Generator, c: float = 0.0, factor: float = 1.0
) -> dict[str, np.ndarray]:
    """What one run keeps."""
    counts = np.round(WEIGHT * n).astype(int)
    mean = center(SNAPSHOTS, factor)
    x = [mean[:, None] * xi + SPREAD * rng.standard_normal((2, k)) + c / n
         for xi, k in zip(XI, counts, strict=True)]  # fmt: skip
    cdf = [[np.searchsorted(np.sort(row), EDGES, "right") / len(row) for row in g] for g in x]
    above = [[(np.abs(row) > THRESHOLDS[:, None]).mean(axis=1) for row in g] for g in x]
    law = np.swapaxes(np.array(cdf), 0, 1)
    fpr, tpr = np.array(above)
    wrong = WEIGHT[1] * (1 - tpr) + WEIGHT[0] * fpr
    density = np.diff(law, axis=-1) / np.diff(EDGES)
    q = center(TIMES, factor) + rng.standard_normal(4) / np.sqrt(n)
    return {"Q": q, "cdf": law, "density": density, "tpr": tpr, "fpr": fpr,
            "misclassified": wrong, "xi": XI, "weight": WEIGHT}  # fmt: skip


DIMS = {
    "Q": ("time",),
    "cdf": ("snapshot", "feature", "edge"),
    "density": ("snapshot", "feature", "x"),
    "tpr": ("snapshot", "threshold"),
    "fpr": ("snapshot", "threshold"),
    "misclassified": ("snapshot", "threshold"),
    "xi": ("feature",),
    "weight": ("feature",),
}
COORDS = {"time": TIMES, "snapshot": SNAPSHOTS, "feature": XI, "x": X, "edge": EDGES}
COORDS |= {"threshold": THRESHOLDS}


def marked(data: xr.Dataset, method: str, stochastic: bool) -> xr.Dataset:
    """Add what every group of a published store carries."""
    dims = [d for d in data["Q"].dims if d not in ("time", "fixed_point")]
    shape = tuple(data.sizes[d] for d in dims)
    data["status"] = (dims, np.ones(shape, np.uint8))
    data["cpu_seconds"] = (dims, np.full(shape, 1e-3))
    about = {"method": method, "accuracy": "exact", "equations": "toy", "kernel": "1"}
    data.attrs = {**about, "stochastic": int(stochastic)}
    return data


def finite(ladder: list[int], seeds: int, c: float = 0.0, factor: float = 1.0) -> xr.Dataset:
    """Group of the simulation over (tau, n, seed)."""
    rng = np.random.default_rng(5)
    runs = [[draw(n, rng, c, factor) for _ in range(seeds)] for n in ladder]
    data = {
        k: (("tau", "n", "seed", *dims), np.array([[[r[k] for r in row] for row in runs]]))
        for k, dims in DIMS.items()
    }
    coords = {"tau": [0.1], "n": ladder, "seed": np.arange(seeds), **COORDS}
    return marked(xr.Dataset(data, coords), "vector", True)


def limit(curvature: float = 0.2) -> xr.Dataset:
    """Group of the limit over tau, with the negative control and a double well at first."""
    tpr, fpr = rates()
    wrong_tpr, wrong_fpr = rates(1.02)
    mean = center(SNAPSHOTS)[:, None, None] * XI[:, None]
    d = np.array([-0.1, -0.1, 0.1, curvature])
    values = {
        "Q": center(TIMES),
        "Q_error": np.full(4, 1e-9),
        "Q_control": center(TIMES, 1.02),
        "cdf": law().cdf(EDGES),
        "cdf_control": law(1.02).cdf(EDGES),
        "density": law().pdf(X),
        "tpr": tpr, "fpr": fpr, "tpr_control": wrong_tpr, "fpr_control": wrong_fpr,
        "misclassified": WEIGHT[1] * (1 - tpr) + WEIGHT[0] * fpr,
        "xi": XI, "weight": WEIGHT,
        "potential": (X - mean) ** 2 + np.abs(X) / 2,
        "curvature": d,
        "convex": (d > 0).astype(float),
    }  # fmt: skip
    dims = DIMS | {"potential": DIMS["density"], "curvature": ("time",), "convex": ("time",)}
    data = {k: (("tau", *dims[k.split("_")[0]]), v[None]) for k, v in values.items()}
    return marked(xr.Dataset(data, {"tau": [0.1], **COORDS}), "pde", False)


def store(
    ladder: list[int] | None = None, seeds: int = 24, c: float = 0.0, factor: float = 1.0
) -> xr.DataTree:
    groups = {"vector": finite(ladder or LADDER, seeds, c, factor), "pde": limit()}
    return toy.tree(groups, ANALYSES)
