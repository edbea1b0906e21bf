"""What escape times say: where escape is fastest, and how far each theory holds."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.escape.compute import methods, others, sizes, steps, theories
from hdica.show.choose import Point, points, selected
from hdica.show.finding import THEORY, Finding, Form, judgement, named
from hdica.show.panel import Array
from hdica.show.words import Text, method_name, symbol, words


def findings(data: xr.Dataset) -> list[Finding]:
    """Where escape is fastest, each comparison with theory, and what differs beside it."""
    return [
        *(_extremes(data) or _fastest_in_theory(data)),
        *_compared(data),
        *_unseen(data),
        *_at_smaller_n(data),
        *_other_theories(data),
        *_varying(data),
    ]


def _time(data: xr.Dataset) -> Text:
    first = data.attrs["event"] == "first"
    return words("the mean escape time" if first else "the mean time of the last escape")


def _whose(data: xr.Dataset, number: int = 0) -> Text:
    """A theory, for n -> infinity if it is."""
    known = theories(data)[number:]
    return THEORY if not known or known[0][1] else "theory for " + symbol("n") + " → ∞"


def _theory_name(data: xr.Dataset, number: int = 0) -> Text:
    """A theory, by its method where several are for the same n."""
    method, at_n = theories(data)[number]
    several = sum(finite == at_n for _, finite in theories(data)) > 1
    lead = _whose(data, number)
    return lead + " (" + method_name(method) + ")" if several else lead


def _bounded(mean: xr.Dataset) -> dict[str, Any]:
    """A mean with the ends of its interval, as fields of a finding; NaN where it is infinite."""
    value, low, high = (float(mean[f"mean{end}"]) for end in ("", "_low", "_high"))
    return {"value": value if np.isfinite(value) else np.nan, "low": low, "high": high}


def _mean_at(data: xr.Dataset, point: Point, name: Text, **fields: Any) -> Finding:
    """The measured mean at a point, and that of the first theory."""
    here = data.sel(point)
    fields |= {"unit": steps(data), **_bounded(here)}
    predicted = float(here["theory"].isel(limit=0)) if "theory" in here else np.nan
    return Finding(name, named(data, point), predicted=predicted, **fields)


def _series(data: xr.Dataset) -> list[tuple[Point, Array, bool]]:
    """Means over x of each method, at the largest n at which the least of them is sure.

    A mean that runs only bound from below may be less than the least that is known. Where that is
    so at every n, the means at the largest n at which any is known.
    """
    out = []
    for method, other in product(methods(data), points(data, others(data))):
        known = []
        for n in reversed(sizes(data)):
            point = {"simulation": method, **other, "n": n}
            row = data.sel(point)
            mean = row["mean"].where(np.isfinite(row["mean"])).values
            if np.isfinite(mean).any():
                low = row["mean_low"].where(np.isinf(row["mean"])).values
                known.append((point, mean, not (low < np.nanmin(mean)).any()))
        out += [*(one for one in known if one[2]), *known][:1]
    return out


def _extremes(data: xr.Dataset) -> list[Finding]:
    """Where the measured mean is least, and where it is largest if runs tell it everywhere."""
    x, least, most = str(data.attrs["x"]), list[Finding](), list[Finding]()
    for point, mean, sure in _series(data):
        name = _time(data) + ("" if sure else " where runs escape")
        for found, form, pick in (
            (least, Form.SMALLEST, np.nanargmin),
            (most, Form.LARGEST, np.nanargmax),
        ):
            at = {x: data[x].values[int(pick(mean))].item(), **point}
            found.append(_mean_at(data, at, name, form=form, theory=_whose(data)))
        if bool(np.isinf(data["mean"].sel(point)).any()) or mean.size == 1:
            most.pop()
    return [*least, *most]


def _largest(data: xr.Dataset) -> Point:
    """The largest n that has runs, or of theory where none has."""
    known = sizes(data) or (data["n"].values.astype(int).tolist() if "n" in data.dims else [])
    return {"n": known[-1]} if known else {}


def _fastest_in_theory(data: xr.Dataset) -> list[Finding]:
    """Where the mean is least in each theory, at its largest n."""
    x, out = str(data.attrs["x"]), []
    for k, (method, at_n) in enumerate(theories(data)):
        for other in points(data, others(data)):
            top = _largest(data) if at_n else {}
            values = selected(data["theory"], {**other, **top, "limit": method})
            values = values.isel(n=0, missing_dims="ignore").where(np.isfinite)
            if not bool(values.notnull().any()):
                continue
            best = {x: data[x].values[int(np.nanargmin(values.values))].item()}
            name = _time(data) + " in " + _theory_name(data, k)
            place, least = {**other, **best, **top}, float(values.min())
            out.append(Finding(name, place, least, unit=steps(data), form=Form.SMALLEST))
    return out


def _with_runs(data: xr.Dataset) -> list[Point]:
    """Every cell with runs."""
    if "runs" not in data:
        return []
    every = points(data, [str(d) for d in data["runs"].dims])
    return [p for p in every if int(data["runs"].sel(p)) > 0]


def _compared(data: xr.Dataset) -> list[Finding]:
    """Every cell against the first theory; one for n -> infinity at the largest n alone."""
    if "verdict" not in data:
        return []
    here = data.isel(limit=0)
    if data.attrs["event"] == "last" and not bool(here["p_value"].notnull().any()):
        return []  # of several projections theory may know the mean alone
    least = 0 if theories(data)[0][1] else max(sizes(data), default=0)
    return [
        _mean_at(data, point, _time(data), theory=_theory_name(data), **judgement(here, point))
        for point in _with_runs(data)
        if point["n"] >= least
    ]


def _unseen(data: xr.Dataset) -> list[Finding]:
    """Above what the mean lies where runs only bound it."""
    first = data.attrs["event"] == "first"
    where = " where no run escapes" if first else " where some runs do not escape"
    name = "the lower bound (97.5 %) of " + _time(data) + where
    bounds = [(p, float(data["mean_low"].sel(p))) for p in _with_runs(data)]
    return [
        Finding(name, named(data, p), bound, unit=steps(data), digits=3)
        for p, bound in bounds
        if np.isinf(data["mean"].sel(p))
    ]


def _at_smaller_n(data: xr.Dataset) -> list[Finding]:
    """Measured means over those for n -> infinity, below the largest n."""
    if not methods(data) or not theories(data) or theories(data)[0][1]:
        return []
    name = "the ratio of measured to predicted mean escape time below the largest " + symbol("n")
    ratios = data[["mean", "mean_low", "mean_high"]] / data["theory"].isel(limit=0, drop=True)
    cells = [(p, ratios.sel(p)) for p in _with_runs(data) if p["n"] < max(sizes(data))]
    return [
        Finding(name, named(data, point), **_bounded(here))
        for point, here in cells
        if np.isfinite(here["mean"])
    ]


def _other_theories(data: xr.Dataset) -> list[Finding]:
    """By which factor each further theory is off the first, at the largest n."""
    top = _largest(data)
    out = []
    for method, _ in theories(data)[1:]:
        pair = method_name(method) + " to " + method_name(theories(data)[0][0])
        name = "the ratio of predicted mean escape times (" + pair + ")"
        ratio = data["theory"].sel(limit=method) / data["theory"].isel(limit=0)
        for point in points(data, [str(d) for d in ratio.dims if d != "n"]):
            value = float(selected(ratio, {**point, **top}))
            if np.isfinite(value):
                out.append(Finding(name, {**point, **top}, value, digits=3))
    return out


def _varying(data: xr.Dataset) -> list[Finding]:
    """In how many cells escapes have no constant rate, at a level that all cells share."""
    if "exponential_p" not in data or data.attrs["event"] == "last":
        return []
    p = data["exponential_p"].values
    total = int(np.isfinite(p).sum())
    many = int((p < data.attrs["level"] / max(total, 1)).sum())
    name = words(f"the number of cells, of {total} tested, where the escape rate is not constant")
    evidence = "there the restricted mean and the median are right"
    return [Finding(name, {}, float(many), evidence=evidence)] if many else []
