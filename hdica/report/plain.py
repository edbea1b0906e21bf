"""Numbers as the page embeds them."""

from __future__ import annotations

from typing import Any

import numpy as np

DIGITS = 5
"""Significant digits on the page; the data files have all."""


def rounded(values: np.ndarray) -> Any:
    """Nested lists of numbers to a few significant digits, None for NaN."""
    values = np.asarray(values, dtype=float)
    if values.ndim > 1:
        return [rounded(row) for row in values]
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values]
