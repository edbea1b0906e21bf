"""A report's first panel, drawn small for the gallery."""

from __future__ import annotations

import base64
import io

from hdica.report.card import START
from hdica.report.printed import HEIGHT, draw, own_style
from hdica.show.panel import Panel

DPI = 150
"""Dots an inch: 510 wide, twice what a card shows."""
COLOURS = 64
"""Of the picture, which then weighs about 10 kB."""


def thumbnail(panel: Panel) -> str:
    """A panel as the address of a small picture that holds its data.

    It is the printed figure without its title and its legend, which nobody could read.
    """
    from PIL import Image  # which Matplotlib needs anyway

    out, small = io.BytesIO(), io.BytesIO()
    with own_style():
        drawn = draw(panel)
        for legend in drawn.legends:
            legend.remove()
        for axes in drawn.axes:
            axes.set_title("", loc="left")
        drawn.set_figheight(HEIGHT)
        drawn.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    picture = Image.open(out).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return START + base64.b64encode(small.getvalue()).decode()
