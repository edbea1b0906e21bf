"""Golden numbers of online tensorial ICA: where they are, and how a median's error is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())


def median_error(sample: np.ndarray) -> float:
    """Standard error of a median, from the order statistics one deviation of a rank away."""
    ordered, size = np.sort(sample), sample.size
    away = np.sqrt(size) / 2
    low, high = np.clip([size / 2 - away, size / 2 + away], 0, size - 1).round().astype(int)
    return float((ordered[high] - ordered[low]) / 2)
