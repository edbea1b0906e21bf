"""Trajectories, and error against n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import xarray as xr

from hdica.analysis.convergence import theory
from hdica.analysis.convergence.theory import deviations
from hdica.analysis.show.choose import MOST, Point, banded, evenly, grouped, shown, spread
from hdica.analysis.show.marks import GREY, SYMBOLS, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import (
    Text,
    clock,
    count,
    limit_name,
    measured,
    method_name,
    of_n,
    place,
    symbol,
    value_of,
    words,
)
from hdica.analysis.terms import starts

Item = Line | Points


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of the convergence analysis."""
    return [str(d) for d in data["verdict"].dims if d != "simulation"]


def trajectories(data: xr.Dataset) -> list[Panel]:
    """Mean over seeds with its spread at every n, and the limit on top, for some grid points."""
    dims = grid_of(data)
    start = next((d for d in dims if d in starts()), None)
    ordered = [d for d in dims if d != start] + ([start] if start else [])
    out = []
    for k, (outer, members) in enumerate(grouped(shown(data, ordered), start)):
        one = {**outer, **(members[0] if len(members) == 1 else {})}
        out.append(
            Panel(
                key=f"trajectories_{k + 1}",
                title=place(one) if one else words("Trajectories"),
                x_label=clock(data["time"].attrs),
                y_label=measured(str(data.attrs["variable"])),
                items=tuple(
                    _runs(data, members)
                    + theory.edges(data, members, _first(data))
                    + _limits(data, members)
                ),
                caption=_caption(data, members, start),
            )
        )
    return out


def _sizes(data: xr.Dataset) -> dict[str, list[int]]:
    """Which n to draw of each method: a few evenly, the largest always."""
    out: dict[str, list[int]] = {}
    for k, method in enumerate(data["simulation"].values):
        seeds = data["count"].sel({"simulation": method})
        own = data["n"].values[(seeds > 0).any([d for d in seeds.dims if d != "n"]).values]
        out[str(method)] = evenly(own.astype(int).tolist(), 4 if k == 0 else 2)
    return out


def _caption(data: xr.Dataset, members: list[Point], start: str | None) -> str:
    methods = [method_name(m).html for m in data["simulation"].values]
    spread = deviations(data.attrs["band"])
    text = f"Line and band: mean ± {spread} over seeds ({methods[0]})"
    drawn = [n for n, _ in _first(data)]
    if len(banded(drawn)) < len(drawn):
        ends = " and ".join(map(count, banded(drawn)))
        text += f", bands at {symbol('n').html} = {ends} alone"
    if len(methods) > 1:
        text += f"; markers with bars: the same by {' and '.join(methods[1:])}"
    limit = data["limit"]
    curves = [limit.sel({k: v for k, v in m.items() if k in limit.dims}) for m in members]
    dashed = f" Dashed: the limit ({method_name(data.attrs['limit_method']).html})."
    text += "." + (dashed if any(np.isfinite(one).any() for one in curves) else "")
    text += theory.said(data, members, drawn)
    if start and len(members) > 1:
        starts = escape(", ".join(value_of(m[start]) for m in members))
        text += f" Starts {symbol(start).html} = {starts}."
    total = int(np.prod([data.sizes[d] for d in grid_of(data)], dtype=int))
    if total > MOST:
        text += f" Of {total} grid points {len(shown(data, grid_of(data)))} are drawn."
    return text


def _runs(data: xr.Dataset, members: list[Point]) -> list[Item]:
    """Means and spreads, small n first so that the narrow bands lie on top."""
    sizes = _sizes(data)
    drawn = sorted({n for own in sizes.values() for n in own})
    shaded = banded([n for n, _ in _first(data)])
    out: list[Item] = []
    for i, n in enumerate(drawn):
        for j, method in enumerate(data["simulation"].values):
            if n not in sizes[str(method)]:
                continue
            label = of_n(n, str(method) if len(sizes) > 1 else "")
            for point in members:
                here = data.sel({"simulation": method, "n": n, **point})
                if int(here["count"]) > 0:
                    first = not any(item.label == label for item in out)
                    color = color_of(i, len(drawn))
                    band = data.attrs["band"] if j or n in shaded else 0.0
                    out.append(_run(here, label, color, j, first, band))
    return out


