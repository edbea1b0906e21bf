"""What pages look like, against pictures that are kept in ``references``.

A picture is compared in tiles of 25 x 25 pixels, of which the worst counts: a line that is gone is
a small part of a page, and most of a tile. Two measures of a tile: the structural similarity of its
greys, and the distance of its mean colour, of 255. Letters and lines are drawn a little differently
by every release of a browser, which moves edges by a fraction of a pixel: pictures that are shifted
by a quarter of a pixel must be taken for the same, and pictures with one trace missing, one colour
changed or a word gone must not (the tests below hold it to both).

Letters differ with their fonts: without DejaVu Sans (Debian's package fonts-dejavu-core) pictures
are not compared. After a change that was meant, make them anew, look at them, and commit them::

    HDICA_REFERENCES=write python -m pytest -n0 tests/browser/test_pictures.py
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from tests.browser import look

pytestmark = [pytest.mark.deep, pytest.mark.browser]
skimage = pytest.importorskip("skimage.metrics", reason='needs: pip install "hdica[images]"')

REFERENCES = Path(__file__).parent / "references"
TILE = 25
ALIKE, COLOUR = 0.6, 8.0
"""Least similarity of a tile, and largest distance of its mean colour.

Of the pictures below, one that is shifted by a quarter of a pixel has 0.88 and 3, by half a pixel
0.63 and 6; without a trace or a boundary 0.47 and 17 or more; with another colour 0.92 and 10.
"""
WIDTH = 700
VIEWS = {
    "head-light": (look.View("light", WIDTH, 300), "report.html", None),
    "phase-light": (look.View("light", WIDTH, 620), "report.html", "#plot-phase_overlap"),
    "phase-dark": (look.View("dark", WIDTH, 620, "dark"), "report.html", "#plot-phase_slices"),
    "card-narrow": (look.View("narrow", 400, 850), "index.html", ".card"),
}
"""View, file, and the part of the page that is compared; None for the window as it opens."""
WORDS = """() => document
  .querySelectorAll("#headline, .card .words > p:not(.over):not(:has(.verdict))")
  .forEach((one) => { one.textContent = "The simulation agrees with the limit." })"""
"""What is said of results has tests of its own, and may change without a change of the looks."""


def fonts() -> bool:
    """Whether letters are those of the references."""
    found = shutil.which("fc-match")
    if found is None:
        return False
    said = subprocess.run([found, "sans-serif"], capture_output=True, text=True, check=False)
    return "DejaVuSans.ttf" in said.stdout


def picture(page: Any, part: str | None) -> np.ndarray:
    """A part of a page, shape (height, width, 3)."""
    from PIL import Image

    shot = page.screenshot() if part is None else page.locator(part).first.screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))


def differences(one: np.ndarray, other: np.ndarray) -> list[str]:
    """What tells two pictures apart, in words; nothing if they are alike."""
    if one.shape != other.shape:
        return [f"the picture is {one.shape[1]} x {one.shape[0]} pixels, not {other.shape[1::-1]}"]
    grey = [np.asarray(p, float).mean(axis=2) for p in (one, other)]
    _, similar = skimage.structural_similarity(*grey, data_range=255.0, full=True)
    apart = np.abs(_tiles(np.asarray(one, float)) - _tiles(np.asarray(other, float))).max(axis=2)
    found = []
    for name, values, bad in (
        ("similarity", _tiles(similar[..., None])[..., 0], lambda v: v < ALIKE),
        ("colour", apart, lambda v: v > COLOUR),
    ):
        for row, column in np.argwhere(bad(values))[:3]:
            found.append(
                f"{name} {values[row, column]:.2f} at {column * TILE}, {row * TILE} pixels"
            )
    return found


def _tiles(values: np.ndarray) -> np.ndarray:
    """Means over tiles, shape (rows, columns, channels); the last ones take what is left over."""
    starts = [np.arange(0, max(1, size // TILE) * TILE, TILE) for size in values.shape[:2]]
    sums = np.add.reduceat(np.add.reduceat(values, starts[0], axis=0), starts[1], axis=1)
    counts = [np.diff([*at, size]) for at, size in zip(starts, values.shape[:2], strict=True)]
    return sums / np.outer(*counts)[..., None]


@pytest.fixture(scope="module")
def shot(
    aggregated_plain: xr.DataTree, chromium: Any, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., np.ndarray]:
    """Takes the picture of a view, after a change of the page if one is asked for."""
    from hdica.report.drawn import write_aggregate

    top = tmp_path_factory.mktemp("seen")
    write_aggregate(aggregated_plain, top / "toy", top)

    @cache
    def take(name: str, change: str = "") -> np.ndarray:
        view, file, part = VIEWS[name]
        path = top / file if file == "index.html" else top / "toy" / file
        with look.opened(chromium, path, view) as shown:
            shown.page.evaluate(WORDS)
            if change:
                shown.page.evaluate(change)
                look.wait_for_plots(shown.page)
            return picture(shown.page, part)

    return take


@pytest.mark.skipif(
    not fonts(), reason="needs DejaVu Sans: install the Debian package fonts-dejavu-core"
)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_looks_as_it_did(name: str, shot: Callable[..., np.ndarray], pictures: Path) -> None:
    from PIL import Image

    found = Image.fromarray(shot(name))
    place = REFERENCES / f"{name}.png"
    pictures.mkdir(parents=True, exist_ok=True)
    found.save(pictures / f"seen-{name}.png")
    if os.environ.get("HDICA_REFERENCES") == "write":
        REFERENCES.mkdir(exist_ok=True)
        found.save(place, optimize=True)
    look.fine(differences(np.asarray(found), np.asarray(Image.open(place).convert("RGB"))))
    assert place.stat().st_size < 150_000


def test_a_quarter_of_a_pixel_of_letters_and_lines_is_no_difference(
    shot: Callable[..., np.ndarray],
) -> None:
    from scipy.ndimage import shift

    for name in ("head-light", "phase-light"):
        one = shot(name)
        moved = shift(one.astype(float), (0.25, 0.25, 0), order=1, mode="nearest")
        assert differences(one, moved) == []


PLOT = "document.getElementById('plot-{}')"
SLICES = PLOT.format("phase_slices")
HEAT = PLOT.format("phase_overlap")
CHANGES = {
    "a trace is gone": ("phase-dark", f"Plotly.deleteTraces({SLICES}, 0)"),
    "a colour is another": (
        "phase-dark",
        f"Plotly.restyle({SLICES}, {{'marker.color': '#a0a0a0', 'line.color': '#a0a0a0'}}, [0])",
    ),
    "cells have another scale": (
        "phase-light",
        f"Plotly.restyle({HEAT}, {{colorscale: 'Greys'}}, [0])",
    ),
    "a boundary is gone": (
        "phase-light",
        f"Plotly.restyle({HEAT}, {{visible: false}}, [1, 2])",
    ),
    "a word is gone": ("head-light", "document.querySelector('h1').textContent = 'A study'"),
    "the theme is not turned": (
        "phase-dark",
        f"Plotly.relayout({SLICES}, {{'font.color': '#000000'}})",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_readers_would_miss_is_a_difference(
    what: str, shot: Callable[..., np.ndarray]
) -> None:
    name, change = CHANGES[what]
    assert differences(shot(name), shot(name, change)) != []
