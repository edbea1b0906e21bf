"""Panels as Plotly figures: plain JSON, themed on the page."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hdica.report.interactive_space import SCALES, space
from hdica.report.mosaic import gallery
from hdica.report.plain import rounded
from hdica.show.panel import Heat, Line, Panel, Points, Vertical
from hdica.show.ticks import ticks
from hdica.show.words import Text

ROW = 18
"""Pixels of a row of labels above the axes."""

LONG = 32
"""Letters of a label that stand beside an upright axis in one line."""

MARKS = {"circle": "circle", "square": "square", "diamond": "diamond", "triangle": "triangle-up"}


def figure(panel: Panel) -> dict[str, Any]:
    """A panel as ``{"data": [...], "layout": {...}}``.

    Colours of theory lines, text and grid are left to the page, which knows whether it is light
    or dark: such traces carry ``meta.ink``.
    """
    if panel.in_space:
        return space(panel)
    if panel.pictured:
        return gallery(panel)
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for item in panel.items:
        if isinstance(item, Line):
            data += _line(item, panel)
        elif isinstance(item, Points):
            data.append(_points(item, panel))
        elif isinstance(item, Heat):
            data.append(_heat(item, panel))
        elif isinstance(item, Vertical):
            shapes += _vertical(item)
            notes.append(_note(item))
    return {"data": data, "layout": {**_layout(panel), "shapes": shapes, "annotations": notes}}


def _hover(panel: Panel, label: Text, extra: str = "") -> str:
    head = f"<b>{label.html}</b><br>" if label else ""
    body = f"{panel.x_label.html}: %{{x:.5g}}<br>{panel.y_label.html}: %{{y:.5g}}"
    return f"{head}{body}{extra}<extra></extra>"


def _entry(item: Line | Points) -> dict[str, Any]:
    """Name, legend entry, and the group that is switched together."""
    return {
        "name": item.label.html, "showlegend": item.listed, "legendgroup": item.label.plain,
    }  # fmt: skip


def _line(item: Line, panel: Panel) -> list[dict[str, Any]]:
    ink = item.color == "ink"
    line: dict[str, Any] = {"width": 2.5 if item.bold else 1.6, "dash": item.dash}
    if not ink:
        line["color"] = item.color
    trace = {
        "type": "scatter", "mode": "lines", "x": rounded(item.x), "y": rounded(item.y),
        "line": line, "meta": {"ink": ink}, "hovertemplate": _hover(panel, item.label),
        **_entry(item),
    }  # fmt: skip
    if item.cased:
        edge = {"color": "rgba(255,255,255,0.8)", "width": 4}
        return [trace | {"line": edge, "hoverinfo": "skip", "showlegend": False}, trace]
    if item.low is None or item.high is None:
        return [trace]
    around = {
        "type": "scatter", "mode": "lines",
        "x": rounded(np.concatenate([item.x, item.x[::-1]])),
        "y": rounded(np.concatenate([item.high, item.low[::-1]])),
        "fill": "toself", "fillcolor": _pale(item.color), "line": {"width": 0},
        "hoverinfo": "skip", "showlegend": False, "legendgroup": trace["legendgroup"],
    }  # fmt: skip
    return [around, trace]


def _pale(color: str, alpha: float = 0.22) -> str:
    r, g, b = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},{alpha})"


def _points(item: Points, panel: Panel) -> dict[str, Any]:
    mark = MARKS[item.symbol]
    filled = np.ones(len(item.x), bool) if item.filled is None else item.filled
    white = item.color == "#ffffff"
    trace: dict[str, Any] = {
        "type": "scatter", "mode": "lines+markers" if item.joined else "markers",
        "x": rounded(item.x), "y": rounded(item.y),
        "marker": {
            "symbol": [mark if f else f"{mark}-open" for f in filled],
            "color": item.color, "size": 6 if white else 8,
            "line": {"width": 1 if white else 1.5, "color": "#000000" if white else item.color},
        },
        "line": {"width": 1, "color": item.color},
        "hovertemplate": _hover(panel, item.label),
        **_entry(item),
    }  # fmt: skip
    if item.low is not None and item.high is not None:
        trace["error_y"] = {
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3,
            "color": _pale(item.color, 0.5),
            "array": rounded(item.high - item.y), "arrayminus": rounded(item.y - item.low),
        }  # fmt: skip
        trace["hovertemplate"] = _hover(
            panel, item.label, " (+%{error_y.array:.2g} −%{error_y.arrayminus:.2g})"
        )
    return trace


def _heat(item: Heat, panel: Panel) -> dict[str, Any]:
    body = f"{panel.x_label.html}: %{{x:.5g}}<br>{panel.y_label.html}: %{{y:.5g}}"
    x, y = _cells(item.x, panel.log_x), _cells(item.y, panel.log_y)
    trace = {
        "type": "heatmap", "x": rounded(x), "y": rounded(y), "z": rounded(item.z),
        "zmin": item.low, "zmax": item.high, "colorscale": SCALES[item.scale], "showlegend": False,
        "colorbar": {"title": {"text": item.label.html, "side": "right"}, "thickness": 12},
        "hovertemplate": f"{body}<br>{item.label.html}: %{{z:.4g}}<extra></extra>",
    }  # fmt: skip
    if item.written:
        trace |= {"text": item.written, "texttemplate": "%{text}", "textfont": {"size": 11}}
    return trace


def _cells_of(panel: Panel) -> dict[str, Any]:
    """Which grid points the cells of a heat map are, where they are any."""
    known = (item.cells for item in panel.items if isinstance(item, Heat) and item.cells)
    cells = next(known, None)
    if cells is None:
        return {}
    values = {"x": cells.x_values.tolist(), "y": cells.y_values.tolist()}
    at = {k: v.item() if isinstance(v, np.generic) else v for k, v in cells.at.items()}
    return {"cells": {"axes": {"x": cells.x, "y": cells.y}, "values": values, "at": at}}


def _cells(centres: np.ndarray, log: bool) -> np.ndarray:
    """Centres, which are told on hover; Plotly's edges lie midway, on a logarithmic axis too.

    Around a single value it would put them one unit apart: there its edges are given, as far below
    as above, because then their mean is told.
    """
    return centres * np.array([0.5, 1.5]) if log and centres.size == 1 else centres


def _vertical(item: Vertical) -> list[dict[str, Any]]:
    at = {"type": "line", "x0": item.x, "x1": item.x, "yref": "paper", "y0": 0, "y1": 1}
    if item.color:
        return [at | {"line": {"color": item.color, "width": 1.2, "dash": "dot"}, "layer": "below"}]
    edge = {"color": "rgba(255,255,255,0.7)", "width": 3.5}
    return [at | {"line": edge}, at | {"line": {"color": "#000000", "width": 2, "dash": "dash"}}]


def _note(item: Vertical) -> dict[str, Any]:
    return {
        "x": item.x, "yref": "paper", "y": 1, "text": item.label.html, "showarrow": False,
        "yanchor": "bottom", "xanchor": item.anchor, "yshift": ROW * item.row,
        **({"font": {"color": item.color}} if item.color else {}),
    }  # fmt: skip


def _in_lines(label: str) -> str:
    """HTML of a label, in two lines if it is longer than an upright axis on a telephone.

    It is broken at the space nearest to its middle, outside of marks.
    """
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


def _log_axis(panel: Panel, name: str, limits: tuple[float, float] | None) -> dict[str, Any]:
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


def _layout(panel: Panel) -> dict[str, Any]:
    x: dict[str, Any] = {"title": {"text": panel.x_label.html}, "zeroline": False}
    y: dict[str, Any] = {"title": {"text": _in_lines(panel.y_label.html)}, "zeroline": False}
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
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "meta": {"heat": heat, **_cells_of(panel)},
    }
