"""A toy store beside a file of numbers: seeds about a known mean, and a limit with an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tests.analysis import toy

SEEDS = 25
MEANS = {10: 1.0, 20: 2.0}
"""Mean over seeds of the run, exactly, by the swept parameter; its sample deviation is 0.1."""
NUMBERS: dict[str, dict[str, Any]] = {
    "right": {"value": 1.0, "origin": "simulated", "error": 0.01},
    "wrong": {"value": 1.1, "origin": "printed"},
    "rounded": {"value": 2.05, "origin": "printed", "rounding": 0.05},
    "repaired": {"value": 5.0, "corrected": 2.0, "origin": "formula", "erratum": "(3): a sign"},
    "limit": {"value": 0.5, "origin": "derived"},
    "far_limit": {"value": 0.52, "origin": "derived"},
    "nothing": {"value": 0.0, "origin": "printed", "rounding": 0.6},
}
RUN = {"method": "run", "variable": "Q"}
LIMIT = {"method": "limit", "variable": "Q"}
ASKED: dict[str, dict[str, Any]] = {
    "right": {**RUN, "sel": {"tau": 10}},
    "wrong": {**RUN, "sel": {"tau": 10.0}},
    "rounded": {**RUN, "sel": {"tau": 20}},
    "repaired": {**RUN, "sel": {"tau": 20}},
    "limit": {**LIMIT, "sel": {"time": 1.0}},
    "far_limit": {**LIMIT, "sel": {"time": 1.0}},
    "nothing": LIMIT,
}


def file(path: Path) -> None:
    """Write the numbers."""
    lines = ["paper: A paper & more", "numbers:"]
    for name, one in NUMBERS.items():
        lines += [f"  {name}:", "    what: a number", "    where: section 1"]
        lines += [f"    {key}: {value!r}" for key, value in one.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def _deviations() -> np.ndarray:
    """One for each seed, of mean 0 and sample standard deviation 0.1."""
    z = np.random.default_rng(1).standard_normal(SEEDS)
    z -= z.mean()
    return np.asarray(0.1 * z / z.std(ddof=1))


def groups() -> dict[str, xr.Dataset]:
    """A method with seeds and n over tau, and a limit over time with an error of 0.015."""
    values = np.stack([mean + _deviations() for mean in MEANS.values()])
    ends = np.stack([np.zeros_like(values), values], axis=-1)
    sizes = np.stack([ends + 3, ends], axis=1)  # the larger n counts
    coords = {"tau": list(MEANS), "n": [50, 100], "seed": np.arange(SEEDS), "time": [0.0, 1.0]}
    run = xr.Dataset({"Q": (("tau", "n", "seed", "time"), sizes)}, coords)
    limit = xr.Dataset(
        {"Q": ("time", [0.0, 0.5]), "Q_error": ("time", [0.0, 0.015])}, {"time": [0.0, 1.0]}
    )
    return {
        "run": toy._grouped(run, "run", "exact in law", True),
        "limit": toy._grouped(limit, "limit", "limit", False),
    }


def store(**changes: Any) -> xr.DataTree:
    """A study that compares all of them; the file is told by the analysis' own default."""
    asked = {"file": "reference/toy.yaml", "numbers": ASKED, **changes}
    return toy.tree(groups(), {"printed": asked})
