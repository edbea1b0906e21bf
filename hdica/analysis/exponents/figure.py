"""Power laws on doubly logarithmic axes, and what is measured over what is predicted."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import Point, at_largest_n, evenly, points, said, shown
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import Text, axis, method_name, place, symbol, words

Array = NDArray[np.float64]

FITS = 3
"""Of fits of one method at most so many are drawn."""
APART = 0.012
"""How far points of neighbouring colours are moved apart, as a share of the axis."""


def exponents(data: xr.Dataset) -> list[Panel]:
    """For every fit the data with the law, and the ratio to theory if there is one."""
    chosen = fits(data)
    out = []
    for k, point in enumerate(chosen):
        tail = "" if len(chosen) == 1 else f"_{k + 1}"
        here = data.sel(point)
        if bool(here["value"].notnull().any()):
            named = {d: v for d, v in point.items() if len(chosen) > 1 or d != "simulation"}
            out.append(_law(here, named, tail))
            if "ratio" in here and bool(here["ratio"].notnull().any()):
                out.append(_ratio(here, named, tail))
    return out


def fits(data: xr.Dataset) -> list[Point]:
    """What tells fits apart: the method and what is not in ``over``, each at its largest n."""
    along = parameters(data)
    others = [str(d) for d in data["value"].dims if d not in ("simulation", "n", *along)]
    some = evenly(points(data, others), FITS)
    out = []
    for method in data["simulation"].values:
        here = data.sel(simulation=method)
        top = {}
        if "n" in data.dims:
            seeds = here["seeds"].any([d for d in here["seeds"].dims if d != "n"])
            top = {"n": int(at_largest_n(here, seeds)["n"])}
        out += [{"simulation": str(method), **other, **top} for other in some]
    return out


def parameters(data: xr.Dataset) -> list[str]:
    """Parameters of the power law, in order."""
    return [str(name) for name in data["parameter"].values]


def named(point: Point) -> Text:
    """A fit in words: its method and where it is."""
    rest = {k: v for k, v in point.items() if k != "simulation"}
    method = method_name(point["simulation"]) if "simulation" in point else words("")
    return method + words(", " if method and rest else "") + place(rest)


def _title(lead: str, point: Point) -> Text:
    return words(f"{lead} · ") + named(point) if point else words(lead)


def _law(here: xr.Dataset, point: Point, tail: str) -> Panel:
    x, curves = _curves(here)
    items: list[Line | Points] = []
    for k, curve in enumerate(curves):
        items += _curve(here.sel(curve), x, place(curve) if curve else _quantity(here), k, curves)
    return Panel(
        f"exponents{tail}",
        _title("Power law", point),
        axis(x),
        _quantity(here),
        tuple(sorted(items, key=lambda item: isinstance(item, Points))),
        caption=_caption(here, x, len(curves)),
        log_x=True,
        log_y=True,
    )


def _quantity(here: xr.Dataset) -> Text:
    return words(f"{here.attrs['statistic']} of ") + symbol(str(here.attrs["variable"]))


def _curves(here: xr.Dataset) -> tuple[str, list[Point]]:
    """The parameter with most values, and values of the others that are drawn."""
    x = max(parameters(here), key=lambda name: here.sizes[name])
    return x, shown(here, [name for name in parameters(here) if name != x])


def _curve(
    here: xr.Dataset, x: str, label: Text, k: int, curves: list[Point]
) -> list[Line | Points]:
    """Data of one colour, the fitted law through them, and theory."""
    color, at = color_of(k, len(curves)), here[x].values.astype(float)
    value, low, high = (here[f"value{end}"].values for end in ("", "_low", "_high"))
    seen = np.isfinite(value) & (value > 0)
    if not seen.any():
        return []
    low, high = (np.where(np.isfinite(end), end, value)[seen] for end in (low, high))
    filled = here["used"].values[seen] > 0
    out: list[Line | Points] = [
        Points(at[seen], value[seen], label, color, low, high, filled=filled)
    ]
    order = np.argsort(at)
    for name, dash in (("fitted", "solid"), ("predicted", "dash")):
        if name in here and np.isfinite(here[name].values).any():
            y = here[name].values[order]
            out.append(Line(at[order], y, label, color, dash, listed=False))
    return out


def _caption(here: xr.Dataset, x: str, drawn: int) -> str:
    parts = [
        f"{_quantity(here).plain.split()[0].capitalize()} over seeds with 95 % intervals, and the "
        "fitted power law."
    ]
    if "predicted" in here and bool(here["predicted"].notnull().any()):
        parts.append("Dashed: theory.")
    if bool(((here["used"] == 0) & here["value"].notnull()).any()):
        parts.append("Open: not in the fit.")
    parts += said(here, [name for name in parameters(here) if name != x], drawn)
    return " ".join(parts)


def _wide(here: xr.Dataset) -> bool:
    """Whether ratios to theory need a logarithmic axis: else it would have a single tick."""
    ends = np.concatenate([here[f"ratio{end}"].values.ravel() for end in ("", "_low", "_high")])
    known = ends[np.isfinite(ends) & (ends > 0)]
    return known.size > 0 and bool(known.max() / known.min() > 5)


def _ratio(here: xr.Dataset, point: Point, tail: str) -> Panel:
    x, curves = _curves(here)
    at = here[x].values.astype(float)
    items: list[Line | Points] = [
        Line(np.array([at.min(), at.max()]), np.ones(2), words("theory"), "ink", listed=False)
    ]
    width = np.log(at.max() / at.min())
    for k, curve in enumerate(curves):
        cut = here.sel(curve)
        ratio, low, high = (cut[f"ratio{end}"].values for end in ("", "_low", "_high"))
        if np.isfinite(ratio).any():
            moved = at * np.exp(APART * width * (k - (len(curves) - 1) / 2))
            label = place(curve) if curve else words("measured / predicted")
            items.append(Points(moved, ratio, label, color_of(k, len(curves)), low, high))
    quantity = symbol(str(here.attrs["variable"]))
    return Panel(
        f"ratios{tail}",
        _title("Measured over predicted", point),
        axis(x),
        quantity + words(" measured / predicted"),
        tuple(items),
        caption="Ratio to theory with 95 % intervals"
        + ("; series are moved apart a little." if len(curves) > 1 else "."),
        log_x=True,
        log_y=_wide(here),
    )
