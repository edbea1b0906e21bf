"""Trajectories with the bands in which theory has them, and error against n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from hdica.analysis.reading import OF_BASELINES
from hdica.analysis.steady.figure import once
from hdica.show import marks
from hdica.show.choose import (
    MOST,
    Point,
    banded,
    dims_of,
    evenly,
    grouped,
    has_values,
    points_in,
    positions,
    selected,
    shown,
    spread,
    without,
)
from hdica.show.panel import Array, Item, Line, Panel, Points
from hdica.show.terms import starts
from hdica.show.wording import remarks
from hdica.show.words import (
    EMPTY,
    Text,
    count,
    leading,
    limit_name,
    method_name,
    named_at,
    number,
    of_n,
    place,
    plural,
    symbol,
    value_of,
    words,
)

REACHED = "three standard deviations reach an unstable state"


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of the convergence analysis."""
    return dims_of(data["verdict"], "simulation")


def deviations(band: float) -> str:
    """So many standard deviations, in words."""
    return "standard deviation" if band == 1 else f"{number(band)} standard deviations"


def trajectories(data: xr.Dataset) -> list[Panel]:
    """Mean over seeds with its spread at every n, and the limit on top, for some grid points."""
    dims = grid_of(data)
    start = next((d for d in dims if d in starts()), None)
    ordered = sorted(dims, key=lambda d: d == start)
    sizes, out = _sizes(data), []
    drawn = next(iter(sizes.values()))
    for k, (outer, members) in enumerate(grouped(shown(data, ordered), start)):
        one = {**outer, **(members[0] if len(members) == 1 else {})}
        runs, theory = _runs(data, members, sizes), edges(data, members, drawn)
        drawn_too, note = baselines(data, members)
        items = (*runs, *theory, *_limits(data, members), *drawn_too)
        labels = place(one) or words("Trajectories"), *marks.time_axes(data)
        text = _caption(data, members, start, list(drawn)) + note
        out.append(Panel(f"trajectories_{k + 1}", *labels, items, text))
    return out


def _sizes(data: xr.Dataset) -> dict[str, dict[int, str]]:
    """Which n to draw of each method, in which colour: a few evenly, the largest always."""
    chosen: dict[str, list[int]] = {}
    for k, method in enumerate(data["simulation"].values):
        seeds = data["count"].sel({"simulation": method})
        own = data["n"].values[(seeds > 0).any([d for d in seeds.dims if d != "n"]).values]
        chosen[str(method)] = evenly(own.astype(int).tolist(), 4 if k == 0 else 2)
    every = sorted({n for own in chosen.values() for n in own})
    return {
        method: {n: marks.color_of(every.index(n), len(every)) for n in own}
        for method, own in chosen.items()
    }


def _caption(data: xr.Dataset, members: list[Point], start: str | None, drawn: list[int]) -> str:
    methods = [method_name(m).html for m in data["simulation"].values]
    text = f"Line and band: mean ± {deviations(data.attrs['band'])} over seeds ({methods[0]})"
    if len(banded(drawn)) < len(drawn):
        ends = " and ".join(map(count, banded(drawn)))
        text += f", bands at {symbol('n').html} = {ends} only"
    if len(methods) > 1:
        text += f"; markers with bars: the same by {' and '.join(methods[1:])}"
    text += "."
    if any(has_values(selected(data["limit"], m)) for m in members):
        text += f" Dashed: the limit ({method_name(data.attrs['limit_method']).html})."
    text += of_theory(data, members, drawn)
    if start and len(members) > 1:
        values = escape(", ".join(value_of(m[start]) for m in members))
        text += f" Starts {symbol(start).html} = {values}."
    total = points_in(data, grid_of(data))
    if total > MOST:
        text += f" Of {total} grid points {len(shown(data, grid_of(data)))} are drawn."
    return text


