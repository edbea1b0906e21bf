"""Shares of successes: their intervals, and where along a parameter odds are even."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from hdica.verdict.cells import CONFIDENCE, Array

SURE = float(stats.norm.ppf(0.5 + CONFIDENCE / 2))
MISFIT = 0.05
"""Below this p-value shares scatter about the logistic curve by more than chance."""
LEAST = 5
"""Values of an axis along which a rise may be bent."""
STEPS = 200
LONGEST = 5.0
"""Longest step of Newton's method, in units of the logit."""
CLOSE = 1e-9


@cache
def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Ends of the 95 % Wilson interval of a share; NaN without trials."""
    if trials == 0:
        return np.nan, np.nan
    ends = stats.binomtest(successes, trials).proportion_ci(CONFIDENCE, method="wilson")
    return float(ends.low), float(ends.high)


@dataclass(frozen=True)
class EvenOdds:
    """Where logistic curves cross one half, one curve for each row of shares, shape (rows,).

    ``at`` with its standard ``error``, of whose square ``within`` comes of a rise between two
    values of the axis; the logit at z is slope (z - at) + bend (z - at)^2. All are NaN where the
    shares do not bracket one half.
    """

    at: Array
    error: Array
    slope: Array
    bend: Array
    within: Array


def even_odds(z: Array, successes: Array, trials: Array) -> EvenOdds:
    """Where the probability of success is one half, by a logistic curve along an axis.

    The likelihood is penalised by Jeffreys' prior (Firth 1993), so that the curve is known also
    where all shares are 0 or 1. The logit is a parabola, because rises are seldom symmetric; a
    straight line where there are fewer than five values, or no crossing of the parabola is sure.
    The crossing is NaN unless it lies between the values of the axis, shares on either side of one
    half are seen, and the slope differs from 0 at 95 % (else no interval of the crossing were
    bounded: Fieller 1954). Errors are widened where shares scatter about the curve by more than
    chance, and where most of the rise falls between two neighbouring values.

    Parameters
    ----------
    z
        Increasing, shape (values,).
    successes, trials
        Shape (rows, values).
    """
    center, width = float(z.mean()), float(np.ptp(z)) or 1.0
    x = (z - center) / width
    columns = np.full((5, len(successes)), np.nan)
    rows = np.flatnonzero(_bracketed(successes, trials))
    if rows.size:
        k, m = successes[rows].astype(float), trials[rows].astype(float)
        line, curve = _crossing(x, k, m, 2), _crossing(x, k, m, 3)
        bent = curve[-1] & (np.sign(curve[2]) == np.sign(line[2])) & (x.size >= LEAST)
        at, variance, slope, bend, sure = (
            np.where(bent, c, s) for s, c in zip(line, curve, strict=True)
        )
        within = _within(x, k, m, at)
        known = [at * width + center, np.sqrt(variance + within) * width, slope / width]
        columns[:, rows] = np.where(sure, [*known, bend / width**2, within * width**2], np.nan)
    return EvenOdds(*columns)


def _bracketed(successes: Array, trials: Array) -> NDArray[np.bool_]:
    """Whether shares on either side of one half are seen."""
    share = np.where(trials > 0, successes / np.maximum(trials, 1), 0.5)
    return np.asarray((share.min(axis=1) < 0.5) & (share.max(axis=1) > 0.5))


def _crossing(x: Array, k: Array, m: Array, terms: int) -> tuple[Array, ...]:
    """Place where a polynomial logit vanishes, its variance, slope and bend, whether it is sure."""
    powers = np.arange(terms)
    design = x[:, None] ** powers
    fit, covariance = _firth(design, k, m)
    a, b, bend = np.pad(fit, [(0, 0), (0, 3 - terms)]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of a parabola the root that tends to that of the line as the bend vanishes.
        at = -2 * a / (b + np.sign(b) * np.sqrt(b**2 - 4 * a * bend))
    value = at[:, None] ** powers
    rate = powers * at[:, None] ** np.maximum(powers - 1, 0)
    slope = (fit * rate).sum(axis=1)
    noise = np.sqrt(np.einsum("ri,rij,rj->r", rate, covariance, rate))
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.einsum("ri,rij,rj->r", value, covariance, value) / slope**2
    sure = (np.abs(slope) > SURE * noise) & (at >= x[0]) & (at <= x[-1])
    return at, variance * _scatter(design, k, m, fit), slope, bend, sure


def _firth(design: Array, k: Array, m: Array) -> tuple[Array, Array]:
    """Penalised maximum of the likelihood, shape (rows, terms), and the inverse information."""
    fit = np.zeros((len(k), design.shape[1]))
    for _ in range(STEPS):
        p = special.expit(fit @ design.T)
        weight = m * p * (1 - p)
        inverse = np.linalg.pinv(np.einsum("rv,vi,vj->rij", weight, design, design), hermitian=True)
        leverage = weight * np.einsum("vi,rij,vj->rv", design, inverse, design)
        score = (k - m * p + leverage * (0.5 - p)) @ design
        step = np.einsum("rij,rj->ri", inverse, score)
        longest = np.abs(step).sum(axis=1, keepdims=True)
        fit += step * np.minimum(1.0, LONGEST / np.maximum(longest, CLOSE))
        if float(longest.max()) < CLOSE:
            break
    return fit, inverse


def _within(x: Array, k: Array, m: Array, at: Array) -> Array:
    """Variance of the crossing because most of the rise falls between two values of the axis.

    If all of it does, the crossing is anywhere between them, evenly; if half of it or less, the
    shares beside them tell the shape.
    """
    out = np.zeros(len(k))
    for i, (hits, trials) in enumerate(zip(k, m, strict=True)):
        seen = np.flatnonzero(trials > 0)
        right = int(np.clip(np.searchsorted(x[seen], at[i]), 1, len(seen) - 1))
        pair = seen[right - 1 : right + 1]
        rise = abs(float(np.diff(hits[pair] / trials[pair])[0]))
        out[i] = (max(2 * rise - 1, 0.0) * float(np.diff(x[pair])[0])) ** 2 / 12
    return out


def _scatter(design: Array, k: Array, m: Array, fit: Array) -> Array:
    """Pearson's chi-square over its degrees of freedom where it is too large, else 1."""
    p = special.expit(fit @ design.T)
    spread = m * p * (1 - p)
    # A value where next to no run is expected to differ would weigh beyond its information.
    chi2 = ((k - m * p) ** 2 / np.maximum(spread, 0.5)).sum(axis=1)
    dof = np.maximum((spread > 0.5).sum(axis=1) - design.shape[1], 0)
    bad = stats.chi2.sf(chi2, np.maximum(dof, 1)) < MISFIT
    return np.where(bad & (dof > 0), chi2 / np.maximum(dof, 1), 1.0)
