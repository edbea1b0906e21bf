"""A page in a browser: opened in one of its views, looked over, printed.

A view is what a reader has: a wide screen, light or dark, a telephone, or paper. Nothing here knows
what a page is about.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader"]
PATIENCE = 60_000
"""Milliseconds until a page must have drawn everything."""
SHEET = 680
"""Pixels of a sheet between its margins: 180 mm."""
MARGIN = 15 / 25.4 * 72
"""Points of the margin of a sheet, as the style of the pages says."""
LINE = 12.0
"""Points of a line on paper."""
CHECKS = ("drawn", "overflow", "tables", "ticks", "clipped", "crowded")


@dataclass(frozen=True)
class View:
    """How a page is looked at.

    Parameters
    ----------
    name
        As in the names of tests and pictures.
    width, height
        Pixels of the window.
    scheme
        What the reader's system asks for, light or dark.
    media
        Whether it is a screen or paper.
    """

    name: str
    width: int
    height: int = 1000
    scheme: str = "light"
    media: str = "screen"


VIEWS = (
    View("light", 1400),
    View("dark", 1400, scheme="dark"),
    View("narrow", 400, 850),
    View("print", SHEET, media="print"),
)


@dataclass
class Opened:
    """A page in a view, with what its console said and what it asked for.

    Parameters
    ----------
    page
        Playwright's page.
    view
        How it is looked at.
    complaints
        Errors, warnings, and requests for anything that does not lie where the page does.
    """

    page: Any
    view: View
    complaints: list[str] = field(default_factory=list)

    def told(self, message: Any) -> None:
        """Keep what the console says that is no mere note."""
        if message.type in ("error", "warning") and not _of_the_driver(message.text):
            self.complaints.append(f"{message.type}: {message.text}")

    def faults(self, *names: str) -> list[str]:
        """What is wrong with the page as it stands; of all checks by default."""
        asked = names or (CHECKS + (("folded",) if self.view.media == "print" else ()))
        said = "names.flatMap(name => checks[name]().map(said => `${name}: ${said}`))"
        found = self.page.evaluate(
            f"names => {{ const checks = {script()}; return {said} }}", list(asked)
        )
        return [f"{self.view.name}: {one}" for one in found]

    def picture(self, path: Path | None) -> None:
        """Keep the whole page as a PNG, if there is a place for it: only people look at it."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=path, full_page=True)

    def turn(self, view: View) -> None:
        """Look at it in another view, as a reader does who turns to the dark, or prints."""
        self.view = view
        media = (
            "print" if view.media == "print" else "null"
        )  # else it would print what is on screen
        self.page.emulate_media(media=media, color_scheme=view.scheme)
        self.page.set_viewport_size({"width": view.width, "height": view.height})
        if view.media == "print":
            wait_for_paper(self.page)
        else:
            wait_for_plots(self.page)
            wait_for_width(self.page)
            wait_for_colours(self.page)

    def paper(self, path: Path | None = None) -> bytes:
        """The page as a PDF, printed from the screen as a reader does, and kept if asked for."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.page.evaluate(UNPRINTED)
        printed = self.page.pdf(path=path, outline=True, tagged=True, prefer_css_page_size=True)
        assert self.page.evaluate("window.unprinted") == [], "plots as wide as the screen on paper"
        wait_for_plots(self.page)
        return printed


UNPRINTED = """() => addEventListener("beforeprint", () => {
  const width = (plot) => plot.querySelector(".main-svg").getAttribute("width");
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  const wide = plots.filter((plot) => plot.offsetParent && width(plot) !== "640");
  window.unprinted = wide.map((plot) => plot.id);
}, { once: true })"""
"""Plots that the page has not laid out for paper when the browser takes its sheets."""

NOT_OURS = (
    "GPU stall due to ReadPixels",
    "Automatic fallback to software WebGL",
    "willReadFrequently",
)
"""Warnings of the graphics that a browser without a screen has, and of how Plotly uses them."""


def _of_the_driver(text: str) -> bool:
    return any(known in text for known in NOT_OURS)


@cache
def script() -> str:
    """The checks, an expression of JavaScript."""
    return Path(__file__).with_name("checks.js").read_text(encoding="utf-8").rstrip().rstrip(";")


@contextmanager
def opened(browser: Any, path: Path, view: View) -> Iterator[Opened]:
    """Open a file of a gallery in a context of its own, and wait until all its plots are drawn.

    The page's policy of content holds: what is asked of the page by the driver is not under it.
    """
    context = browser.new_context(
        viewport={"width": view.width, "height": view.height},
        color_scheme=view.scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    found = Opened(page, view)
    whole = path.resolve().parents[0 if path.name == "index.html" else 1].as_uri()
    page.on("console", found.told)
    page.on("pageerror", lambda error: found.complaints.append(f"error: {error}"))
    page.on("requestfailed", lambda request: found.complaints.append(f"failed: {request.url}"))

    def asked(request: Any) -> None:
        if not request.url.startswith((whole, "data:", "blob:")):
            found.complaints.append(f"asked for {request.url}")

    page.on("request", asked)
    page.goto(path.resolve().as_uri(), timeout=PATIENCE)
    wait_for_plots(page)
    if view.media == "print":
        found.turn(view)
    try:
        yield found
    finally:
        context.close()


def wait_for_plots(page: Any) -> None:
    """Wait until every place of a plot has one, or the page says why it has none."""
    page.wait_for_function(
        """() => {
          const places = [...document.querySelectorAll(".plot")]
            .filter((one) => !one.closest("[hidden]"));
          const begun = document.querySelector("#explore .main-svg");
          const explored = begun || !document.querySelector("#explore");
          return (explored && places.every((one) => one.querySelector(".main-svg")))
            || document.querySelector("#no-plots:not([hidden])");
        }""",
        timeout=PATIENCE,
    )
    _settle(page)


def wait_for_paper(page: Any) -> None:
    """Wait until every plot is as wide as on paper."""
    page.wait_for_function(
        """() => [...document.querySelectorAll(".plot .main-svg:first-of-type")]
          .every((one) => Math.abs(one.getBoundingClientRect().width - 640) < 1)""",
        timeout=PATIENCE,
    )
    _settle(page)


def wait_for_width(page: Any) -> None:
    """Wait until everything is drawn for the width that the window has now."""
    page.wait_for_function(
        """() => !document.querySelector(".plot .main-svg")
          || document.documentElement.dataset.drawn === String(window.innerWidth)""",
        timeout=PATIENCE,
    )
    _settle(page)


def wait_for_colours(page: Any) -> None:
    """Wait until the words of every plot have the colour that the page's theme has."""
    page.wait_for_function(
        """() => {
          const probe = document.body.appendChild(document.createElement("i"));
          probe.style.color = "var(--ink)";
          const ink = getComputedStyle(probe).color;
          probe.remove();
          return [...document.querySelectorAll(".plot .xtitle")]
            .every((one) => getComputedStyle(one).fill === ink);
        }""",
        timeout=PATIENCE,
    )
    _settle(page)