def _run(here: xr.Dataset, label: Text, color: str, method: int, listed: bool, band: float) -> Item:
    """One mean with its spread: a band for the first method, bars for the others."""
    time, mean = here["time"].values.astype(float), here["mean"].values
    sd = band * np.nan_to_num(here["sd"].values)
    if method == 0 and not band:
        return Line(time, mean, label, color, listed=listed)
    if method == 0:
        return Line(time, mean, label, color, low=mean - sd, high=mean + sd, listed=listed)
    keep = np.array(spread(len(time), 11))
    time, mean, sd = time[keep], mean[keep], sd[keep]
    mark = SYMBOLS[method % 4]
    return Points(time, mean, label, color, mean - sd, mean + sd, mark, listed=listed)


def _first(data: xr.Dataset) -> list[tuple[int, str]]:
    """The n that are drawn of the first method, with their colours."""
    sizes = _sizes(data)
    drawn = sorted({n for own in sizes.values() for n in own})
    return [(n, color_of(drawn.index(n), len(drawn))) for n in next(iter(sizes.values()))]


def _limits(data: xr.Dataset, members: list[Point]) -> list[Item]:
    label = limit_name(data.attrs["limit_method"])
    out: list[Item] = []
    for point in members:
        here = data["limit"].sel({k: v for k, v in point.items() if k in data["limit"].dims})
        time = here["time"].values.astype(float)
        out.append(Line(time, here.values, label, "ink", "dash", bold=True, listed=not out))
    return out


def fluctuation_and_bias(data: xr.Dataset) -> list[Panel]:
    """Error against n, on logarithmic axes; nothing for a single n."""
    if data.sizes["n"] < 2:
        return []
    chosen = shown(data, grid_of(data))
    variable = symbol(str(data.attrs["variable"]))
    fluctuation = _fluctuation(data, chosen)
    theory = " Lines: the central limit theorem's prediction." if _predicted(data) else ""
    bias = _bias(data, chosen)
    told = bool(data["limit_bias"].notnull().any())
    term = " Line: the largest |m|/n over time, by theory." if told else ""
    x_label = words("dimension ") + symbol("n")
    return [
        Panel(
            "fluctuation",
            words("Fluctuation over seeds"),
            x_label,
            words("sd of ") + variable + words(" (rms over time)"),
            (*fluctuation, *_markers(data), *guides(fluctuation, 0.5)),
            caption="Markers: standard deviation over seeds, root mean square over time."
            f"{theory} Dotted: slope −1/2.",
            log_x=True,
            log_y=True,
        ),
        Panel(
            "bias",
            words("Bias"),
            x_label,
            words("sup |mean ") + variable + words(" − limit|"),
            (*bias, *_markers(data), *guides(bias, 1.0)),
            caption="Markers: largest distance of the mean over seeds from the limit over time, "
            "± standard error; filled where it stands above its noise (5 % over all times), open "
            f"where it is noise.{term} Dotted: slope −1.",
            log_x=True,
            log_y=True,
            y_range=_range(bias),
        ),
    ]


def _predicted(data: xr.Dataset) -> bool:
    """Whether any fluctuation is predicted."""
    return bool(data["rms_sd_predicted"].notnull().any())


@dataclass(frozen=True)
class _Series:
    """One grid point by one method over n, as it is drawn: colour by point, marker by method."""

    data: xr.Dataset
    label: Text
    color: str
    mark: str
    listed: bool


def _series(data: xr.Dataset, chosen: list[Point]) -> list[_Series]:
    out: list[_Series] = []
    for i, point in enumerate(chosen):
        label = place(point) or words("simulation")
        for j, method in enumerate(data["simulation"].values):
            here = data.sel({"simulation": method, **point})
            here = here.isel(n=np.flatnonzero(here["count"].values >= 2))
            if here.sizes["n"]:
                first = not any(s.label == label for s in out)
                color, mark = color_of(i, len(chosen)), SYMBOLS[j % 4]
                out.append(_Series(here, label, color, mark, first))
    return out