def _runs(data: xr.Dataset, members: list[Point], sizes: dict[str, dict[int, str]]) -> list[Item]:
    """Means and spreads, small n first so that the narrow bands lie on top."""
    shaded = banded(list(next(iter(sizes.values()))))
    out: list[Item] = []
    for n in sorted({n for own in sizes.values() for n in own}):
        for j, (method, own) in enumerate(sizes.items()):
            here = [data.sel({"simulation": method, "n": n, **p}) for p in members if n in own]
            label = of_n(n, method if len(sizes) > 1 else "")
            band = data.attrs["band"] if j or n in shaded else 0.0
            some = [one for one in here if int(one["count"]) > 0]
            out += [_run(one, label, own[n], j, k == 0, band) for k, one in enumerate(some)]
    return out


def _run(here: xr.Dataset, label: Text, color: str, method: int, listed: bool, band: float) -> Item:
    """One mean with its spread: a band for the first method, bars for the others."""
    time, mean = positions(here, "time"), here["mean"].values
    sd = band * np.nan_to_num(here["sd"].values)
    if method == 0:
        ends = {"low": mean - sd, "high": mean + sd} if band else {}
        return Line(time, mean, label, color, listed=listed, **ends)
    keep = spread(len(time), 11)
    time, mean, sd = time[keep], mean[keep], sd[keep]
    mark = marks.SYMBOLS[method % len(marks.SYMBOLS)]
    return Points(time, mean, label, color, mean - sd, mean + sd, mark, listed=listed)


def baselines(data: xr.Dataset, members: Sequence[Point]) -> tuple[list[Item], str]:
    """What is drawn and not judged, and the end of the caption that says what it is."""
    time, out = positions(data, "time"), list[Item]()
    every = data["baseline"].values.tolist() if "baseline" in data.dims else []
    for (k, name), point in product(enumerate(every), members):
        here = data.sel({**point, "baseline": name})
        mean, se, n = (here[key].values for key in OF_BASELINES)
        at = np.flatnonzero(np.isfinite(mean))[spread(np.isfinite(mean).sum(), 16)]
        y, bar, label = mean[at], np.nan_to_num(se[at]), named_at(name, float(n))
        look = marks.color_of(5 - k % 6, 6), y - bar, y + bar, marks.SYMBOLS[-1 - k % 4]
        out.append(Points(time[at], y, label, *look, joined=True))
    lead = " Joined markers: mean over seeds ± standard error, drawn and not judged."
    return once(marks.known(out)), " ".join([lead, *remarks(every)]) if every else ""


def _limits(data: xr.Dataset, members: list[Point]) -> list[Line]:
    label, time = limit_name(data.attrs["limit_method"]), positions(data, "time")
    return [
        Line(time, selected(data["limit"], m).values, label, "ink", "dash", bold=True, listed=not k)
        for k, m in enumerate(members)
    ]