def _settle(page: Any) -> None:
    """Two frames: what has been drawn is laid out."""
    page.evaluate("() => new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))")


@dataclass(frozen=True)
class Heading:
    """Where a heading stands on paper.

    Parameters
    ----------
    title
        Its words.
    sheet
        Number of the sheet, from 0.
    height
        Points of its upper edge above the sheet's lower edge.
    """

    title: str
    sheet: int
    height: float


def headings(pdf: bytes) -> list[Heading]:
    """Headings of a printed page, from the outline that Chromium writes into its PDF.

    Only streams are packed in it: objects of the outline and of the sheets can be read as they are.
    """
    objects = dict(re.findall(rb"(\d+) 0 obj\s(.*?)\sendobj", pdf, re.DOTALL))
    sheets = [n for n, text in objects.items() if re.search(rb"/Type\s*/Page\b", text)]
    found = []
    for text in objects.values():
        at = re.search(rb"/Dest\s*\[\s*(\d+) 0 R\s*/XYZ\s+[\d.-]+\s+([\d.-]+)", text)
        title = re.search(rb"/Title\s*(\((?:\\.|[^\\)])*\)|<[0-9A-Fa-f]*>)", text)
        if at and title:
            found.append(Heading(_words(title[1]), sheets.index(at[1]), float(at[2])))
    return sorted(found, key=lambda one: (one.sheet, -one.height))


def _words(text: bytes) -> str:
    raw = bytes.fromhex(text[1:-1].decode()) if text.startswith(b"<") else text[1:-1]
    return raw.decode("utf-16" if raw.startswith(b"\xfe\xff") else "latin-1")


def orphaned(pdf: bytes) -> list[str]:
    """Headings at the foot of a sheet that leave no room for a line of what they head."""
    return [
        f"heading {one.title!r} is the last thing on sheet {one.sheet + 1}"
        for one in headings(pdf)
        if one.height < MARGIN + 3 * LINE
    ]


def fine(faults: list[str]) -> None:
    """Fail with everything that is wrong with a page, a line each."""
    if faults:
        raise AssertionError("\n".join(faults))
