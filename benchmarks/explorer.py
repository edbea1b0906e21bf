"""How long does `hdica explore` take to answer a slider, on a store of a million points?

The stores are those of :mod:`benchmarks.million`: short chains that ``hdica run`` computes and
publishes as it does any study. ``hdica explore`` runs as a user would run it, in a process of its
own, and one visitor looks at it in Chromium. The first picture is there when a figure is, counted
from the request for the page. Every slider is moved through its values in turn; an answer is the
wall time from the new value until the sentence with the values at the point, which needs all slices
that are drawn, is there and another one; it is seen when every figure is drawn. Memory is that of
the server's process at the end, and the most it had.

Run: python -m benchmarks.explorer [SHAPE ...] [--small] [--moves N]
     (a million points: three minutes a shape, of which the explorer takes one)
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from benchmarks import million
from benchmarks.machine import machine
from benchmarks.table import on
from tests.browser.look import CHROMIUM, FLAGS

SHAPES = {
    "seeds": million.seeds,
    "cells": million.cells,
    "axis": million.axis,
    "several": million.several,
}
HDICA = (sys.executable, "-c", "from hdica.cli import main; main()")
PATIENCE = 120.0
"""Seconds that an answer may take."""


@dataclass(frozen=True)
class Answers:
    """How long one slider's answers took.

    Parameters
    ----------
    median, low, high
        Seconds: median and quartiles over the moves.
    seen
        Seconds until it was on the screen, too: the median.
    moves
        How many.
    """

    median: float
    low: float
    high: float
    seen: float
    moves: int


def made(shape: str, points: int, folder: Path) -> Path:
    """A published store of some points."""
    (folder / "many.yaml").write_text(json.dumps(SHAPES[shape](points)))
    study = ("many.yaml", "--out", "many.zarr", "--workers", "2", "--quiet")
    million.called([*HDICA, "run", *study], folder)
    return folder / "many.zarr"


def memory(process: int) -> dict[str, float]:
    """MiB of a process that are resident now, and the most that were."""
    text = Path(f"/proc/{process}/status").read_text()
    names = {"now": "VmRSS", "most": "VmHWM"}
    return {
        key: int(re.findall(rf"{name}:\s+(\d+) kB", text)[0]) / 1024 for key, name in names.items()
    }


SLIDERS = """() => [...document.querySelectorAll("#explore input[type=range]")].map((one) => ({
  title: one.dataset.axis, start: Number(one.min), end: Number(one.max), value: one.valueAsNumber,
}))"""
MOVE = """([title, value]) => new Promise((done) => {
  const began = performance.now();
  const plots = [...document.querySelectorAll("#explore .js-plotly-plot")];
  const missing = new Set(plots.filter((one) => one.offsetParent));
  let answered = null;
  const end = () => {
    if (answered !== null && !missing.size) {
      requestAnimationFrame(() => done([answered, performance.now() - began]));
    }
  };
  for (const plot of missing) plot.once("plotly_afterplot", () => { missing.delete(plot); end(); });
  const observer = new MutationObserver(() => {
    observer.disconnect();
    answered = performance.now() - began;
    end();
  });
  observer.observe(document.getElementById("explore-said"), { childList: true });
  const input = document.querySelector(`#explore input[data-axis="${CSS.escape(title)}"]`);
  input.value = value;
  input.dispatchEvent(new Event("input"));
})"""
"""What the browser does: lists sliders; moves one and says after how many milliseconds the sentence
with the values was another one, and after how many all figures were drawn."""
PICTURE = """() => document.querySelector("#explore .main-svg") && performance.now()"""
DRAWN = """() => [...document.querySelectorAll("#explore figure:not([hidden]) .plot")]
  .every((one) => one.querySelector(".main-svg"))"""


class Visitor:
    """One visitor of the explorer, in Chromium."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_page(viewport={"width": 1400, "height": 1200})
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.goto(address, wait_until="commit")
        self.picture = self.page.wait_for_function(PICTURE, polling="raf").json_value() / 1000
        self.page.wait_for_function(DRAWN, polling="raf")

    def sliders(self) -> list[dict[str, Any]]:
        """Every slider: its title, its range and where it stands."""
        return self.page.evaluate(SLIDERS)

    def answer(self, title: str, value: int) -> tuple[float, float]:
        """Seconds until what is said is another thing after a slider was moved, and is seen."""
        answered, seen = self.page.evaluate(MOVE, [title, value])
        return answered / 1000, seen / 1000


def answers(visitor: Visitor, slider: dict[str, Any], moves: int) -> Answers:
    """Answers of one slider, moved through values spread over its range, and back and forth."""
    rng = np.random.default_rng(0)
    taken: list[tuple[float, float]] = []
    now = slider["value"]
    while len(taken) < moves:
        value = int(rng.integers(slider["start"], slider["end"] + 1))
        if value != now:
            taken.append(visitor.answer(slider["title"], value))
            now = value
    answered, seen = np.transpose(taken)
    low, median, high = np.percentile(answered, [25, 50, 75]).tolist()
    return Answers(median, low, high, float(np.median(seen)), moves)


def measure(store: Path, moves: int) -> dict[str, Any]:
    """Answers of every slider on a store, and the server's memory."""
    command = [*HDICA, "explore", str(store), "--no-browser"]
    began = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http\S+", server.stdout.readline())
        if address is None:
            raise RuntimeError("hdica explore did not start")
        started = time.perf_counter() - began
        before = memory(server.pid)["now"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            began = time.perf_counter()
            visitor = Visitor(browser, address.group())
            found: dict[str, Any] = {"start": started, "page": time.perf_counter() - began}
            found["picture"] = visitor.picture
            found["sliders"] = {
                one["title"]: asdict(answers(visitor, one, moves)) for one in visitor.sliders()
            }
            found["memory"] = {"at the start": before, **memory(server.pid)}
            browser.close()
    finally:
        server.terminate()
        server.wait(30)
    return found


def shown(shape: str, points: int, found: dict[str, Any]) -> str:
    """What was measured, a line a slider."""
    size = found["memory"]
    lines = [
        f"{shape}: {points} points; address after {found['start']:.1f} s, "
        f"first picture {found['picture']:.2f} s, all figures {found['page']:.2f} s; "
        f"server {size['at the start']:.0f} MiB before a visitor, {size['now']:.0f} MiB after, "
        f"at most {size['most']:.0f} MiB"
    ]
    for name, one in found["sliders"].items():
        lines.append(
            f"  {name}: {one['median']:.3f} s [{one['low']:.3f}, {one['high']:.3f}] "
            f"over {one['moves']} moves; seen after {one['seen']:.3f} s"
        )
    return "\n".join(lines)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--small", action="store_true", help="four hundred points")
    parser.add_argument("--moves", type=int, default=25)
    parser.add_argument("--store", type=Path, help="a published store that is there")
    given = parser.parse_args()
    points = million.FEW if given.small else million.MILLION
    print(on(machine()))
    if given.store:
        print(shown(str(given.store), 0, measure(given.store, given.moves)))
        return
    for shape in given.shapes or SHAPES:
        with tempfile.TemporaryDirectory() as name:
            store = made(shape, points, Path(name))
            print(shown(shape, points, measure(store, given.moves)), flush=True)


if __name__ == "__main__":
    main()
