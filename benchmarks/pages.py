"""How large are pages, and how soon does a browser show them?

For every report of a gallery, as ``make run`` leaves it in ``results``, and for the gallery itself:
bytes of the file, the browser's own time of the first contentful paint (``paint`` of its
performance timeline), and the time until every plot is drawn, from the beginning of navigation.
Each is the median over loads in headless Chromium, every one in a context of its own with nothing
kept of the last. Pages as one file are measured, too (``hdica report --one-file`` writes them).

Run: python -m benchmarks.pages [GALLERY] [--loads N]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from benchmarks.table import on
from hdica.report.place import ALONE, PAGE
from tests.browser.look import CHROMIUM, FLAGS, wait_for_plots

FIRST_PAINT = """() => performance.getEntriesByType("paint")
  .find((one) => one.name === "first-contentful-paint")?.startTime"""


@dataclass(frozen=True)
class Shown:
    """How a file is shown.

    Parameters
    ----------
    name
        The file, as seen from the gallery.
    size
        Its bytes.
    paint, drawn
        Seconds until its first words are painted, and until every plot is.
    """

    name: str
    size: int
    paint: float
    drawn: float


def files(gallery: Path) -> list[Path]:
    """The index of a gallery and its pages, each as one file, too, if it is there."""
    index = gallery / "index.html"
    return [index, *sorted(gallery.glob(f"*/{PAGE}")), *sorted(gallery.glob(f"*/{ALONE}"))]


def _painted(page: Any) -> float:
    """Milliseconds until the first words were painted, which may be told a little later."""
    found: float = page.wait_for_function(FIRST_PAINT).json_value()
    return found


def load(browser: Any, path: Path) -> tuple[float, float]:
    """Seconds of the first paint and of the last plot, of one load."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    try:
        page = context.new_page()
        page.goto(path.resolve().as_uri(), wait_until="commit")
        wait_for_plots(page)
        drawn = page.evaluate("performance.now()")
        return _painted(page) / 1000, drawn / 1000
    finally:
        context.close()


def measure(gallery: Path, loads: int) -> Iterator[Shown]:
    """Every file of a gallery, each loaded some times."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for path in files(gallery):
            paint, drawn = np.median([load(browser, path) for _ in range(loads)], axis=0)
            name = str(path.relative_to(gallery))
            yield Shown(name, path.stat().st_size, float(paint), float(drawn))
        browser.close()


def weight(gallery: Path) -> int:
    """Bytes of what a browser may load of a gallery: its index, pages and shared script."""
    shared = list((gallery / "assets").glob("*.js"))
    pages = [path for path in files(gallery) if path.name != ALONE]
    return sum(path.stat().st_size for path in [*pages, *shared])


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gallery", nargs="?", type=Path, default=Path("results"))
    parser.add_argument("--loads", type=int, default=5)
    given = parser.parse_args()
    if not (given.gallery / "index.html").is_file():
        parser.error(f"{given.gallery} has no index.html (make run writes one into results)")
    print(on(machine()))
    print(f"gallery with all its pages and their script: {weight(given.gallery) / 1e6:.2f} MB")
    print(f"{'MB':>6} {'first paint, s':>15} {'all drawn, s':>13}  file")
    for one in measure(given.gallery, given.loads):
        line = f"{one.size / 1e6:6.2f} {one.paint:15.2f} {one.drawn:13.2f}  {one.name}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
