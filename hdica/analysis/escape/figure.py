"""Mean escape times, survival curves and maps, and what they say of each theory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, product
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.escape.compute import methods, others, sizes, steps, theories
from hdica.show import marks
from hdica.show.choose import (
    Point,
    cells_of,
    has_values,
    numbers,
    points,
    positions,
    selected,
    selection_note,
    shown,
)
from hdica.show.finding import THEORY, Finding, Form, judgement, named
from hdica.show.panel import Array, Cells, Heat, Line, Panel, Points
from hdica.show.wording import listed
from hdica.show.words import EMPTY, Text, method_name, of_n, place, symbol, titled, words

Item = Line | Points

MAPS = 3
ARROW = 1.6
"""The bar of a lower bound ends at so many times its value: the mean may lie anywhere above."""
ABOVE = 30.0
"""Theory is drawn up to so many times what was measured; alone, over six decades."""


def escape(data: xr.Dataset) -> list[Panel]:
    """Means against x, survival at some grid points, and a map over x and n."""
    cells = marks.tailed(shown(data, others(data)))
    means = [_means(data, cell, tail) for tail, cell in cells]
    maps = [_map(data, cell, tail) for tail, cell in cells[:MAPS]]
    return [p for p in (*means, *_survivals(data), *maps) if p is not None]


def _along(data: xr.Dataset, name: str, along: str, point: Point) -> Array:
    """A variable along a dimension, NaN where it is infinite; constant where it has not it."""
    known_at = selected(data[name], point).isel(n=0, missing_dims="ignore")
    values = known_at.broadcast_like(data[along]).values.astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def _means(data: xr.Dataset, cell: Point, tail: str) -> Panel | None:
    """Mean escape time against x: runs with intervals, lower bounds, and every theory."""
    x = positions(data, data.attrs["x"])
    markers = [m for n in sizes(data) for m in _measured(data, {**cell, "n": n}, x)]
    theory = _theories(data, "theory", data.attrs["x"], cell, marks.DASHES)
    items: list[Item] = marks.known([*theory, *_formulas(data, cell, x), *markers])
    if not items:
        return None
    title = words(f"Mean time of the {data.attrs['event']} escape")
    labels = titled(title, cell), symbol(data.attrs["x"]), "mean escape time, " + steps(data)
    text, log, ends = _caption(data, bool(markers)), marks.wide_range(x), _range(items)
    drawn = tuple(items)
    return Panel(f"escape_mean{tail}", *labels, drawn, text, log, True, y_range=ends, wide=True)


def _measured(data: xr.Dataset, point: Point, x: Array) -> list[Points]:
    """Means with 95 % intervals, and triangles where runs only bound them."""
    every, several = sizes(data), len(methods(data)) > 1
    color, out = marks.color_of(every.index(point["n"]), len(every)), list[Points]()
    for j, method in enumerate(methods(data)):
        here = {**point, "simulation": method}
        y, low, high = (
            _along(data, k, data.attrs["x"], here) for k in ("mean", "mean_low", "mean_high")
        )
        label = of_n(point["n"], method if several else "")
        out += marks.bars(x, (y, low, high), label, color, symbol=marks.SYMBOLS[j % 3])
        label += " lower bound" if several else ", lower bound"
        least = np.where(np.isnan(y), low, np.nan)
        out += marks.bars(x, (least, least, ARROW * least), label, color, symbol="triangle")
    return out


def _theories(
    data: xr.Dataset, name: str, along: str, cell: Point, dashes: Sequence[str]
) -> list[Line]:
    """Theory at every n in its colour, with a dash for each, and for n -> infinity in ink."""
    if name not in data:
        return []
    every, every_dash, kinds = sizes(data), cycle(dashes), theories(data)
    x, out = positions(data, along), list[Line]()
    for method, finite in kinds:
        # By its method where there are several for one n, or for infinity.
        called = method if sum(other == finite for _, other in kinds) > 1 else "theory"
        point = {**cell, "limit": method}
        if not finite:
            label = symbol("n") + " → ∞, " + method_name(called)
            y = _along(data, name, along, point)
            out.append(Line(x, y, label, "ink", bold=name == "theory"))
            continue
        dash = next(every_dash)
        for color, n in marks.colored(every):
            y = _along(data, name, along, {**point, "n": n})
            out.append(Line(x, y, of_n(n, called), color, dash))
    return out


def _formulas(data: xr.Dataset, cell: Point, x: Array) -> list[Line]:
    """Kramers' formula, and the same as it is printed."""
    looks = {
        "kramers": (words("Kramers"), "ink", "dot"),
        "printed": (words("Kramers, exponent as printed"), marks.GREY, "dashdot"),
    }
    return [
        Line(x, _along(data, name, data.attrs["x"], cell), *look)
        for name, look in looks.items()
        if _drawn(data, name)
    ]


