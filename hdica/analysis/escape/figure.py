"""Mean escape times, survival curves, and a map of both parameters that set the time."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.escape.unit import steps
from hdica.analysis.show.choose import Point, said, selected, shown
from hdica.analysis.show.marks import GREY, SYMBOLS, captioned, color_of
from hdica.analysis.show.panel import Cells, Heat, Line, Panel, Points
from hdica.analysis.show.words import (
    EMPTY,
    Text,
    method_name,
    of_n,
    place,
    symbol,
    titled,
    words,
)

Array = NDArray[np.float64]
Item = Line | Points

MAPS = 3
ARROW = 1.6
"""The bar of a lower bound ends at so many times its value: the mean may lie anywhere above."""

DASHES = ("solid", "dash", "dot")
"""How theories for one n are told apart, in their order."""

AT_N = "theory at that <i>n</i>"

ABOVE = 30.0
"""Theory is drawn up to so many times what was measured; alone, over six decades."""

OWN = {"limit", "simulation", "elapsed", "n"}


def escape(data: xr.Dataset) -> list[Panel]:
    """Means against x, survival at some grid points, and a map over x and n."""
    cells = shown(data, others(data))
    tails = [f"_{k + 1}" if len(cells) > 1 else "" for k in range(len(cells))]
    means = [_means(data, cell, tail) for cell, tail in zip(cells, tails, strict=True)]
    maps = [_map(data, cell, tail) for cell, tail in zip(cells[:MAPS], tails, strict=False)]
    return [p for p in (*means, *_survivals(data), *maps) if p is not None]


def others(data: xr.Dataset) -> list[str]:
    """Swept parameters beside x."""
    return [str(d) for d in data.dims if d not in OWN and d != data.attrs["x"]]


def sizes(data: xr.Dataset) -> list[int]:
    """Dimensions n of the runs, or of theory where there are none."""
    if "n" not in data.dims:
        return []
    if "runs" not in data:
        return [int(n) for n in data["n"].values]
    some = (data["runs"] > 0).any([d for d in data["runs"].dims if d != "n"])
    return [int(n) for n in data["n"].values[some.values]]


def theories(data: xr.Dataset) -> list[tuple[str, bool]]:
    """Names of the theories, and whether they are for one n."""
    if "theory" not in data:
        return []
    return [(str(m), bool(data["at_n"].sel(limit=m) > 0)) for m in data["limit"].values]


def methods(data: xr.Dataset) -> list[str]:
    """Names of the simulations."""
    return [str(m) for m in data["simulation"].values] if "runs" in data else []


def _theory_name(data: xr.Dataset, method: str, n: int | None = None) -> Text:
    """A theory with its n; by its method where there are several for one n, or for infinity."""
    several = sum(finite == (n is not None) for _, finite in theories(data)) > 1
    name = method if several else "theory"
    return of_n(n, name) if n is not None else symbol("n") + words(" → ∞, ") + method_name(name)


def _along(data: xr.Dataset, name: str, point: Point) -> Array:
    """A variable along x, NaN where it is infinite; constant if it does not depend on x."""
    x = data[data.attrs["x"]]
    values = selected(data[name], point).broadcast_like(x).values.astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def _means(data: xr.Dataset, cell: Point, tail: str) -> Panel | None:
    """Mean escape time against x: runs with intervals, lower bounds, and every theory."""
    x = data[data.attrs["x"]].values.astype(float)
    marks = [m for n in sizes(data) for m in _measured(data, {**cell, "n": n}, x)]
    items: list[Item] = [*_theory(data, cell, x), *marks]
    items = [i for i in items if np.isfinite(i.y).any()]
    if not items:
        return None
    which = "first" if data.attrs["event"] == "first" else "last"
    return Panel(
        f"escape_mean{tail}",
        titled(words(f"Mean time of the {which} escape"), cell),
        symbol(data.attrs["x"]),
        words("mean escape time, ") + steps(data),
        tuple(items),
        caption=_caption(data, bool(marks)),
        log_x=wide_range(x),
        log_y=True,
        y_range=_range(items),
        wide=True,
    )


def wide_range(x: Array) -> bool:
    """Whether values need a logarithmic axis."""
    return bool(x.min() > 0 and x.max() >= 10 * x.min())


def _measured(data: xr.Dataset, point: Point, x: Array) -> list[Item]:
    """Means with 95 % intervals, and triangles where runs only bound them."""
    every, out = sizes(data), list[Item]()
    color = color_of(every.index(point["n"]), len(every))
    for j, method in enumerate(methods(data)):
        here = {**point, "simulation": method}
        y, low, high = (_along(data, k, here) for k in ("mean", "mean_low", "mean_high"))
        name = method if len(methods(data)) > 1 else ""
        seen = np.isfinite(y)
        bound = ~seen & np.isfinite(low)
        if seen.any():
            mark = SYMBOLS[j % 3]
            label = of_n(point["n"], name)
            out.append(Points(x[seen], y[seen], label, color, low[seen], high[seen], mark))
        if bound.any():
            label = of_n(point["n"], name) + words(" lower bound" if name else ", lower bound")
            least = low[bound]
            ends = least, ARROW * least
            out.append(Points(x[bound], least, label, color, *ends, "triangle"))
    return out


def _theory(data: xr.Dataset, cell: Point, x: Array) -> list[Item]:
    """Theory at every n in its colour, for n -> infinity in ink, and Kramers' formula."""
    out: list[Item] = []
    every, dashes = sizes(data), iter(DASHES * len(theories(data)))
    for method, finite in theories(data):
        if not finite:
            y = _along(data, "theory", _first_n(data, {**cell, "limit": method}))
            out.append(Line(x, y, _theory_name(data, method), "ink", bold=True))
            continue
        dash = next(dashes)
        for i, n in enumerate(every):
            y = _along(data, "theory", {**cell, "limit": method, "n": n})
            out.append(Line(x, y, _theory_name(data, method, n), color_of(i, len(every)), dash))
    for name, label, look in (
        ("kramers", words("Kramers"), ("ink", "dot")),
        ("printed", words("Kramers, exponent as printed"), (GREY, "dashdot")),
    ):
        if _drawn(data, name):
            y = _along(data, name, _first_n(data, cell, name))
            out.append(Line(x, y, label, *look))
    return out


