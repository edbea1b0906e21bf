"""Pictures in rows: one raster for print, and one with names on hover for the page."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.show.panel import Panel, Pictures

Bytes = NDArray[np.uint8]
WIDE = 2.5
"""At most so many times as many pictures stand side by side as one above another."""


def columns(count: int) -> int:
    """Pictures in a row: of what is about a square, or wider, that which leaves fewest places."""
    least, most = math.ceil(math.sqrt(count)), math.floor(math.sqrt(WIDE * count))
    return min(range(least, max(least, most) + 1), key=lambda k: (-count % k, k))


def mosaic(item: Pictures) -> Bytes:
    """All pictures with a free pixel around each, red, green, blue and opacity.

    Shape (rows, columns, 4); free pixels, and those that are NaN, are transparent.
    """
    pixels = item.pixels if item.pixels.ndim == 4 else np.repeat(item.pixels[..., None], 3, axis=3)
    count, high, wide, _ = pixels.shape
    across = columns(count)
    out = np.zeros((-(-count // across) * (high + 1) + 1, across * (wide + 1) + 1, 4), np.uint8)
    for k, one in enumerate(pixels):
        top, left = (k // across) * (high + 1) + 1, (k % across) * (wide + 1) + 1
        known = np.isfinite(one).all(axis=-1)
        here = out[top : top + high, left : left + wide]
        here[..., :3] = np.round(255 * np.clip(np.nan_to_num(one), 0.0, 1.0))
        here[..., 3] = 255 * known
    return out


def gallery(panel: Panel) -> dict[str, Any]:
    """A panel of pictures as a Plotly figure: the raster, and a name at each picture's middle."""
    data: list[dict[str, Any]] = []
    shape = (0, 0)
    for item in panel.items:
        if isinstance(item, Pictures):
            raster = mosaic(item)
            data += [_raster(raster), _names(item)]
            shape = (max(shape[0], raster.shape[0]), max(shape[1], raster.shape[1]))
    hidden = {"visible": False, "fixedrange": False}
    x = {**hidden, "range": [-0.5, shape[1] - 0.5], "constrain": "domain"}
    y = {**hidden, "range": [shape[0] - 0.5, -0.5], "constrain": "domain", "scaleanchor": "x"}
    return {
        "data": data,
        "layout": {
            "xaxis": x,
            "yaxis": y,
            "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
            "hovermode": "closest",
            # The nearest middle, wherever in a picture the mouse is.
            "hoverdistance": -1,
            "showlegend": False,
            "meta": {"heat": True},
        },
    }


def _raster(raster: Bytes) -> dict[str, Any]:
    return {"type": "image", "source": _png(raster), "hoverinfo": "skip"}


def _names(item: Pictures) -> dict[str, Any]:
    high, wide = item.pixels.shape[1:3]
    across = columns(len(item.pixels))
    at = np.arange(len(item.pixels))
    x = (at % across) * (wide + 1) + (wide + 1) / 2
    y = (at // across) * (high + 1) + (high + 1) / 2
    return {
        "type": "scatter", "mode": "markers", "x": x.tolist(), "y": y.tolist(),
        "marker": {"opacity": 0}, "text": [name.html for name in item.names],
        "hovertemplate": "%{text}<extra></extra>", "showlegend": False,
    }  # fmt: skip


def _png(raster: Bytes) -> str:
    """A raster as the address of a picture that holds its data."""
    from PIL import Image  # which Matplotlib needs anyway

    out = io.BytesIO()
    Image.fromarray(raster, "RGBA").save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
