"""One power law: the statistic in every cell, its noise, the fit and what theory makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.powers import CONFIDENCE, PowerLaw, moderated, power_law
from hdica.verdict.resample import resampled

LOST = 0.025
"""A cell is left out if the statistic is not positive in more than this share of its resamples."""

Array = NDArray[np.float64]


def fitted(
    values: Array, log_p: Array, predicted: Array, statistic: Callable[..., Any], shared: bool
) -> dict[str, Any]:
    """Numbers of one fit, by the names of the analysis.

    ``values`` have shape (cells, seeds), NaN where a seed is not finished; ``log_p``, the
    logarithms of the parameters, (cells, parameters); ``predicted`` (cells,), positive, NaN without
    theory. ``statistic(values, axis)`` ignores NaN; ``shared`` says whether cells share noise.
    """
    seeds = (~np.isnan(values)).sum(axis=1)
    center = np.full(len(values), np.nan)
    enough = seeds >= 2
    center[enough] = statistic(values[enough], axis=1)
    log_q, covariance, known = _noise(values, center, seeds, statistic, shared)
    used = np.isfinite(log_q)
    law = power_law(log_p[used], log_q[used], covariance, known)
    half = np.full(len(values), np.nan)
    error = np.full(len(values), np.nan)
    error[used] = np.sqrt(np.diag(covariance))
    half[used] = stats.t.ppf(0.5 + CONFIDENCE / 2, known) * error[used]
    ends = {"_low": np.exp(log_q - half), "_high": np.exp(log_q + half)}
    ratio = {"": np.where(used, center, np.nan), **ends}
    return {
        "value": center,
        **{f"value{k}": v for k, v in ends.items()},
        **{f"ratio{k}": v / predicted for k, v in ratio.items()},
        "ratio_error": ratio[""] * error / predicted,
        "seeds": seeds,
        "used": used.astype(int),
        "predicted": predicted,
        "fitted": np.exp(law.constant + log_p @ law.exponents),
        "exponent": law.exponents,
        "exponent_low": law.low,
        "exponent_high": law.high,
        "exponent_error": law.error,
        "predicted_exponent": _theory(law, log_p[used], predicted[used], covariance),
        **{k: getattr(law, k) for k in ("chi2", "dof", "p_value", "widening")},
        "cells": int(used.sum()),
        "left_out": int((~used).sum()),
    }


def _noise(
    values: Array, center: Array, seeds: Array, statistic: Callable[..., Any], shared: bool
) -> tuple[Array, Array, float]:
    """Logarithms, NaN in cells left out; covariance of the others, its degrees of freedom."""
    log_q = np.full(len(center), np.nan)
    positive = np.flatnonzero(np.isfinite(center) & (center > 0))
    if not positive.size:
        return log_q, np.zeros((0, 0)), np.inf
    draws = resampled(values[positive], statistic, shared)
    sure = np.isnan(draws).mean(axis=0) <= LOST
    keep, draws = positive[sure], draws[:, sure]
    if not keep.size:
        return log_q, np.zeros((0, 0)), np.inf
    log_q[keep] = np.log(center[keep])
    draws = np.where(np.isnan(draws), np.nanmin(draws, axis=0), draws)
    one, known = moderated(draws.var(axis=0) * seeds[keep], seeds[keep] - 1.0)
    error = np.sqrt(one / seeds[keep])
    if not shared:
        return log_q, np.diag(error**2), known
    deviation = draws - draws.mean(axis=0)
    size = np.sqrt((deviation**2).mean(axis=0))
    scaled = deviation / np.where(size > 0, size, 1.0) * error
    together = scaled.T @ scaled / len(scaled)
    np.fill_diagonal(together, error**2)
    return log_q, together, known


def _theory(law: PowerLaw, log_p: Array, predicted: Array, covariance: Array) -> Array:
    """Exponents of the theory in the cells of the fit, by the same weights."""
    known = np.isfinite(predicted)
    if not known.all():
        rows = np.flatnonzero(known)
        some = np.log(predicted[rows])
        return power_law(log_p[rows], some, covariance[np.ix_(rows, rows)]).of(some)
    return law.of(np.log(predicted))
