"""Recovery of the feature's support by thresholding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, at_largest_n, shown, spread
from hdica.analysis.show.marks import GREY, SYMBOLS, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import Text, count, method_name, place, symbol, titled, words

CELLS = 2
SNAPSHOTS = 6
MARKERS = 13
ERRORS = 2.0

Item = Line | Points


def support(data: xr.Dataset) -> list[Panel]:
    """True against false positives, both against the threshold, and the misclassified share."""
    grid = [str(d) for d in data["tpr_limit"].dims if d not in ("snapshot", "threshold")]
    out = []
    for k, cell in enumerate(shown(data, grid, CELLS)):
        tail = "" if k == 0 else f"_{k + 1}"
        here = data.sel(cell)
        if bool(here["fpr_limit"].notnull().any()):
            out.append(_roc(here, cell, tail))
        out += [_rates(here, cell, tail), _wrong(here, cell, tail)]
    every = bool(data["fpr_limit"].notnull().any())
    return [replace(panel, columns=3) for panel in out] if every else out


def _snapshots(here: xr.Dataset) -> list[tuple[Text, str, xr.Dataset]]:
    """Label, colour and data of the snapshots to draw."""
    times = here["snapshot"].values
    kept = spread(len(times), SNAPSHOTS)
    return [
        (place({"snapshot": float(times[k])}), color_of(i, len(kept)), here.isel(snapshot=k))
        for i, k in enumerate(kept)
    ]


def _methods(one: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Marker and data of every simulation at its largest n."""
    names = one["simulation"].values if "simulation" in one.dims else ()
    own = [one.sel(simulation=m) for m in names]
    return [(SYMBOLS[j % 4], at_largest_n(m, m["count"] > 0)) for j, m in enumerate(own)]


def _error(one: xr.Dataset, name: str) -> np.ndarray:
    return np.asarray(ERRORS * np.nan_to_num(one[f"{name}_se"].values))


def _caption(here: xr.Dataset) -> str:
    text = f"Lines: the limit ({method_name(here.attrs['limit_method']).html})."
    parts = []
    for _, own in _methods(here.isel(snapshot=0)):
        method = method_name(own["simulation"].item()).html
        parts.append(f"{method} at {symbol('n').html} = {count(float(own['n']))}")
    return f"{text} Markers: {' and '.join(parts)}, ± 2 standard errors." if parts else text


def _roc(here: xr.Dataset, cell: Point, tail: str) -> Panel:
    chance = Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), words("chance"), GREY, "dot")
    items: list[Item] = [chance]
    for label, color, one in _snapshots(here):
        x, y = one["fpr_limit"].values, one["tpr_limit"].values
        items.append(Line(x, y, label, color, bold=True))
        for mark, own in _methods(one):
            x, y, bar = own["fpr"].values, own["tpr"].values, _error(own, "tpr")
            keep = _spaced(x, y)
            x, y, bar = x[keep], y[keep], bar[keep]
            items.append(Points(x, y, label, color, y - bar, y + bar, mark, listed=False))
    return Panel(
        f"support_roc{tail}",
        titled(words("True against false positives"), cell),
        words("false positive rate"),
        words("true positive rate"),
        tuple(items),
        caption=_caption(here) + " One point a threshold on |<i>x</i>|.",
        x_range=(-0.02, 1.02),
        y_range=(-0.02, 1.04),
    )


def _spaced(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positions of markers evenly along a curve."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(known) < 2:
        return known
    steps = np.hypot(np.diff(x[known]), np.diff(y[known]))
    length = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.linspace(0.0, length[-1], MARKERS)
    return np.asarray(known[np.unique(np.abs(length[:, None] - even).argmin(axis=0))])


def _against_threshold(here: xr.Dataset, name: str, dash: str, listed: bool) -> list[Item]:
    items: list[Item] = []
    at = here["threshold"].values.astype(float)
    keep = np.array(spread(len(at), MARKERS))
    for label, color, one in _snapshots(here):
        curve = one[f"{name}_limit"].values
        items.append(Line(at, curve, label, color, dash, bold=True, listed=listed))
        for mark, own in _methods(one):
            y, bar = own[name].values[keep], _error(own, name)[keep]
            items.append(Points(at[keep], y, label, color, y - bar, y + bar, mark, listed=False))
    return items


def _rates(here: xr.Dataset, cell: Point, tail: str) -> Panel:
    items = _against_threshold(here, "tpr", "solid", True)
    items += _against_threshold(here, "fpr", "dash", False)
    return Panel(
        f"support_rates{tail}",
        titled(words("Rates against the threshold"), cell),
        words("threshold on ") + symbol("|x|"),
        words("rate"),
        tuple(items),
        caption=f"Solid: true positive rate; dashed: false positive rate. {_caption(here)}",
        y_range=(-0.02, 1.04),
    )


def _wrong(here: xr.Dataset, cell: Point, tail: str) -> Panel:
    return Panel(
        f"support_wrong{tail}",
        titled(words("Misclassified entries"), cell),
        words("threshold on ") + symbol("|x|"),
        words("misclassified share of the entries"),
        tuple(_against_threshold(here, "misclassified", "solid", True)),
        caption=_caption(here),
    )
