"""How much of hdica does one point meet, from YAML to disk? ``python -m benchmarks.one_point``.

A study of one point is loaded and run by ``Study.run``, after the same in another store, so that
nothing is imported or compiled. Counted are the modules of hdica of which a function was called,
the functions, and the calls, those of the process that computes the point too.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
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


def counted(study: Path, calls: Path) -> Counter[tuple[str, str]]:
    """Calls of each function, as (module, name), in every process of a run of the study."""
    import hdica

    # Imports and compiles all that the second run needs.
    hdica.Study.load(study).run(out=study.with_name("before.zarr"))
    watch(calls)
    hdica.Study.load(study).run(out=study.with_name("counted.zarr"))
    sys.setprofile(None)
    lines = (line.split("\t") for line in calls.read_text().splitlines())
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
    with tempfile.TemporaryDirectory() as made:
        study = Path(made) / "one.yaml"
        study.write_text(STUDY)
        calls = counted(study, Path(made) / "calls")
    by_room = Counter(".".join(module.split(".")[:2]) for module in {m for m, _ in calls})
    modules = sum(by_room.values())
    print(f"{modules} modules, {len(calls)} functions, {sum(calls.values())} calls")
    print(", ".join(f"{room} {count}" for room, count in by_room.most_common()))
    if "--all" in sys.argv:
        for (module, name), count in sorted(calls.items()):
            print(f"{count:6} {module}.{name}")


if __name__ == "__main__":
    main()