def _drawn(data: xr.Dataset, name: str) -> bool:
    """Whether there is a formula, and but one curve of it."""
    return name in data and data[name].sizes.get("n", 1) == 1


def _first_n(data: xr.Dataset, point: Point, name: str = "theory") -> Point:
    """What is for n -> infinity is the same at every n."""
    return {**point, "n": data["n"].values[0]} if "n" in data[name].dims else point


def _range(items: list[Item]) -> tuple[float, float]:
    """Limits of the axis: formulas that grow without bound are cut."""
    marks = [i for i in items if isinstance(i, Points)]
    y = np.concatenate([i.y for i in items])
    y = y[np.isfinite(y) & (y > 0)]
    tops = [np.nanmax(i.high) for i in marks if i.high is not None]
    lows = [np.nanmin(i.low) for i in marks if i.low is not None]
    low = float(min([y.min(), *lows])) / 1.5
    high = ABOVE * float(max(tops)) if tops else 1e6 * low
    return low, min(high, 1.5 * float(max([y.max(), *tops])))


def _caption(data: xr.Dataset, marks: bool) -> str:
    parts = []
    if marks:
        names = " and ".join(method_name(m).html for m in methods(data))
        first = data.attrs["event"] == "first"
        what = "time observed over escapes" if first else "means of all runs"
        parts.append(f"Markers: {what}, with 95 % intervals ({names}).")
        if bool(np.isinf(data["mean"]).any()):
            why = "no run" if first else "not every run"
            parts.append(f"Triangles: {why} escaped; the mean lies above, at 97.5 % confidence.")
    for text, kind in (("Thin lines: theory at", True), ("Thick line: theory for", False)):
        names = " and ".join(method_name(m).html for m, finite in theories(data) if finite == kind)
        if names:
            parts.append(f"{text} {'that <i>n</i>' if kind else '<i>n</i> → ∞'} ({names}).")
    if _drawn(data, "kramers"):
        parts.append("Kramers: the formula for the pair that escapes first.")
    if _drawn(data, "printed"):
        parts.append("Dash-dotted: the same with the exponent as printed, half of the right one.")
    parts += said(data, others(data), len(shown(data, others(data))))
    return " ".join(parts)


