"""Publish two grids of a study in turns while everything that reads results reads them.

``python -m tests.sweep.republish --seconds 20`` prints how often each reader was asked, and exits
with 1 if one of them called a store damaged, mixed two publications or raised anything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hdica.report import write
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.published import Republished
from hdica.store.query import answer
from hdica.store.results import open_results, status
from hdica.store.verify import verify
from hdica.study.study import study_from
from tests.sweep import toy

ROOT = Path(__file__).parents[2]
GRIDS = ([0.2, 0.3, 0.4], [0.1, 0.2, 0.3])
"""Of one size, so that a chunk of one decodes as a chunk of the other. The last one is planned."""
OLD = "was published before the study or its code was changed"
"""What is true while the other grid is published."""


def content(taus: list[float]) -> dict[str, Any]:
    grid = {"tau": taus, "Q0": [0.25, 0.5]}
    return toy.study(
        grid=grid, parameters={}, methods={"line": {}, "walk": {"n": [10], "seeds": 2}}
    )


def computed(out: Path) -> None:
    """Both grids, computed and published once."""
    for taus in GRIDS:
        run(study_from(content(taus)), out, progress=False)
        publish(study_from(content(taus)), out)


def in_turns(out: Path, exchange: bool) -> None:
    """Publish until this process is killed; print a line for each publication.

    Without ``exchange`` as where two folders cannot take each other's name at once.
    """
    toy.register()
    if not exchange:
        from hdica.store import publish as module

        vars(module)["_exchanged"] = lambda one, other: False
    studies = [study_from(content(taus)) for taus in GRIDS]
    while True:
        for study in studies:
            publish(study, out)
            print("published", flush=True)


@contextmanager
def publishing(out: Path, exchange: bool = True) -> Iterator[Callable[[], int]]:
    """Another process that publishes in turns; how often it has, once it has ended."""
    code = "import sys; from tests.sweep import republish as r; from pathlib import Path; "
    code += "r.in_turns(Path(sys.argv[1]), sys.argv[2] == 'True')"
    said = out.parent.parent / "published.txt"
    with (
        said.open("w") as stream,
        subprocess.Popen(
            [sys.executable, "-c", code, str(out), str(exchange)], stdout=stream, cwd=ROOT
        ) as process,
    ):
        try:
            while not said.stat().st_size:
                assert process.poll() is None
                time.sleep(0.01)
            yield lambda: said.read_text().count("published")
            assert process.poll() is None, "nobody published any more"
        finally:
            process.kill()


def right(taus: list[float]) -> np.ndarray:
    starts, times = np.array([0.25, 0.5]), np.array([0, 0.5, 2])
    return starts[None, :, None] + np.array(taus)[:, None, None] * times


def _labelled(tau: Any, values: Any) -> None:
    taus = np.asarray(tau).tolist()
    assert taus in [*GRIDS], taus
    assert np.array_equal(values, right(taus)), f"values of another grid under tau = {taus}"


class Readers:
    """Everything that reads results; each gives the old ones or the new ones, or what is wrong."""

    def __init__(self, out: Path) -> None:
        self.out, self.asked, self.wrong = out, Counter[str](), list[str]()
        self.lazy: Any = None

    def verify(self) -> None:
        found = verify(self.out)
        assert not found.damaged, found.damaged
        assert not [text for text in found.incomplete if OLD not in text], found.incomplete

    def open_results(self) -> None:
        self._read(open_results(self.out)["line"])

    def a_tree_that_is_open(self) -> None:
        """Opened before some publications, read after them."""
        if self.lazy is not None:
            self._read(self.lazy)
        self.lazy = open_results(self.out)["line"]

    def _read(self, line: Any) -> None:
        """Read a tree: right, or refused if two publications came since it was opened."""
        try:
            _labelled(line.tau, line.Q.load())
        except Republished:
            self.asked["refused"] += 1

    def query(self) -> None:
        found = answer(self.out, {}, "line", ["Q"]).data
        _labelled(found.tau, found.Q)

    def status(self) -> None:
        assert status(self.out).total("pending") == 0

    def report(self) -> None:
        page = write(self.out, self.out.parent / "page")[0]
        assert "<html" in page.read_text()

    def ask(self, name: str) -> None:
        """Ask one of them, and keep what was wrong."""
        self.asked[name] += 1
        try:
            getattr(self, name)()
        except Exception:
            self.wrong.append(f"{name}: {traceback.format_exc()}")


ALL = ("verify", "open_results", "a_tree_that_is_open", "query", "status")


def looked(out: Path, seconds: float, exchange: bool, report: bool) -> tuple[Readers, int]:
    """Ask all readers in turns, at least twice; the readers, and how often was published."""
    readers = Readers(out)
    with publishing(out, exchange) as count:
        end = time.monotonic() + seconds
        while time.monotonic() < end or readers.asked["verify"] < 2:
            for name in ALL:
                readers.ask(name)
        if report:
            readers.ask("report")
        return readers, count()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    toy.register()
    wrong: list[str] = []
    for exchange in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "results" / "toy.zarr"
            computed(out)
            readers, published = looked(out, asked.seconds, exchange, True)
        told = json.dumps({"exchange": exchange, "published": published, **readers.asked})
        print(f"{told}: {len(readers.wrong)} wrong", flush=True)
        wrong += readers.wrong
    print("\n".join(wrong[:5]), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
