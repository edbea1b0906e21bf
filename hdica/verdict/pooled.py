"""One number from several measurements of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def pooled(values: Array, errors: Array) -> tuple[float, float]:
    """Mean of measurements by their errors, with its standard error; both of shape (measurements,).

    Where they scatter more than their errors say, the error is widened by the square root of
    chi-square over its degrees of freedom. NaN without any measurement that has an error.
    """
    known = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    if not known.any():
        return float("nan"), float("nan")
    value, weight = values[known], errors[known] ** -2
    mean = float(weight @ value / weight.sum())
    chi2 = float(weight @ (value - mean) ** 2)
    dof = len(value) - 1
    widening = max(np.sqrt(chi2 / dof), 1.0) if dof else 1.0
    return mean, float(widening * weight.sum() ** -0.5)