def _survivals(data: xr.Dataset) -> list[Panel]:
    """Share not yet escaped at a few grid points, all n in one panel."""
    if not {"survival", "theory_survival"} & set(data):
        return []
    cells = shown(data, [*others(data), data.attrs["x"]])
    out = []
    for k, cell in enumerate(cells):
        items = _survival(data, cell)
        if items:
            out.append(
                Panel(
                    f"escape_survival_{k + 1}",
                    place(cell),
                    words("time, ") + steps(data),
                    words("share not escaped"),
                    tuple(items),
                    caption=_survival_caption(items),
                    log_x=True,
                    y_range=(-0.03, 1.03),
                )
            )
    return out


def _survival(data: xr.Dataset, cell: Point) -> list[Item]:
    """Kaplan and Meier's curves with bands, and the theories."""
    time, out, every = data["elapsed"].values, list[Item](), sizes(data)
    for i, n in enumerate(every):
        for method in methods(data):
            point = {**cell, "n": n, "simulation": method}
            y, low, high = (
                selected(data[f"survival{k}"], point).values for k in ("", "_low", "_high")
            )
            keep = np.isfinite(y)
            if keep.any():
                label = of_n(n, method if len(methods(data)) > 1 else "")
                bands = {"low": low[keep], "high": high[keep]}
                out.append(Line(time[keep], y[keep], label, color_of(i, len(every)), **bands))
    # Runs have the solid lines.
    dashes = iter(DASHES[1:] * len(theories(data)))
    for method, finite in theories(data) if "theory_survival" in data else []:
        law, point = data["theory_survival"], {**cell, "limit": method}
        if finite:
            dash = next(dashes)
            for i, n in enumerate(every):
                y, color = selected(law, {**point, "n": n}).values, color_of(i, len(every))
                out.append(Line(time, y, _theory_name(data, method, n), color, dash))
        else:
            y = selected(law, _first_n(data, point)).values
            out.append(Line(time, y, _theory_name(data, method), "ink"))
    out = [item for item in out if np.isfinite(item.y).any()]
    return out


def _survival_caption(items: list[Item]) -> str:
    sentences = {
        "band": "Lines with bands: Kaplan and Meier's estimate, 95 % at each time.",
        "dash": f"Dashed: {AT_N}.",
        "dot": f"Dotted: {AT_N}.",
    }
    parts = captioned(items, sentences)
    if any(isinstance(item, Line) and item.color == "ink" for item in items):
        banded = any(isinstance(item, Line) and item.low is not None for item in items)
        kind = "Solid line without a band" if banded else "Solid line"
        parts.append(f"{kind if len(items) > 1 else 'Line'}: theory for <i>n</i> → ∞.")
    return " ".join(parts)


def _map(data: xr.Dataset, cell: Point, tail: str) -> Panel | None:
    """Logarithm of the mean over x and n, on a scale from the least to the largest."""
    x, every = data[data.attrs["x"]].values.astype(float), sizes(data)
    finite = [m for m, at_n in theories(data) if at_n]
    if len(every) < 2 or len(x) < 2 or not (methods(data) or finite):
        return None
    runs = methods(data)[:1]
    key = {"simulation": runs[0]} if runs else {"limit": finite[0]}
    rows = []
    for n in every:
        point = {**cell, **key, "n": n}
        y = _along(data, "mean" if runs else "theory", point)
        rows.append(np.where(np.isfinite(y), y, _along(data, "mean_low", point)) if runs else y)
    with np.errstate(divide="ignore"):
        z = np.log10(np.array(rows))
    if not np.isfinite(z).any():
        return None
    low, high = float(np.nanmin(z)), float(np.nanmax(z))
    log_x = wide_range(x)
    across = np.log10(x) if log_x else x
    up = np.log10(np.array(every, dtype=float))
    few = "no run" if data.attrs["event"] == "first" else "not every run"
    bounds = f", lower bounds where {few} escaped" if runs else ""
    source = method_name(runs[0] if runs else finite[0]).html
    lead = words("log₁₀ ")
    cells = Cells(str(data.attrs["x"]), "n", x, np.array(every, dtype=float), cell)
    return Panel(
        f"escape_map{tail}",
        titled(words("Mean escape time"), cell),
        (lead if log_x else EMPTY) + symbol(data.attrs["x"]),
        lead + symbol("n"),
        (Heat(across, up, z, lead + words("mean"), low=low, high=high, cells=cells),),
        caption=f"Mean escape time in {symbol('steps').html}, log<sub>10</sub>, by {source}"
        f"{bounds}.",
    )
