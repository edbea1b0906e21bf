"""The toy study that keeps densities, support recovery and a functional."""

from __future__ import annotations

from typing import Any

from hdica.study.study import Study, study_from
from tests.sweep import toy

SAVE: dict[str, Any] = {
    "snapshots": [0.5, 2],
    "x": {"start": -2, "stop": 2, "num": 5},
    "thresholds": [0, 0.1, 0.3],
    "functionals": {"mse": "(x - xi)**2"},
}
METHODS = {"walk": {"n": [10, 30], "seeds": 3}, "line": {}, "profile": {}}


def saved(save: Any = SAVE, **changes: Any) -> Study:
    grid = {"tau": [0.1, 0.3, 0.2], "Q0": [0.25, 0.5]}
    content: dict[str, Any] = {"grid": grid, "methods": METHODS, **changes}
    return study_from(toy.study(save=save, **content))


def without(*names: str) -> dict[str, Any]:
    return {k: v for k, v in SAVE.items() if k not in names}
