"""How long does `hdica explore` take to answer a slider, on a store of a million points?

The stores are those of :mod:`benchmarks.million`: short chains that ``hdica run`` computes and
publishes as it does any study. ``hdica explore`` runs as a user would run it, in a process of its
own, and one visitor is connected by a websocket. Every slider is moved through its values in turn;
an answer is the wall time from the new value until the sentence with the values at the point, which
the server sends together with all figures, is there and another one. What a browser then draws is
not in it. Memory is that of the server's process at the end, and the most it had.

Run: python -m benchmarks.explorer [SHAPE ...] [--small] [--moves N]
     (a million points: three minutes a shape, of which the explorer takes one)
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import million
from benchmarks.machine import machine
from benchmarks.table import on

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
    moves
        How many.
    """

    median: float
    low: float
    high: float
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


class Visitor:
    """One visitor of the explorer, without a browser."""

    def __init__(self, address: str) -> None:
        import panel as pn
        from bokeh.client import pull_session

        pn.extension()
        self.session = pull_session(url=address)
        self.document = self.session.document

    def sliders(self) -> dict[str, Any]:
        """Every slider with its name."""
        from bokeh.models import Slider

        return {one.title: one for one in self.document.select({"type": Slider})}

    def said(self) -> list[str]:
        """All that is said on the page."""
        from panel.models.markup import HTML

        return sorted(one.text for one in self.document.select({"type": HTML}))

    def answer(self, slider: Any, value: int) -> float:
        """Seconds until what is said is another thing, after a slider was moved."""
        before, began = self.said(), time.perf_counter()
        slider.value = value
        while self.said() == before:
            self.session.force_roundtrip()
            if time.perf_counter() - began > PATIENCE:
                raise RuntimeError(f"{slider.title} = {value} was not answered")
        return time.perf_counter() - began


def answers(visitor: Visitor, slider: Any, moves: int) -> Answers:
    """Answers of one slider, moved through values spread over its range, and back and forth."""
    rng = np.random.default_rng(0)
    taken: list[float] = []
    while len(taken) < moves:
        value = int(rng.integers(slider.start, slider.end + 1))
        if value != slider.value:
            taken.append(visitor.answer(slider, value))
    low, median, high = np.percentile(taken, [25, 50, 75]).tolist()
    return Answers(median, low, high, moves)


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
        began = time.perf_counter()
        visitor = Visitor(address.group())
        found: dict[str, Any] = {"start": started, "page": time.perf_counter() - began}
        found["sliders"] = {
            name: asdict(answers(visitor, slider, moves))
            for name, slider in visitor.sliders().items()
        }
        found["memory"] = {"at the start": before, **memory(server.pid)}
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
    return found


def shown(shape: str, points: int, found: dict[str, Any]) -> str:
    """What was measured, a line a slider."""
    size = found["memory"]
    lines = [
        f"{shape}: {points} points; address after {found['start']:.1f} s, "
        f"page {found['page']:.2f} s; "
        f"server {size['at the start']:.0f} MiB before a visitor, {size['now']:.0f} MiB after, "
        f"at most {size['most']:.0f} MiB"
    ]
    for name, one in found["sliders"].items():
        lines.append(
            f"  {name}: {one['median']:.3f} s [{one['low']:.3f}, {one['high']:.3f}] "
            f"over {one['moves']} moves"
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