def _at(data: xr.Dataset, point: Point, n: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Mean and standard deviation of runs at n by theory, and where they are wrong."""
    limit, sd, bias, least = (
        selected(data[name], point).values
        for name in ("limit", "limit_sd", "limit_bias", "limit_from_n")
    )
    return limit + np.nan_to_num(bias) / n, sd / np.sqrt(n), np.asarray(least > n)


def edges(
    data: xr.Dataset, members: Sequence[Point], drawn: Mapping[int, str], label: Text | None = None
) -> list[Line]:
    """Edges of the bands in which runs lie at order 1/n, of ``drawn`` n in their colours.

    Near an unstable state runs part or linger and are not normal: there a band ends.
    """
    time, out = positions(data, "time"), list[Line]()
    label = label or words("by theory")
    for n, color in drawn.items():
        for point in members:
            center, sd, wrong = _at(data, point, n)
            size = np.where(wrong, np.nan, data.attrs["band"] * sd)
            if np.isfinite(size).any():
                for edge in (center - size, center + size):
                    out.append(Line(time, edge, label, color, "dot", listed=not out))
    return out


def together(data: xr.Dataset, limits: xr.Dataset | None, most: int = MOST) -> Panel:
    """Curves of some grid points and n on one set of axes, with what theory predicts of them.

    ``data`` is what :func:`hdica.plots.result.bands` gives, with attributes ``variable``,
    ``method``, and ``of`` and ``level`` of the bands; ``limits`` are ``limit``, ``limit_sd`` and
    their companions, at times of their own, with ``limit_method``.
    """
    cells = shown(data, dims_of(data["middle"], "time"), most)
    looks = [marks.color_of(i, len(cells)) for i in range(len(cells))]
    seeds = "runs" in data
    if len(cells) == 1 and not seeds:
        looks = ["ink"]
    lines = marks.known([_curve(data, *one) for one in zip(cells, looks, strict=True)])
    shaded = banded(range(len(lines)))
    runs = [
        line if k in shaded else replace(line, low=None, high=None) for k, line in enumerate(lines)
    ]
    theory: list[Item] = []
    if limits is not None:
        for cell, color in zip(cells, looks if len(cells) > 1 else ["ink"], strict=True):
            theory += _predicted(data.sel(cell), limits, cell, color) if seeds else []
        curves: dict[bytes, Line] = {}
        for line in _limits(limits, cells):
            curves.setdefault(line.y.tobytes(), line)  # points may share it
        theory += curves.values()
    title = _what(data) if seeds else EMPTY
    if seeds and len(shaded) < len(lines):
        title += " (first and last curve)"
    return Panel("trajectories", title, *marks.time_axes(data), tuple(once([*runs, *theory])))


def _what(data: xr.Dataset) -> Text:
    """What lines and bands are, and of how many runs."""
    counts, level = np.unique(data["runs"].values), float(data.attrs["level"])
    runs = f"up to {count(counts[-1])} runs" if len(counts) > 1 else plural(int(counts[-1]), "run")
    if counts[-1] < 2:
        return words(runs)
    percent = f"{number(100 * level)} %"
    if data.attrs["of"] == "mean":
        return words(f"mean of {runs}, band: its {percent} interval")
    few = counts[-1] * (1 - level) / 2 < 1  # for such quantiles
    return words(f"median of {runs}, band: " + ("their range" if few else f"{percent} of them"))


def _curve(data: xr.Dataset, cell: Point, color: str) -> Line:
    """The middle of the runs at a point, or the one curve that is there, with its band."""
    here, point = data.sel(cell), without(cell, "n")
    low, high = (here[k].values if k in here else None for k in ("low", "high"))
    label = place(point)
    if "n" in here.coords and ("n" in cell or not label):
        label = leading(point) + of_n(float(here["n"]))
    label = label or method_name(data.attrs["method"])
    time = positions(here, "time")
    return Line(time, here["middle"].values, label, color, low=low, high=high, bold=True)


def _predicted(here: xr.Dataset, limits: xr.Dataset, cell: Point, color: str) -> list[Line]:
    """Edges of the band of single runs, or of their mean, by the central limit theorem."""
    if "n" not in here.coords:
        return []
    level = float(here.attrs["level"])
    score, of = float(stats.norm.isf((1 - level) / 2)), "of runs"
    if here.attrs["of"] == "mean":
        score, of = score / np.sqrt(max(float(here["runs"].max()), 1.0)), "interval"
    label = words(f"predicted {number(100 * level)} % {of}")
    return edges(limits.assign_attrs(band=score), [cell], {int(here["n"]): color}, label)


def of_theory(data: xr.Dataset, members: Sequence[Point], sizes: Sequence[int]) -> str:
    """What the edges are, and at which n they end, with the reason; empty without theory."""
    at = [(n, *_at(data, point, n)[1:]) for n in sizes for point in members]
    right = {n for n, sd, off in at if (np.isfinite(sd) & ~off).any()}
    wrong = {n for n, sd, off in at if (np.isfinite(sd) & off).any()}
    if not right and not wrong:
        return ""
    if not right:
        return (
            f" No band of theory is drawn: {REACHED}, where runs part or linger, and a normal band "
            "is wrong."
        )
    term = " + <i>m</i>/<i>n</i>" if has_values(data["limit_bias"]) else ""
    text = f" Dotted: limit{term} ± {deviations(data.attrs['band'])} by the central limit theorem."
    some = {"ends": sorted(wrong & right), "is missing": sorted(wrong - right)}
    where = [f"{verb} at <i>n</i> = {', '.join(map(count, ns))}" for verb, ns in some.items() if ns]
    if where:
        text += f" It {' and '.join(where)}, where {REACHED}: runs part or linger there, and a "
        text += "normal band is wrong."
    return text


def fluctuation_and_bias(data: xr.Dataset) -> list[Panel]:
    """Error against n, on logarithmic axes; nothing for a single n."""
    if data.sizes["n"] < 2:
        return []
    named = [(place(one) or words("simulation"), one) for one in shown(data, grid_of(data))]
    variable = symbol(data.attrs["variable"])
    normal, term = (has_values(data[k]) for k in ("rms_sd_predicted", "limit_bias"))
    fluctuation, bias = _fluctuation(data, named), _bias(data, named)
    markers = [item for item in bias if isinstance(item, Points)]
    # From the markers and their upper ends; lower ends may be cut.
    ends = marks.positive(end for mark in markers for end in (mark.y, mark.high))
    limits = ends and (ends[0] / 3, ends[1] * 1.6)
    normally = " Lines: the central limit theorem's prediction." if normal else ""
    text = f"Markers: standard deviation over seeds, root mean square over time.{normally}"
    by_theory = " Line: the largest |m|/n over time, by theory." if term else ""
    of_bias = (
        "Markers: largest distance of the mean over seeds from the limit over time, ± standard "
        "error; filled where it stands above its noise (5 % over all times), open where it is "
        f"noise.{by_theory} Dotted: slope −1."
    )
    width, off = "sd of " + variable + " (rms over time)", "sup |mean " + variable + " − limit|"
    spread_, away = words("Fluctuation over seeds"), words("Bias")
    items = (*fluctuation, *marks.methods_of(data), *marks.guide(fluctuation, 0.5))
    distances = (*bias, *marks.methods_of(data), *marks.guide(bias, 1.0))
    return [
        marks.against_n("fluctuation", spread_, width, items, f"{text} Dotted: slope −1/2."),
        marks.against_n("bias", away, off, distances, of_bias, y_range=limits),
    ]


def _fluctuation(data: xr.Dataset, named: list[tuple[Text, Point]]) -> list[Item]:
    out: list[Item] = []
    predicted: list[tuple[Array, Array, str]] = []
    for here, look in marks.over_n(data, data["count"] >= 2, named):
        n, sd = positions(here, "n"), here["rms_sd"].values
        error = sd / np.sqrt(2 * np.maximum(here["count"].values - 1, 1))
        out.append(Points(n, sd, low=sd - error, high=sd + error, **look))
        if bool(here["rms_sd_predicted"].notnull().all()):
            predicted.append((n, here["rms_sd_predicted"].values, look["color"]))
    return [*out, *_theories(predicted, words("central limit theorem"))]


def _theories(curves: list[tuple[Array, Array, str]], name: Text) -> list[Line]:
    """Lines of theory: in ink where they are one curve, else each in the colour of its markers."""
    if not curves:
        return []
    n, first, _ = curves[0]
    if all(np.array_equal(one, n) and np.allclose(y, first, rtol=1e-9) for one, y, _ in curves):
        return [Line(n, first, name, "ink")]
    lines = [Line(x, y, name, color, listed=False) for x, y, color in curves]
    return [*lines, Line(marks.NOWHERE, marks.NOWHERE, name, marks.GREY)]


def _bias(data: xr.Dataset, named: list[tuple[Text, Point]]) -> list[Item]:
    """Markers, and the largest |m|/n over time where theory knows m."""
    out: list[Item] = []
    for here, look in marks.over_n(data, data["count"] >= 2, named):
        n, error = positions(here, "n"), here["sup_error"].values
        se, filled = here["sup_error_se"].values, here["bias_p"].values < 0.05
        low = np.maximum(error - se, error * 1e-3)  # to below the axis, not to a false end
        ends = {"low": low, "high": error + se}
        out.append(Points(n, error, filled=filled, joined=True, **ends, **look))
    n = positions(data, "n")
    sizes = [float(abs(selected(data["limit_bias"], point)).max()) for _, point in named]
    curves = [(n, m / n, marks.color_of(i, len(named))) for i, m in enumerate(sizes) if m > 0]
    return [*out, *_theories(curves, words("term of order 1/n"))]
