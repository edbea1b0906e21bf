"""Panels as Plotly figures: plain JSON, themed on the page."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from hdica.report.parts import data_address, rounded
from hdica.report.ticks import ticks
from hdica.show.panel import (
    Heat,
    Line,
    Panel,
    Pictures,
    Places,
    Points,
    Surface,
    Vertical,
    mosaic,
    pictures_across,
)
from hdica.show.words import EMPTY, Text

Trace = dict[str, Any]  # a part of a Plotly figure, as JSON
ROW = 18  # pixels of a row of labels above the axes
LONG = 32  # letters of a label that stand beside an upright axis in one line
MARKS = {"circle": "circle", "square": "square", "diamond": "diamond", "triangle": "triangle-up"}
DISTANCE = 2.2  # of the eye from the middle, in lengths of the box
LOWER = -0.14  # height of what is looked at, in lengths of the box
TICKS, END = 4, 0.05
"""Steps along an axis, about, and the share of an axis at either end that has no tick."""
MARKS_IN_SPACE = {"circle": "circle", "square": "square", "diamond": "diamond", "triangle": "cross"}
"""Plotly has no triangles in space."""
LEGEND = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0}
DIGITS = 5  # significant digits on the page; the data files have all
_rounded = partial(rounded, digits=DIGITS)


def figure(panel: Panel) -> Trace:
    """A panel as ``{"data": [...], "layout": {...}}``; the page colours what has ``meta.ink``."""
    data: list[Trace] = []
    shapes: list[Trace] = []
    notes: list[Trace] = []
    for item in panel.items:
        if isinstance(item, Pictures):
            return _gallery(item)
        if isinstance(item, Line):
            data += _line(item, panel)
        elif isinstance(item, Points):
            data.append(_points(item, panel))
        elif isinstance(item, Heat):
            data.append(_heat(item, panel))
        elif isinstance(item, Surface):
            data.append(_surface(item, panel))
        elif isinstance(item, Places):
            data.append(_places(item, panel))
        elif isinstance(item, Vertical):
            shapes += _vertical(item)
            notes.append(_note(item))
    if panel.in_space:
        return {"data": data, "layout": _scene(panel)}
    return {"data": data, "layout": {**_layout(panel), "shapes": shapes, "annotations": notes}}


def _hover(panel: Panel, label: Text, extra: str = "") -> str:
    axes, digits = {"x": panel.x_label, "y": panel.y_label}, DIGITS
    if panel.in_space:
        axes, digits = axes | {"z": panel.z_label}, 4
    head = f"<b>{label.html}</b><br>" if label else ""
    body = "<br>".join(f"{one.html}: %{{{name}:.{digits}g}}" for name, one in axes.items())
    return f"{head}{body}{extra}<extra></extra>"


def _colorbar(label: Text) -> Trace:
    return {"title": {"text": label.html, "side": "right"}, "thickness": 12}


def _curve(item: Line | Points, panel: Panel, mode: str, extra: str = "") -> Trace:
    """What lines and markers share; those of one legend group are switched together."""
    return {
        "type": "scatter", "mode": mode, "x": _rounded(item.x), "y": _rounded(item.y),
        "hovertemplate": _hover(panel, item.label, extra), "name": item.label.html,
        "showlegend": item.listed, "legendgroup": item.label.plain,
    }  # fmt: skip


def _line(item: Line, panel: Panel) -> list[Trace]:
    ink = item.color == "ink"
    line: Trace = {"width": 2.5 if item.bold else 1.6, "dash": item.dash}
    if not ink:
        line["color"] = item.color
    trace = _curve(item, panel, "lines") | {"line": line, "meta": {"ink": ink}}
    if item.cased:
        edge = {"color": "rgba(255,255,255,0.8)", "width": 4}
        return [trace | {"line": edge, "hoverinfo": "skip", "showlegend": False}, trace]
    if item.low is None or item.high is None:
        return [trace]
    around = {
        "type": "scatter", "mode": "lines",
        "x": _rounded(np.concatenate([item.x, item.x[::-1]])),
        "y": _rounded(np.concatenate([item.high, item.low[::-1]])),
        "fill": "toself", "fillcolor": _pale(item.color), "line": {"width": 0},
        "hoverinfo": "skip", "showlegend": False, "legendgroup": trace["legendgroup"],
    }  # fmt: skip
    return [around, trace]


def _pale(color: str, alpha: float = 0.22) -> str:
    r, g, b = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},{alpha})"


def _points(item: Points, panel: Panel) -> Trace:
    mark = MARKS[item.symbol]
    filled = np.ones(len(item.x), bool) if item.filled is None else item.filled
    white = item.color == "#ffffff"
    own: Trace = {
        "marker": {
            "symbol": [mark if f else f"{mark}-open" for f in filled],
            "color": item.color, "size": 6 if white else 8,
            "line": {"width": 1 if white else 1.5, "color": "#000000" if white else item.color},
        },
        "line": {"width": 1, "color": item.color},
    }  # fmt: skip
    bars = ""
    if item.low is not None and item.high is not None:
        bars = " (+%{error_y.array:.2g} −%{error_y.arrayminus:.2g})"
        own["error_y"] = {
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3,
            "color": _pale(item.color, 0.5),
            "array": _rounded(item.high - item.y), "arrayminus": _rounded(item.y - item.low),
        }  # fmt: skip
    return _curve(item, panel, "lines+markers" if item.joined else "markers", bars) | own


def _heat(item: Heat, panel: Panel) -> Trace:
    x, y = _cells(item.x, panel.log_x), _cells(item.y, panel.log_y)
    trace = {
        "type": "heatmap", "x": _rounded(x), "y": _rounded(y), "z": _rounded(item.z),
        "zmin": item.low, "zmax": item.high, "colorscale": item.scale.title(), "showlegend": False,
        "colorbar": _colorbar(item.label),
        "hovertemplate": _hover(panel, EMPTY, f"<br>{item.label.html}: %{{z:.4g}}"),
    }  # fmt: skip
    if item.written:
        trace |= {"text": item.written, "texttemplate": "%{text}", "textfont": {"size": 11}}
    return trace


def _cells_of(panel: Panel) -> Trace:
    """Which grid points the cells of a heat map are, where they are any."""
    every = (item.cells for item in panel.items if isinstance(item, Heat) and item.cells)
    if (cells := next(every, None)) is None:
        return {}
    values = {"x": cells.x_values.tolist(), "y": cells.y_values.tolist()}
    at = {k: v.item() if isinstance(v, np.generic) else v for k, v in cells.at.items()}
    return {"cells": {"axes": {"x": cells.x, "y": cells.y}, "values": values, "at": at}}


def _cells(centres: np.ndarray, log: bool) -> np.ndarray:
    """Centres, which are shown on hover; around a single value on a logarithmic axis its edges."""
    # Plotly would put these one unit apart. They lie as far below as above: it shows their mean.
    return centres * np.array([0.5, 1.5]) if log and centres.size == 1 else centres


def _vertical(item: Vertical) -> list[Trace]:
    at = {"type": "line", "x0": item.x, "x1": item.x, "yref": "paper", "y0": 0, "y1": 1}
    if item.color:
        return [at | {"line": {"color": item.color, "width": 1.2, "dash": "dot"}, "layer": "below"}]
    edge = {"color": "rgba(255,255,255,0.7)", "width": 3.5}
    return [at | {"line": edge}, at | {"line": {"color": "#000000", "width": 2, "dash": "dash"}}]


def _note(item: Vertical) -> Trace:
    return {
        "x": item.x, "yref": "paper", "y": 1, "text": item.label.html, "showarrow": False,
        "yanchor": "bottom", "xanchor": item.anchor, "yshift": ROW * item.row,
        **({"font": {"color": item.color}} if item.color else {}),
    }  # fmt: skip


def _in_lines(label: str) -> str:
    """HTML of a label, in two lines if it is longer than an upright axis on a telephone."""
    # It is broken at the space nearest to its middle, outside of marks.
    pieces = re.split(r"(<[^>]*>|&\w+;)", label)
    seen = [0 if p.startswith("<") else 1 if p.startswith("&") else len(p) for p in pieces]
    if sum(seen) <= LONG:
        return label
    places = [
        (abs(sum(seen[:k]) + at.start() - sum(seen) / 2), k, at.start())
        for k, piece in enumerate(pieces)
        if not piece.startswith(("<", "&"))
        for at in re.finditer(" ", piece)
    ]
    if not places:
        return label
    _, k, at = min(places)
    pieces[k] = f"{pieces[k][:at]}<br>{pieces[k][at + 1 :]}"
    return "".join(pieces)


def _log_axis(panel: Panel, name: str, limits: tuple[float, float] | None) -> Trace:
    """A logarithmic axis, with ticks for all that is drawn or for its limits."""
    ends = ("low", "high") if name == "y" else ()
    drawn = [item for item in panel.items if isinstance(item, Line | Points | Heat)]
    at = [getattr(item, key, None) for item in drawn for key in (name, *ends)]
    values = np.concatenate(
        [np.ravel(np.asarray(v, float)) for v in at if v is not None] or [np.zeros(0)]
    )
    seen = values[np.isfinite(values) & (values > 0)] if limits is None else np.array(limits)
    axis = {"type": "log", "exponentformat": "power"}
    if not seen.size:
        return axis
    places, labels = ticks(float(seen.min()), float(seen.max()), name == "x")
    text = [label.html for label in labels]
    # While a reader looks closer than these, Plotly's own ticks are there, as whole numbers.
    return axis | {
        "tickmode": "array", "tickvals": places.tolist(), "ticktext": text, "tickformat": "~r"
    }  # fmt: skip


def _layout(panel: Panel) -> Trace:
    x: Trace = {"title": {"text": panel.x_label.html}, "zeroline": False}
    y: Trace = {"title": {"text": _in_lines(panel.y_label.html)}, "zeroline": False}
    for name, axis, log, limits in (
        ("x", x, panel.log_x, panel.x_range),
        ("y", y, panel.log_y, panel.y_range),
    ):
        if log:
            axis |= _log_axis(panel, name, limits)
        else:
            axis |= {"exponentformat": "power", "showexponent": "last"}
        # The last label may carry the power of ten of all: none is left out near the edge.
        axis["ticklabeloverflow"] = "allow"
        if limits:
            axis["range"] = [float(np.log10(v)) if log else v for v in limits]
    if panel.counts and panel.x_range:
        x |= {"tick0": 1, "dtick": max(1, round((panel.x_range[1] - panel.x_range[0]) / 10))}
    if panel.equal:
        y |= {"scaleanchor": "x", "scaleratio": 1}
    heat = any(isinstance(i, Heat) for i in panel.items)
    rows = [i.row + 1 for i in panel.items if isinstance(i, Vertical)]
    return {
        "xaxis": x,
        "yaxis": y,
        "margin": {"l": 62, "r": 18, "t": 34 + ROW * max(rows, default=0), "b": 50},
        "hovermode": "closest",
        "legend": LEGEND,
        "meta": {"heat": heat, **_cells_of(panel)},
    }


def _surface(item: Surface, panel: Panel) -> Trace:
    seen = item.color[np.isfinite(item.color)]
    return {
        "type": "surface", "x": _rounded(item.x), "y": _rounded(item.y), "z": _rounded(item.z),
        "surfacecolor": _rounded(item.color), "cmin": float(seen.min()), "cmax": float(seen.max()),
        "colorscale": "Viridis", "showlegend": False,
        "colorbar": _colorbar(item.label),
        # Light would change the colours, which are what is shown.
        "lighting": {"ambient": 0.9, "diffuse": 0.2, "specular": 0.0, "fresnel": 0.0},
        "hovertemplate": _hover(panel, EMPTY, f"<br>{item.label.html}: %{{surfacecolor:.4g}}"),
    }  # fmt: skip


def _places(item: Places, panel: Panel) -> Trace:
    return {
        "type": "scatter3d", "mode": "markers",
        "x": _rounded(item.x), "y": _rounded(item.y), "z": _rounded(item.z),
        "marker": {
            "symbol": MARKS_IN_SPACE[item.symbol], "color": item.color, "size": 5,
            "line": {"width": 1, "color": "#ffffff"},
        },
        "name": item.label.html, "showlegend": bool(item.label),
        "hovertemplate": _hover(panel, item.label),
    }  # fmt: skip


def _ticks_in_space(panel: Panel, axis: str) -> Trace:
    """A few ticks between the ends, at which the labels of two axes would lie over each other."""
    drawn = [item for item in panel.items if isinstance(item, Surface | Places)]
    values = np.concatenate([np.ravel(getattr(item, axis)) for item in drawn])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if not high > low:
        return {}
    at = np.asarray(MaxNLocator(TICKS).tick_values(low, high), dtype=float)
    free = END * (high - low)
    inside = at[(at > low + free) & (at < high - free)]
    return {"tickvals": _rounded(inside)} if inside.size else {}


def _scene(panel: Panel) -> Trace:
    around, up = np.deg2rad(panel.view)
    eye = np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
    scene: Trace = {
        f"{axis}axis": {"title": {"text": label.html}, "zeroline": False}
        | ({"range": list(ends)} if ends else {})
        | _ticks_in_space(panel, axis)
        for axis, label, ends in (
            ("x", panel.x_label, panel.x_range),
            ("y", panel.y_label, panel.y_range),
            ("z", panel.z_label, None),
        )
    }
    scene["camera"] = {
        "eye": dict(zip("xyz", _rounded(DISTANCE * eye), strict=True)),
        # The axes lie below the surface: what is looked at is a little lower than its middle.
        "center": {"x": 0, "y": 0, "z": LOWER},
    }
    scene |= {"aspectmode": "data" if panel.equal else "cube", "dragmode": "orbit"}
    return {
        "scene": scene,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 40},
        "legend": {**LEGEND, "itemsizing": "constant"},
        "meta": {"heat": False, "space": True},
    }


def _gallery(item: Pictures) -> Trace:
    """Pictures as a Plotly figure: the raster, and a name at each picture's middle."""
    from PIL import Image  # which Matplotlib needs anyway

    raster, (high, wide) = mosaic(item), item.pixels.shape[1:3]
    image = {
        "type": "image", "source": data_address(Image.fromarray(raster, "RGBA")),
        "hoverinfo": "skip",
    }  # fmt: skip
    across, at = pictures_across(len(item.pixels)), np.arange(len(item.pixels))
    x = (at % across) * (wide + 1) + (wide + 1) / 2
    y = (at // across) * (high + 1) + (high + 1) / 2
    names = {
        "type": "scatter", "mode": "markers", "x": x.tolist(), "y": y.tolist(),
        "marker": {"opacity": 0}, "text": [name.html for name in item.names],
        "hovertemplate": "%{text}<extra></extra>", "showlegend": False,
    }  # fmt: skip
    rows, columns = raster.shape[:2]
    axis = {"visible": False, "fixedrange": False, "constrain": "domain"}
    layout = {
        "xaxis": axis | {"range": [-0.5, columns - 0.5]},
        "yaxis": axis | {"range": [rows - 0.5, -0.5], "scaleanchor": "x"},
        "margin": dict.fromkeys("lrtb", 10), "showlegend": False,
        # The nearest middle, wherever in a picture the mouse is.
        "hovermode": "closest", "hoverdistance": -1, "meta": {"heat": True},
    }  # fmt: skip
    return {"data": [image, names], "layout": layout}