def _markers(data: xr.Dataset) -> list[Item]:
    """Legend entries for the methods, if there are several."""
    nowhere = np.full(1, np.nan)
    methods = [str(m) for m in data["simulation"].values]
    return [
        Points(nowhere, nowhere, method_name(method), GREY, symbol=SYMBOLS[j % 4])
        for j, method in enumerate(methods)
        if len(methods) > 1
    ]


def _fluctuation(data: xr.Dataset, chosen: list[Point]) -> list[Item]:
    out: list[Item] = []
    predicted: list[tuple[np.ndarray, np.ndarray, str]] = []
    for s in _series(data, chosen):
        n, sd = s.data["n"].values.astype(float), s.data["rms_sd"].values
        error = sd / np.sqrt(2 * np.maximum(s.data["count"].values - 1, 1))
        bars = sd - error, sd + error
        out.append(Points(n, sd, s.label, s.color, *bars, s.mark, listed=s.listed))
        theory = s.data["rms_sd_predicted"].values
        if np.isfinite(theory).all():
            predicted.append((n, theory, s.color))
    return out + _theories(predicted, words("central limit theorem"))


def _theories(curves: list[tuple[np.ndarray, np.ndarray, str]], name: Text) -> list[Item]:
    """Lines of theory: in ink where they are one curve, else each in the colour of its markers."""
    if not curves:
        return []
    n, first, _ = curves[0]
    if all(np.array_equal(one, n) and np.allclose(y, first, rtol=1e-9) for one, y, _ in curves):
        return [Line(n, first, name, "ink")]
    nowhere = np.full(2, np.nan)
    lines: list[Item] = [Line(x, y, name, color, listed=False) for x, y, color in curves]
    return [*lines, Line(nowhere, nowhere, name, GREY)]


def _bias(data: xr.Dataset, chosen: list[Point]) -> list[Item]:
    out: list[Item] = []
    for s in _series(data, chosen):
        n, error = s.data["n"].values.astype(float), s.data["sup_error"].values
        se = s.data["sup_error_se"].values
        low = np.maximum(error - se, error * 1e-3)  # to below the axis, not to a false end
        out.append(
            Points(
                n, error, s.label, s.color, low, error + se, s.mark,
                filled=s.data["bias_p"].values < 0.05, joined=True, listed=s.listed,
            )
        )  # fmt: skip
    return out + _bias_predicted(data, chosen)


def _bias_predicted(data: xr.Dataset, chosen: list[Point]) -> list[Item]:
    """The largest |m|/n over time, where theory knows m."""
    curves = []
    n = data["n"].values.astype(float)
    for i, point in enumerate(chosen):
        own = {k: v for k, v in point.items() if k in data["limit_bias"].dims}
        size = float(abs(data["limit_bias"].sel(own)).max())
        if np.isfinite(size) and size > 0:
            curves.append((n, size / n, color_of(i, len(chosen))))
    return _theories(curves, words("term of order 1/n"))


def _range(items: list[Item]) -> tuple[float, float] | None:
    """Logarithmic limits from the markers and their upper ends; lower ends may be cut."""
    marks = [i for i in items if isinstance(i, Points)]
    tops = [m.high for m in marks if m.high is not None]
    y = np.concatenate([np.zeros(0), *(m.y for m in marks), *tops])
    y = y[np.isfinite(y) & (y > 0)]
    return (float(y.min() / 3), float(y.max() * 1.6)) if len(y) else None


def guides(items: Sequence[object], slope: float) -> list[Item]:
    """A line of the expected slope through the middle of the points, not far below them."""
    marks = [i for i in items if isinstance(i, Points)]
    if not marks:
        return []
    x, y = (np.concatenate([getattr(m, axis) for m in marks]) for axis in ("x", "y"))
    keep = np.isfinite(y) & (y > 0)
    if not keep.any() or x.min() == x.max():
        return []
    level = np.exp(np.log(y[keep] * x[keep] ** slope).mean())
    last = min(x.max(), (2 * level / y[keep].min()) ** (1 / slope))
    ends = np.array([x.min(), last])
    label = words("slope −1/2") if slope == 0.5 else words("slope −1")
    return [Line(ends, level * ends**-slope, label, GREY, "dot")]
