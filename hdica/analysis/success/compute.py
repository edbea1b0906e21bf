"""Where runs succeed: shares, the boundary of even odds, and its power of a parameter."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from hdica.analysis.describe import Cell, assembled, described
from hdica.analysis.reading import at_end, check_positive, group
from hdica.analysis.success.record import Success
from hdica.status import DIVERGED
from hdica.verdict.odds import CONFIDENCE, EvenOdds, even_odds, wilson
from hdica.verdict.powers import power_law
from hdica.verdict.resample import shares_noise

LONG_NAMES = {
    "successes": "seeds that succeed",
    "trials": "seeds that are done, and those that diverged, which failed",
    "diverged": "seeds that diverged",
    "probability": "share of seeds that succeed",
    "probability_low": "lower end of the 95 % Wilson interval",
    "probability_high": "upper end of the 95 % Wilson interval",
    "boundary": "{y} with even odds of success, by a logistic curve in log {y}",
    "boundary_low": "lower end of the 95 % interval of {y} with even odds",
    "boundary_high": "upper end of the 95 % interval of {y} with even odds",
    "boundary_error": "standard error of the logarithm of {y} with even odds",
    "slope": "slope of the logit in log {y} at even odds",
    "bend": "quadratic term of the logit in log {y} about even odds",
    "exponent": "exponent of {x} in the boundary",
    "exponent_error": "standard error of the exponent",
    "exponent_low": "lower end of the 95 % interval of the exponent",
    "exponent_high": "upper end of the 95 % interval of the exponent",
    "prefactor": "boundary of the fitted power law at {x} = 1",
    "p_value": "p-value of the boundary being a power of {x}",
    "widening": "factor by which scatter about the power law widens the exponent's interval",
}
SURE = float(stats.norm.ppf(0.5 + CONFIDENCE / 2))

Array = NDArray[np.float64]


def success(tree: xr.DataTree, settings: Success) -> xr.Dataset:
    """Probability of an event over two parameters, and where its odds are even.

    Over ``x``, ``y``, further swept parameters and ``n`` where there is one: counts and shares with
    95 % Wilson intervals, diverged runs among the failures; over ``x``: the ``y`` with even odds,
    NaN where the shares do not bracket it; without either: the power of ``x`` as which that moves.
    Where points share their noise, errors of the boundary are over whole seeds.
    """
    data = group(tree, settings.simulation)
    for key in ("x", "y"):
        check_positive(data, getattr(settings, key), f"analysis.success.{key}")
    x, y = settings.x, settings.y
    values = at_end(data, settings.variable)
    lost = (data["status"] == DIVERGED).reset_coords(drop=True)
    others = [str(d) for d in values.dims if d not in (x, y, "seed")]
    order = (*others, x, y, "seed")
    every = (settings.event(values), values.notnull() | lost, lost)
    event, tried, lost = (v.transpose(*order).sortby([x, y]) for v in every)
    shared = shares_noise(data)
    log_x, log_y = (np.log(event[d].values.astype(float)) for d in (x, y))
    made: list[Cell] = []
    for i in np.ndindex(*(event.sizes[d] for d in others)):
        found = _boundary(_Grid(event.values[i], tried.values[i], log_x, log_y, shared))
        made.append({k: ((x,) if np.ndim(v) else (), v) for k, v in found.items()})
    boundary = assembled(made, others, {d: event[d].values for d in [*others, x]})
    out = _shares(event, tried, lost).merge(boundary)
    out.attrs = {"variable": settings.variable, "x": x, "y": y, "simulation": settings.simulation}
    bounds = {"below": settings.below, "above": settings.above}
    out.attrs |= {k: bound for k, bound in bounds.items() if bound is not None}
    if settings.powers:
        out.attrs["laws"] = json.dumps(dict(settings.powers), ensure_ascii=False)
    out.attrs["noise"] = "shared" if shared else "own"
    if "time" in data[settings.variable].dims:
        out.attrs["time"] = float(data["time"].values[-1])
    table = {k: text.replace("{x}", x).replace("{y}", y) for k, text in LONG_NAMES.items()}
    return described(out.transpose(x, y, ...), table, settings.variable)


def _shares(event: xr.DataArray, tried: xr.DataArray, lost: xr.DataArray) -> xr.Dataset:
    """Counts and shares over seeds."""
    successes, trials = event.sum("seed"), tried.sum("seed")
    low, high = xr.apply_ufunc(wilson, successes, trials, output_core_dims=[[], []], vectorize=True)
    return xr.Dataset(
        {
            "successes": successes,
            "trials": trials,
            "diverged": lost.sum("seed"),
            "probability": (successes / trials).where(trials > 0),
            "probability_low": low,
            "probability_high": high,
        }
    )


@dataclass(frozen=True)
class _Grid:
    """Runs over x, y and seed: whether they succeed and whether they count."""

    success: NDArray[np.bool_]
    tried: NDArray[np.bool_]
    log_x: Array
    log_y: Array
    shared: bool

    def odds(self) -> EvenOdds:
        """Where odds are even, for every x."""
        return even_odds(self.log_y, self.success.sum(axis=-1), self.tried.sum(axis=-1))

    def covariance(self, odds: EvenOdds) -> Array:
        """Covariance of the boundary's logarithm over x, NaN where it is not known."""
        if not self.shared:
            return np.diag(odds.error**2)
        seeds, without = self.tried.shape[-1], []
        for runs in (self.success, self.tried):
            others = runs.sum(axis=-1) - np.moveaxis(runs, -1, 0)
            without.append(others.reshape(-1, self.log_y.size))
        parts = even_odds(self.log_y, *without).at.reshape(seeds, -1)
        deviation = parts - parts.mean(axis=0)
        together = (seeds - 1) / seeds * deviation.T @ deviation
        return np.asarray(together + np.diag(odds.within))


def _boundary(grid: _Grid) -> dict[str, Any]:
    """Boundary of one map and its exponent."""
    odds = grid.odds()
    covariance = grid.covariance(odds)
    error = np.sqrt(np.diag(covariance))
    known = np.flatnonzero(np.isfinite(odds.at) & (error > 0))
    law = power_law(grid.log_x[known][:, None], odds.at[known], covariance[np.ix_(known, known)])
    ends = {"": 0.0, "_low": -SURE, "_high": SURE}
    return {
        **{f"boundary{k}": np.exp(odds.at + sign * error) for k, sign in ends.items()},
        "boundary_error": error,
        "slope": odds.slope,
        "bend": odds.bend,
        "exponent": law.exponents[0],
        "exponent_error": law.error[0],
        "exponent_low": law.low[0],
        "exponent_high": law.high[0],
        "prefactor": np.exp(law.constant),
        "p_value": law.p_value,
        "widening": law.widening,
    }