def _drawn(data: xr.Dataset, name: str) -> bool:
    """Whether there is a formula, and but one curve of it."""
    return name in data and data[name].sizes.get("n", 1) == 1


def _range(items: list[Item]) -> tuple[float, float]:
    """Limits of the axis: formulas that grow without bound are cut."""
    markers = [i for i in items if isinstance(i, Points)]
    low, top = marks.positive([*(i.y for i in items), *(i.low for i in markers)]) or (1.0, 1.0)
    low, tops = low / 1.5, marks.positive(i.high for i in markers)
    top = max(top, tops[1]) if tops else top
    return low, min(ABOVE * tops[1] if tops else 1e6 * low, 1.5 * top)


def _caption(data: xr.Dataset, markers: bool) -> str:
    parts = []
    if markers:
        runs = listed([method_name(m).html for m in methods(data)])
        first = data.attrs["event"] == "first"
        what = "time observed over escapes" if first else "means of all runs"
        parts.append(f"Markers: {what}, with 95 % intervals ({runs}).")
        if bool(np.isinf(data["mean"]).any()):
            why = "no run" if first else "not every run"
            parts.append(f"Triangles: {why} escaped; the mean lies above, at 97.5 % confidence.")
    for text, kind in (
        ("Thin lines: theory at that <i>n</i>", True),
        ("Thick line: theory for <i>n</i> → ∞", False),
    ):
        names = [method_name(m).html for m, finite in theories(data) if finite == kind]
        parts += [f"{text} ({listed(names)})."] if names else []
    if _drawn(data, "kramers"):
        parts.append("Kramers: the formula for the pair that escapes first.")
    if _drawn(data, "printed"):
        parts.append("Dash-dotted: the same with the exponent as printed, half of the right one.")
    parts += selection_note(data, others(data), len(shown(data, others(data))))
    return " ".join(parts)


def _survivals(data: xr.Dataset) -> list[Panel]:
    """Share not yet escaped at a few grid points, all n in one panel."""
    if not {"survival", "theory_survival"} & set(data):
        return []
    cells = shown(data, [*others(data), data.attrs["x"]])
    out, labels = [], ("time, " + steps(data), words("share not escaped"))
    for k, cell in enumerate(cells, start=1):
        if items := _survival(data, cell):
            key, text = f"escape_survival_{k}", _survival_caption(data, items)
            drawn = tuple(items)
            out.append(Panel(key, place(cell), *labels, drawn, text, True, y_range=marks.SHARES))
    return out


def _survival(data: xr.Dataset, cell: Point) -> list[Line]:
    """Kaplan and Meier's curves with bands, and the theories, as runs have the solid lines."""
    time, out, every = data["elapsed"].values, list[Line](), sizes(data)
    for color, n in marks.colored(every):
        for method in methods(data):
            here = data.sel({**cell, "n": n, "simulation": method})
            y, low, high = marks.interval(here, "survival")
            keep = np.isfinite(y)
            label = of_n(n, method if len(methods(data)) > 1 else "")
            out.append(Line(time[keep], y[keep], label, color, "solid", low[keep], high[keep]))
    out += _theories(data, "theory_survival", "elapsed", cell, marks.DASHES[1:])
    return marks.known(out)


