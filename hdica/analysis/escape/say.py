"""What the escape times say."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape as escaped

from hdica.analysis.escape.figure import methods, others, sizes, theories
from hdica.analysis.escape.unit import steps
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import N, among, cell, counted
from hdica.analysis.show.words import count, method_name, number, p_value, place, plural

CELLS = 3
MOST = 4
FAR = 1.1
"""A theory for n -> infinity is named as far off from this factor on."""


def escape(data: xr.Dataset) -> list[str]:
    """Sentences on the fastest escape, agreement with theory, and runs that did not escape."""
    return [
        *_fastest(data),
        *_fastest_theory(data),
        *_agreement(data),
        *_far_off(data),
        *_none(data),
        *_not_exponential(data),
        *_diverged(data),
    ]


def _cells(data: xr.Dataset) -> list[Point]:
    """A few values of the parameters beside x."""
    return evenly(points(data, others(data)), CELLS)


def _some_n(data: xr.Dataset) -> list[int]:
    return evenly(sizes(data), CELLS)


def _event(data: xr.Dataset) -> str:
    return "escape" if data.attrs["event"] == "first" else "escape of the last projection"


def _estimate(here: xr.Dataset, point: Point) -> str:
    """Mean with its interval."""
    mean, low, high = (float(selected(here[k], point)) for k in ("mean", "mean_low", "mean_high"))
    return f"{number(mean)} [{number(low)}, {number(high)}] {steps(here).html}"


def _fastest(data: xr.Dataset) -> list[str]:
    """Where the measured mean is least, by method and n."""
    out, x = [], data.attrs["x"]
    for method in methods(data):
        for other in _cells(data):
            for n in _some_n(data):
                point = {**other, "simulation": method, "n": n}
                mean, low = (selected(data[k], point).values for k in ("mean", "mean_low"))
                known = np.where(np.isfinite(mean), mean, np.nan)
                # A mean that runs only bound may be less than the least that they tell.
                unknown = np.isinf(mean) & (low < np.nanmin([*known, np.inf]))
                if np.isfinite(known).sum() < 2 or unknown.any():
                    continue
                best = {x: data[x].values[int(np.nanargmin(known))].item()}
                out.append(
                    f"At {place({**other, 'n': n}).html} {_event(data)} is fastest at "
                    f"{place(best).html}{among()}: mean {_estimate(data, {**point, **best})} "
                    f"({method_name(method).html}, 95 % interval)"
                    f"{_beside(data, {**point, **best})}."
                )
    return out


def _beside(data: xr.Dataset, point: Point) -> str:
    """What every theory says there."""
    parts = []
    for method, finite in theories(data):
        value = float(selected(data["theory"], {**point, "limit": method}))
        if np.isfinite(value):
            where = f"theory at that {N}" if finite else f"theory for {N} → ∞"
            parts.append(f"; {where} {number(value)}")
    return "".join(parts)


def _fastest_theory(data: xr.Dataset) -> list[str]:
    """Where the mean is least in theory, where nothing was simulated."""
    out, x = [], data.attrs["x"]
    for method, finite in theories(data) if not methods(data) else []:
        for other in _cells(data):
            for n in _some_n(data) if finite else [None]:
                point = other if n is None else {**other, "n": n}
                values = selected(data["theory"], {**point, "limit": method})
                if "n" in values.dims:
                    values = values.isel(n=0)
                mean = np.where(np.isfinite(values), values, np.nan)
                if mean.ndim != 1 or not np.isfinite(mean).any():
                    continue
                k = int(np.nanargmin(mean))
                lead = f"At {place(point).html} in" if point else "In"
                of_n = f" for {N} → ∞" if n is None else ""
                out.append(
                    f"{lead} theory{of_n} ({method_name(method).html}) {_event(data)} is fastest "
                    "at "
                    f"{place({x: data[x].values[k].item()}).html}{among()}: mean "
                    f"{number(mean[k], 4)} {steps(data).html}."
                )
    return out


def _run_cells(data: xr.Dataset) -> list[Point]:
    """Every cell with runs."""
    every = points(data, [str(d) for d in data["runs"].dims])
    return [p for p in every if int(data["runs"].sel(p)) > 0]


def _agreement(data: xr.Dataset) -> list[str]:
    """How many cells agree with each theory."""
    if "verdict" not in data:
        return []
    out = []
    for method, finite in theories(data):
        here = data.sel(limit=method)
        if data.attrs["event"] == "last" and not bool(here["p_value"].notnull().any()):
            continue  # of several projections theory may know the mean alone
        kind = f"theory at that {N}" if finite else f"theory for {N} → ∞"
        what = f"comparisons of runs with {kind} ({method_name(method).html})"
        out += counted(here, _run_cells(here), what, cell)
    return out


def _far_off(data: xr.Dataset) -> list[str]:
    """Where theory for n -> infinity is furthest from runs, or from theory at that n."""
    at_n = [m for m, finite in theories(data) if finite]
    whole = [m for m, finite in theories(data) if not finite]
    name = "mean" if methods(data) else "theory"
    if not whole or not (methods(data) or at_n):
        return []
    values = data["mean"] if methods(data) else data["theory"].sel(limit=at_n[0], drop=True)
    ratio = values / data["theory"].sel(limit=whole[0], drop=True)
    known = ratio.where(np.isfinite(ratio) & (ratio > 0))
    size = abs(xr.apply_ufunc(np.log, known))
    if not bool(size.notnull().any()) or float(size.max()) < np.log(FAR):
        return []
    worst = {str(d): int(k) for d, k in size.fillna(-1.0).argmax(...).items()}
    (point,) = points(data.isel({d: [k] for d, k in worst.items()}), list(worst))
    where = cell(point) if name == "mean" else place(point).html
    factor = float(ratio.isel(worst))
    text = f"{number(factor, 2)} times" if factor >= 1 else f"1/{number(1 / factor, 2)} of"
    source = "measured" if name == "mean" else f"for that {N}"
    return [
        f"Theory for {N} → ∞ is furthest off at {where}{among()}: the mean {source} is {text} its "
        "mean."
    ]


def _none(data: xr.Dataset) -> list[str]:
    """Cells in which no run escaped."""
    if "runs" not in data:
        return []
    where = [p for p in _run_cells(data) if int(data["escapes"].sel(p)) == 0]
    out = []
    for point in evenly(where, MOST):
        here = data.sel(point)
        out.append(
            f"In {plural(int(here['runs']), 'run')} of up to {number(float(here['longest']))} "
            f"{steps(data).html} at {cell(point)} there was no {_event(data)}: mean above "
            f"{number(float(here['mean_low']))} (95 % interval)."
        )
    if len(where) > MOST:
        out[-1] += f" {plural(len(where) - MOST, 'more cell')} had none either."
    return out


def _not_exponential(data: xr.Dataset) -> list[str]:
    """Whether escapes have a constant rate; the level is shared by all cells tested."""
    if "exponential_p" not in data or data.attrs["event"] == "last":
        return []
    tested = [p for p in _run_cells(data) if np.isfinite(float(data["exponential_p"].sel(p)))]
    if not tested:
        return []
    each = data.attrs["level"] / len(tested)
    bad = [p for p in tested if float(data["exponential_p"].sel(p)) < each]
    if not bad:
        return [
            f"Escapes have a constant rate, as far as can be told, in all {len(tested)} cells with "
            f"at least five of them{among()}."
        ]
    worst = min(bad, key=lambda p: float(data["exponential_p"].sel(p)))
    p = p_value(float(data["exponential_p"].sel(worst)))
    return [
        f"In {len(bad)} of {len(tested)} cells escapes do not have a constant rate "
        f"({cell(worst)}: {escaped(p)}): there the restricted mean and the median are to be used."
    ]


def _diverged(data: xr.Dataset) -> list[str]:
    """Runs that diverged, which are no runs here."""
    lost = int(data["diverged"].sum()) if "diverged" in data else 0
    if not lost:
        return []
    total = lost + int(data["runs"].sum())
    return [f"{count(lost)} of {plural(total, 'run')} diverged and are not counted as runs."]
