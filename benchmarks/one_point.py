"""How much of hdica does one point meet? ``python -m benchmarks.one_point``.

From YAML to disk, by ``Study.run``, and in memory, by ``hdica.simulate``; each after the same was
done once, so that nothing is imported or compiled. Counted are the modules of hdica of which a
function was called, the functions, and the calls, those of the process that computes the point too.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

STUDY = """\
study: one
title: one point
system: OnlineICA
parameters: {tau: 0.1}
times: [0, 1, 10]
methods: {chain: {n: 100, seeds: 1}}
"""


def to_disk(folder: Path) -> None:
    """Load the study of one point and run it."""
    import hdica

    study = folder / "one.yaml"
    study.write_text(STUDY)
    hdica.Study.load(study).run(out=folder / f"{len(list(folder.iterdir()))}.zarr")


def in_memory(folder: Path) -> None:
    """The same point as labelled data."""
    import hdica

    hdica.simulate(hdica.OnlineICA(tau=0.1), n=100, times=[0, 1, 10])


POINTS: dict[str, Callable[[Path], None]] = {"Study.run": to_disk, "simulate": in_memory}


def counted(compute: Callable[[Path], None]) -> Counter[tuple[str, str]]:
    """Calls of each function, as (module, name), in every process that computes a point."""
    with tempfile.TemporaryDirectory() as made:
        folder, calls = Path(made), Path(made) / "calls"
        # Imports and compiles all that the second run needs.
        compute(folder)
        watch(calls)
        compute(folder)
        sys.setprofile(None)
        threading.setprofile(None)
        lines = [line.split("\t") for line in calls.read_text().splitlines()]
    return Counter((module, name) for module, name in lines)


def watch(calls: Path) -> None:
    """Write a line for every call from now on: also of threads, and of children of fork."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        module, code = frame.f_globals.get("__name__") or "", frame.f_code
        # Of names in angle brackets are comprehensions, lambdas and what dataclasses make.
        if event != "call" or not module.startswith("hdica") or code.co_name.startswith("<"):
            return
        # Opened anew each time: the process that computes closes what it inherits.
        with calls.open("a") as file:
            file.write(f"{module}\t{code.co_qualname}\n")

    threading.setprofile(note)
    sys.setprofile(note)


def main() -> None:
    """Print the counts; with ``--all`` each function too."""
    for name, compute in POINTS.items():
        calls = counted(compute)
        by_room = Counter(".".join(module.split(".")[:2]) for module in {m for m, _ in calls})
        modules = sum(by_room.values())
        print(f"{name}: {modules} modules, {len(calls)} functions, {sum(calls.values())} calls")
        print(", ".join(f"{room} {count}" for room, count in by_room.most_common()))
        if "--all" in sys.argv:
            for (module, function), count in sorted(calls.items()):
                print(f"{count:6} {module}.{function}")


if __name__ == "__main__":
    main()
