"""Snapshots of filters on disk, as trainings write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hdica.inputs.filters import Series


def save_series(series: Series, folder: Path) -> None:
    """Write a folder of snapshots, ``step_000051.npz`` with ``filters`` and ``step``."""
    folder.mkdir(parents=True, exist_ok=True)
    for step, filters in zip(series.steps.tolist(), series.filters, strict=True):
        np.savez(folder / f"step_{step:06d}.npz", filters=filters, step=np.int64(step))
