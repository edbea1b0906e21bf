"""Simulation against limit: means, fluctuations, exponents in n, and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from hdica.analysis import reading
from hdica.analysis.convergence import Convergence
from hdica.show.choose import Point, at_largest_n, cells_of, numbers, positions, without
from hdica.show.finding import Finding, Form, judgement, named
from hdica.show.words import Text, symbol, words
from hdica.status import DIVERGED, FAILED, PENDING
from hdica.verdict.cells import AGREES, UNDECIDED, Array, judged
from hdica.verdict.ladder import Ladder, ladder, moments, pooled
from hdica.verdict.powers import Exponent, bias_exponent, bias_p_values, fluctuation_exponent
from hdica.verdict.trajectory import LONG_NAMES as VERDICT_NAMES
from hdica.verdict.trajectory import controlled, judge

LONG_NAMES = {
    **VERDICT_NAMES,
    **reading.OF_BASELINES,
    "mean": "mean of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "sd": "standard deviation of {v} over seeds",
    "difference": "mean of {v} minus its limit",
    "z": "difference over its standard error, solver error included",
    "sd_predicted": "standard deviation of {v} by the central limit theorem",
    "sup_error": "largest |mean of {v} - limit| over time",
    "sup_error_se": "standard error of the mean where the difference is largest",
    "sup_time": "time of the largest difference",
    "rms_sd": "standard deviation of {v}, root mean square over time",
    "rms_sd_predicted": "predicted standard deviation of {v}, root mean square over time",
    "diverged": "seeds that diverged",
    "failed": "seeds that failed",
    "pending": "seeds not yet computed",
    "bias_p": "p-value of mean = limit at this n, over all times",
    "fluctuation_exponent": "a in sd ~ n^-a",
    **reading.exponent_names("fluctuation_exponent", "a"),
    "bias_exponent": "b in |mean - limit| ~ n^-b",
    **reading.exponent_names("bias_exponent", "b"),
    "bias_exponent_error": "standard error of b, NaN: the interval is that of a test",
    "bias_exponent_resolved": "1 where the bias stands above its noise",
    "p_value": "p-value of mean = limit + C/n over all times",
    "score": "largest normal score over time of mean - limit - C/n",
    "coefficient": "C in the finite-n term C/n",
    "coefficient_error": "standard error of C",
    "extrapolated": "mean of {v} extrapolated to n = infinity",
    "extrapolated_error": "standard error of the extrapolated mean",
    "limit": "limit of {v}",
    "limit_error": "solver error of the limit of {v}",
    "limit_control": "limit of {v} with the wrong drift of the control",
    "limit_bias": "n times (mean of {v} - limit) by theory",
    "term_known": "1 where C is that of theory and not fitted",
    "limit_from_n": "n from which theory at order 1/n holds",
    "limit_sd": "sqrt(n) times the predicted standard deviation of {v}",
}

HALF, RIVAL = 1 / 2, 1 / 6
"""Power of 1/n by which a scatter falls, and how far the next powers are, 1/3 and 2/3.

