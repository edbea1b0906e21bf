"""How long does it take to compile what a method computes with, once a machine?

Every method of every system that comes with hdica computes a small study of its own, in a process
of its own and with an empty cache. Counted are the compilations that do not happen within another
one, each under the module of its function; what numba compiles of itself belongs to the function
that needs it. Times are those of the processor, to which a busy machine does less than to those of
the clock. ``hdica plan`` reads them, see :mod:`hdica.systems.compiling`.

Run: python -m benchmarks.compiling [SYSTEM ...] [--write]   (ten minutes)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHORTEST = 0.05
"""Seconds below which a module is left out."""


def seconds_of(system: str, method: str) -> dict[str, float]:
    """Seconds by module that a small study of one method compiles, in this process."""
    from numba.core import event

    from hdica.sweep.run.runner import run

    found: dict[str, float] = {}
    begun: list[tuple[float, str]] = []

    class Timed(event.Listener):
        def on_start(self, said: Any) -> None:
            begun.append((time.thread_time(), said.data["dispatcher"].py_func.__module__))

        def on_end(self, said: Any) -> None:
            since, module = begun.pop()
            if not begun and module.startswith("hdica."):
                found[module] = found.get(module, 0.0) + time.thread_time() - since

    event.register("numba:compile", Timed())
    with tempfile.TemporaryDirectory() as folder:
        for k, study in enumerate(studies(system, method)):
            run(study, Path(folder, f"{k}.zarr"), progress=False)
    return {module: round(value, 2) for module, value in found.items() if value >= SHORTEST}


def studies(system: str, method: str) -> Iterator[Any]:
    """A small study of each example of a system to which a method applies."""
    from hdica.sweep.study.study import study_from
    from hdica.systems.registry import system_named

    record = system_named(system)
    (one,) = (m for m in record.methods if m.name == method)
    settings: dict[str, Any] = {}
    if one.takes_n:
        settings["n"] = [50, 100]
    if one.stochastic:
        settings["seeds"] = 3
    for given in record.examples:
        if not one.refuses(record.parameters(**dict(given))):
            yield study_from(
                {
                    "study": "compiling", "title": "Compiling", "system": system,
                    "parameters": dict(given), "times": [0, 0.5, 2],
                    "methods": {method: settings},
                }
            )  # fmt: skip
            return


def measured(system: str, method: str) -> dict[str, float]:
    """The same in a new process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.compiling", system, "--method", method],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure the methods of some systems, or of all, and print or keep the times."""
    from hdica.systems.compiling import place
    from hdica.systems.registry import systems

    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiling", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SYSTEM")
    parser.add_argument("--method", help="in this process, and nothing else")
    parser.add_argument("--write", action="store_true", help="beside the systems' records")
    given = parser.parse_args()
    if given.method:
        print(json.dumps(seconds_of(given.names[0], given.method)))
        return
    for name in given.names or systems():
        record = systems()[name]
        times = {one.name: measured(name, one.name) for one in record.methods}
        print(name, json.dumps(times, indent=1), flush=True)
        if given.write:
            place(record.parameters).write_text(json.dumps(times, indent=1) + "\n")


if __name__ == "__main__":
    main()