def _survival_caption(data: xr.Dataset, items: list[Line]) -> str:
    sentences = {"band": "Lines with bands: Kaplan and Meier's estimate, 95 % at each time."}
    names = [method_name(m).html for m, finite in theories(data) if finite]
    dashes = marks.DASHES[1:]
    for k, (dash, word) in enumerate(zip(dashes, ("Dashed", "Dotted"), strict=True)):
        some = f" ({listed(names[k :: len(dashes)])})" if len(names) > 1 else ""
        sentences[dash] = f"{word}: theory at that <i>n</i>{some}."
    parts = marks.captioned(items, sentences)
    if any(item.color == "ink" for item in items):
        banded = any(item.low is not None for item in items)
        kind = "Solid line without a band" if banded else "Solid line"
        parts.append(f"{kind if len(items) > 1 else 'Line'}: theory for <i>n</i> → ∞.")
    return " ".join(parts)


def _map(data: xr.Dataset, cell: Point, tail: str) -> Panel | None:
    """Logarithm of the mean over x and n, on a scale from the least to the largest."""
    along, every, runs = data.attrs["x"], sizes(data), methods(data)[:1]
    x, n = positions(data, along), np.array(every, dtype=float)
    finite = [m for m, at_n in theories(data) if at_n]
    if len(every) < 2 or len(x) < 2 or not (runs or finite):
        return None
    source = (runs or finite)[0]
    rows = []
    for size in every:
        point = {**cell, "simulation" if runs else "limit": source, "n": size}
        y = _along(data, "mean" if runs else "theory", along, point)
        rows.append(np.where(np.isnan(y), _along(data, "mean_low", along, point), y) if runs else y)
    with np.errstate(divide="ignore"):
        z = np.log10(np.array(rows))
    if not np.isfinite(z).any():
        return None
    few = "no run" if data.attrs["event"] == "first" else "not every run"
    bounds = f", lower bounds where {few} escaped" if runs else ""
    log_x, cells = marks.wide_range(x), Cells(along, "n", x, n, cell)
    low, high = float(np.nanmin(z)), float(np.nanmax(z))
    across, lead = np.log10(x) if log_x else x, words("log₁₀ ")
    heat = Heat(across, np.log10(n), z, lead + "mean", low=low, high=high, cells=cells)
    by = f"{method_name(source).html}{bounds}"
    text = f"Mean escape time in {symbol('steps').html}, log<sub>10</sub>, by {by}."
    labels = (lead if log_x else EMPTY) + symbol(along), lead + symbol("n")
    return Panel(
        f"escape_map{tail}", titled(words("Mean escape time"), cell), *labels, (heat,), text
    )


def findings(data: xr.Dataset) -> list[Finding]:
    """Where escape is fastest, each comparison with theory, and what differs beside it."""
    parts = (_compared, _unseen, _at_smaller_n, _other_theories, _varying)
    fastest = _extremes(data) or _fastest_in_theory(data)
    return [*fastest, *(finding for part in parts for finding in part(data))]


def _time(data: xr.Dataset) -> Text:
    first = data.attrs["event"] == "first"
    return words("the mean escape time" if first else "the mean time of the last escape")


def _whose(data: xr.Dataset, number: int = 0) -> Text:
    """A theory, for n -> infinity if it is."""
    some = theories(data)[number:]
    return THEORY if not some or some[0][1] else "theory for " + symbol("n") + " → ∞"


def _theory_name(data: xr.Dataset, number: int = 0) -> Text:
    """A theory, by its method where several are for the same n."""
    method, at_n = theories(data)[number]
    several = sum(finite == at_n for _, finite in theories(data)) > 1
    lead = _whose(data, number)
    return lead + " (" + method_name(method) + ")" if several else lead


def _bounded(mean: xr.Dataset) -> dict[str, Any]:
    """A mean with the ends of its interval, as fields of a finding; NaN where it is infinite."""
    value, low, high = numbers(mean, {}, "mean", "mean_low", "mean_high")
    return {"value": value if np.isfinite(value) else np.nan, "low": low, "high": high}