At a fold fluctuations fall as n^(-1/3), so that this is what runs have to tell from a half."""
COUNTS = {"diverged": DIVERGED, "failed": FAILED, "pending": PENDING}


def convergence(tree: xr.DataTree, settings: Convergence) -> xr.Dataset:
    """Compare simulations with their n -> infinity limit at every grid point.

    Over ``simulation``, the swept parameters, ``n`` and ``time``: the mean over seeds with standard
    error and standard deviation, and the limit; over ``n`` the largest difference over time; per
    point the exponents and the verdict of :func:`hdica.verdict.trajectory.judge`.
    """
    variable = settings.variable
    limits = controlled(limits_of(reading.group(tree, settings.limit), variable), settings.control)
    curves = [(limits[k], ("time",)) for k in ("limit", "error", "control", "bias", "from_n")]

    def compare(data: xr.Dataset, level: float) -> xr.Dataset:
        values, status = reading.finished(data, variable), data["status"]
        counts = xr.Dataset({name: (status == code).sum("seed") for name, code in COUNTS.items()})
        coords = {d: values[d].values for d in ("n", "time")}
        point = partial(_point, n=positions(values, "n"), level=level)
        inference = reading.cellwise(point, (values, ("n", "seed", "time")), *curves, coords=coords)
        return xr.merge([against_limit(values, limits), counts, inference], join="exact")

    out = reading.compared(tree, settings, variable, "time", compare, "count", *COUNTS)
    out = out.assign(limits.rename({k: f"limit_{k}" for k in limits if k != "limit"}))
    out = xr.merge([out, reading.baselines(tree, settings.baselines, variable)], join="left")
    out.attrs |= {"variable": variable, "band": settings.band}
    return reading.described(out, LONG_NAMES, variable, reading.units_by(out["time"]))


def limits_of(data: xr.Dataset, variable: str) -> xr.Dataset:
    """The limit with its solver error, its negative control and its predicted fluctuation."""
    return reading.with_companions(data, variable, "error", "control", "sd", "bias", "from_n")


def against_limit(values: xr.DataArray, limits: xr.Dataset) -> xr.Dataset:
    """Mean, spread and distance to the limit, by n and time.

    ``values`` are over ``n``, ``seed``, ``time`` and swept parameters, NaN where a run is not
    finished; ``limits`` as :func:`limits_of` gives them.
    """
    result = moments(values)
    mean, sd, se = result["mean"], result["sd"], result["se"]
    difference = mean - limits["limit"]
    total = np.sqrt(se**2 + limits["error"].fillna(0.0) ** 2)
    size = abs(difference)
    worst = size.fillna(-1.0).argmax("time")
    some = size.notnull().any("time")
    return xr.Dataset(
        {
            "mean": mean,
            "se": se,
            "sd": sd,
            "difference": difference,
            "z": (difference / total).where(total > 0),
            "sd_predicted": limits["sd"] / np.sqrt(values["n"]),
            "sup_error": size.isel(time=worst).where(some).drop_vars("time"),
            "sup_error_se": se.isel(time=worst).where(some).drop_vars("time"),
            "sup_time": size["time"].isel(time=worst).where(some).drop_vars("time"),
            "rms_sd": np.sqrt((sd**2).mean("time")),
            "rms_sd_predicted": np.sqrt((limits["sd"] ** 2).mean("time") / values["n"]),
            "count": result["count"],
        }
    ).transpose(*reading.swept(values), "n", "time", missing_dims="ignore")


def _point(values: Array, *curves: Array, n: Array, level: float) -> reading.Cell:
    """Everything inferred at one grid point, with ``curves`` of the limit, its error and more."""
    limit, error, control, term, least = curves
    runs = ladder(values, n)
    tolerance = np.nan_to_num(error)
    trusted = runs.above(int(np.searchsorted(runs.n, np.nan_to_num(least, posinf=np.inf).max())))
    # A term of order 1/n says nothing of n at which the expansion does not hold.
    known = (trusted, term) if len(trusted) and np.isfinite(term).all() else (runs, None)
    verdict = judge(known[0], limit, tolerance, control, level, known[1])
    plain = {k: float(getattr(verdict, k)) for k in ("control_rejected", "term_known", "n_count")}
    numbers = vars(verdict) | plain
    spread = fluctuation_exponent(runs)
    if not np.isfinite(limit).all():
        runs = Ladder(np.zeros(0), ())
    bias = bias_exponent(runs, limit, tolerance)
    p = np.full(len(n), np.nan)
    p[np.isin(n, runs.n)] = bias_p_values(runs, limit, tolerance)
    return {
        "bias_p": (("n",), p),
        **exponent("fluctuation_exponent", spread),
        **exponent("bias_exponent", bias),
        **{k: (("time",), value) if np.ndim(value) else value for k, value in numbers.items()},
    }


def exponent(name: str, fit: Exponent) -> reading.Cell:
    """A fitted exponent with its interval as variables."""
    values = {f"{name}_{k}": float(value) for k, value in vars(fit).items()}
    return {name: values.pop(f"{name}_value"), **values}


def findings(data: xr.Dataset) -> list[Finding]:
    """Every comparison where its mean is farthest from the limit, and how scatter and bias fall."""
    cells = cells_of(data["verdict"])
    scatter = "the standard deviation of " + symbol(data.attrs["variable"])
    top = at_largest_n(data, data["rms_sd"].notnull().any(data["verdict"].dims))
    ratio = top["rms_sd"] / top["rms_sd_predicted"]
    # As if all times scattered together, which is at least as much.
    error = ratio / np.sqrt(2 * (top["count"] - 1).where(top["count"] > 1))
    name = words("the ratio of the standard deviation to that of the central limit theorem")
    return [
        *(_comparison(data, cell, len(cells) == 1) for cell in cells),
        *half_power(data, "fluctuation_exponent", scatter),
        *_bias(data),
        *(
            Finding(name, place, float(ratio.sel(cell)), float(error.sel(cell)), digits=3)
            for cell in cells
            for place in [{**named(data, cell), "n": int(top["n"])}]
        ),
        *(_baselines(data) if "baseline" in data.dims else ()),
    ]


def _baselines(data: xr.Dataset) -> Iterator[Finding]:
    """The first and the last mean of what is drawn and not judged, beside the limit."""
    for cell in cells_of(data["baseline_mean"] + data["limit"], "time"):
        here = data.sel(cell).dropna("time", subset=["baseline_mean"])
        for t in sorted({*here["time"].values[:1].tolist(), *here["time"].values[-1:].tolist()}):
            value, error, n, limit = numbers(here.sel(time=t), {}, *reading.OF_BASELINES, "limit")
            at = {"simulation": cell["baseline"], **named(data, without(cell, "baseline"))}
            at |= {"n": int(n), "t": t} if np.isfinite(n) else {"t": t}
            yield Finding(_mean(data), at, value, error, predicted=limit, theory=words("the limit"))


def _mean(data: xr.Dataset) -> Text:
    return "mean " + symbol(data.attrs["variable"])


def _comparison(data: xr.Dataset, point: Point, alone: bool) -> Finding:
    """The mean at the largest n that is done, at the time when it is farthest from the limit.

    The limit that a mean alone agrees with, several standard errors away, has a term in 1/n.
    """
    here = data.sel(point)
    top = at_largest_n(here, here["sup_error"].notnull())
    time, place = float(top["sup_time"]), {**named(data, point), "n": int(top["n"])}
    at = top.sel(time=time) if np.isfinite(time) else top.isel(time=-1)
    value, error, limit, bound = numbers(at, {}, "mean", "se", "limit", "limit_error")
    one = Finding(_mean(data), place | {"t": time}, value, error, **judgement(data, point))
    beyond = one.verdict == AGREES and abs(value - limit) > 2 * error + bound
    theory = words("the limit up to a term in 1/n" if alone and beyond else "the limit")
    return replace(one, predicted=limit, predicted_error=bound, theory=theory)


def half_power(data: xr.Dataset, exponent: str, quantity: Text) -> list[Finding]:
    """The power of n by which a quantity falls, pooled over all comparisons, against 1/2.

    Terms of higher order in 1/n change the power at every n: one unlike a half differs from no
    limit, and is undecided.
    """
    values, errors = (data[f"{exponent}{end}"].values.ravel() for end in ("", "_error"))
    mean, error = pooled(values, errors, data.attrs["noise"] == "shared")
    if not np.isfinite(mean):
        return []
    whole = judged(np.array([mean - HALF]), np.array([error]), RIVAL).whole
    why = "pooled over all comparisons; the controls are the powers −1/3 and −2/3"
    one = Finding(quantity, {}, -mean, error, predicted=-HALF, form=Form.POWER, base=symbol("n"))
    return [replace(one, verdict=AGREES if whole == AGREES else UNDECIDED, evidence=why)]


def _bias(data: xr.Dataset) -> list[Finding]:
    """The power of n by which the mean approaches the limit, where it stands above its noise."""
    value, low, high = (data[f"bias_exponent{end}"].values for end in ("", "_low", "_high"))
    known = np.isfinite(value)
    if not known.any():
        return []
    inside = int(((low <= 1) & (high >= 1))[known].sum())
    why = f"median; {inside} of {int(known.sum())} 95 % intervals contain 1"
    name, power = "the distance of " + _mean(data) + " from the limit", -np.median(value[known])
    one = Finding(name, {}, float(power), predicted=-1.0, evidence=why, digits=2)
    return [replace(one, form=Form.POWER, base=symbol("n"))]
