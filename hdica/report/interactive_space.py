"""Panels in space as Plotly figures: surfaces and places that are turned with the mouse."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from hdica.report.plain import rounded
from hdica.show.panel import Panel, Places, Surface
from hdica.show.words import Text

DISTANCE = 2.2
"""Of the eye from the middle, in lengths of the box."""
LOWER = -0.14
"""Height of what is looked at, in lengths of the box."""
TICKS, END = 4, 0.05
"""Steps along an axis, about, and the share of an axis at either end that has no tick."""
MARKS = {"circle": "circle", "square": "square", "diamond": "diamond", "triangle": "cross"}
"""Plotly has no triangles in space."""
SCALES = {"viridis": "Viridis", "cividis": "Cividis"}


def space(panel: Panel) -> dict[str, Any]:
    """A panel in space as ``{"data": [...], "layout": {...}}``."""
    data = [
        _surface(item, panel) if isinstance(item, Surface) else _places(item, panel)
        for item in panel.items
        if isinstance(item, Surface | Places)
    ]
    return {"data": data, "layout": _layout(panel)}


def _hover(panel: Panel, head: Text, extra: str = "") -> str:
    labels = zip((panel.x_label, panel.y_label, panel.z_label), "xyz", strict=True)
    body = "<br>".join(f"{label.html}: %{{{axis}:.4g}}" for label, axis in labels)
    first = f"<b>{head.html}</b><br>" if head else ""
    return f"{first}{body}{extra}<extra></extra>"


def _surface(item: Surface, panel: Panel) -> dict[str, Any]:
    seen = item.color[np.isfinite(item.color)]
    return {
        "type": "surface", "x": rounded(item.x), "y": rounded(item.y), "z": rounded(item.z),
        "surfacecolor": rounded(item.color), "cmin": float(seen.min()), "cmax": float(seen.max()),
        "colorscale": SCALES["viridis"], "showlegend": False,
        "colorbar": {"title": {"text": item.label.html, "side": "right"}, "thickness": 12},
        # Light would change the colours, which are what is shown.
        "lighting": {"ambient": 0.9, "diffuse": 0.2, "specular": 0.0, "fresnel": 0.0},
        "hovertemplate": _hover(
            panel, Text("", "", ""), f"<br>{item.label.html}: %{{surfacecolor:.4g}}"
        ),
    }  # fmt: skip


def _places(item: Places, panel: Panel) -> dict[str, Any]:
    return {
        "type": "scatter3d", "mode": "markers",
        "x": rounded(item.x), "y": rounded(item.y), "z": rounded(item.z),
        "marker": {
            "symbol": MARKS[item.symbol], "color": item.color, "size": 5,
            "line": {"width": 1, "color": "#ffffff"},
        },
        "name": item.label.html, "showlegend": bool(item.label),
        "hovertemplate": _hover(panel, item.label),
    }  # fmt: skip


def _ticks(panel: Panel, axis: str) -> dict[str, Any]:
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
    return {"tickvals": rounded(inside)} if inside.size else {}


def _layout(panel: Panel) -> dict[str, Any]:
    around, up = np.deg2rad(panel.view)
    eye = np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
    scene: dict[str, Any] = {
        f"{axis}axis": {"title": {"text": label.html}, "zeroline": False}
        for axis, label in zip("xyz", (panel.x_label, panel.y_label, panel.z_label), strict=True)
    }
    for axis, limits in (("xaxis", panel.x_range), ("yaxis", panel.y_range)):
        if limits:
            scene[axis]["range"] = list(limits)
    for axis in "xyz":
        scene[f"{axis}axis"] |= _ticks(panel, axis)
    # The axes lie below the surface: what is looked at is a little lower than its middle.
    scene |= {
        "camera": {
            "eye": dict(zip("xyz", rounded(DISTANCE * eye), strict=True)),
            "center": {"x": 0, "y": 0, "z": LOWER},
        },
        "aspectmode": "data" if panel.equal else "cube",
        "dragmode": "orbit",
    }
    return {
        "scene": scene,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 40},
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "x": 0,
            "itemsizing": "constant",
        },
        "meta": {"heat": False, "space": True},
    }