def _mean_at(data: xr.Dataset, point: Point, name: Text, **fields: Any) -> Finding:
    """The measured mean at a point, and that of the first theory."""
    here = data.sel(point)
    fields |= {"unit": steps(data), **_bounded(here)}
    predicted = float(here["theory"].isel(limit=0)) if "theory" in here else np.nan
    return Finding(name, named(data, point), predicted=predicted, **fields)


def _series(data: xr.Dataset) -> list[tuple[Point, Array, bool]]:
    """Means over x at the largest n at which the least is sure, or else at the largest with any."""
    out = []
    for method, other in product(methods(data), points(data, others(data))):
        rows = []
        for n in reversed(sizes(data)):
            point = {"simulation": method, **other, "n": n}
            row = data.sel(point)
            mean = row["mean"].where(np.isfinite(row["mean"])).values
            if np.isfinite(mean).any():
                low = row["mean_low"].where(np.isinf(row["mean"])).values
                rows.append((point, mean, not (low < np.nanmin(mean)).any()))
        out += [*(one for one in rows if one[2]), *rows][:1]
    return out


def _extremes(data: xr.Dataset) -> list[Finding]:
    """Where the measured mean is least, and where it is largest if runs tell it everywhere."""
    x, least, most = data.attrs["x"], list[Finding](), list[Finding]()
    for point, mean, sure in _series(data):
        name = _time(data) + ("" if sure else " where runs escape")
        for extremes, form, pick in (
            (least, Form.SMALLEST, np.nanargmin),
            (most, Form.LARGEST, np.nanargmax),
        ):
            best = int(pick(mean))
            at, near = {x: data[x].values[best].item(), **point}, _alike(data.sel(point), x, best)
            theory = _whose(data)
            extremes.append(_mean_at(data, at, name, form=form, theory=theory, evidence=near))
        if bool(np.isinf(data["mean"].sel(point)).any()) or mean.size == 1:
            most.pop()
    return [*least, *most]


def _alike(here: xr.Dataset, x: str, best: int) -> str:
    """At which other x the mean has an interval that meets the one at the best."""
    low, high = here["mean_low"].values, here["mean_high"].values
    meets = (low <= high[best]) & (high >= low[best]) & (np.arange(low.size) != best)
    places = [place({x: value}).html for value in here[x].values[meets].tolist()]
    return f"within errors of {listed(places)}" if places else ""


def _largest(data: xr.Dataset) -> Point:
    """The largest n that has runs, or of theory where none has."""
    every = sizes(data) or (data["n"].values.astype(int).tolist() if "n" in data.dims else [])
    return {"n": every[-1]} if every else {}


def _fastest_in_theory(data: xr.Dataset) -> list[Finding]:
    """Where the mean is least in each theory, at its largest n."""
    x, out = data.attrs["x"], []
    for k, (method, at_n) in enumerate(theories(data)):
        for other in points(data, others(data)):
            top = _largest(data) if at_n else {}
            values = selected(data["theory"], {**other, **top, "limit": method})
            values = values.isel(n=0, missing_dims="ignore").where(np.isfinite)
            if not has_values(values):
                continue
            best = {x: data[x].values[int(np.nanargmin(values.values))].item()}
            name = _time(data) + " in " + _theory_name(data, k)
            place, least = {**other, **best, **top}, float(values.min())
            out.append(Finding(name, place, least, unit=steps(data), form=Form.SMALLEST))
    return out


def _with_runs(data: xr.Dataset) -> list[Point]:
    if "runs" not in data:
        return []
    every = cells_of(data["runs"])
    return [p for p in every if int(data["runs"].sel(p)) > 0]


def _compared(data: xr.Dataset) -> list[Finding]:
    """Every cell against the first theory; one for n -> infinity at the largest n alone."""
    if "verdict" not in data:
        return []
    here = data.isel(limit=0)
    if data.attrs["event"] == "last" and not has_values(here["p_value"]):
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
        for point in cells_of(ratio, "n"):
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
