"""Does a run take as long as ``hdica plan`` says?

Every study is planned and then run in a process of its own, as a user would run it. Printed are the
seconds that the plan said, those that came from the start of the command to its end, and for every
method the time of the processor that its points took over what its cost model says. Of functions
that are not compiled yet a plan knows nothing: the second call measures what it says.

Run: python -m benchmarks.waiting [STUDY ...] [--workers N]
     (the studies of config/config.yaml by default: three minutes on two cores)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.machine import machine
from benchmarks.table import on

ROOT = Path(__file__).parents[1]
HDICA = (sys.executable, "-c", "from hdica.cli import main; main()")


@dataclass(frozen=True)
class Waited:
    """One study: what was said of it, and what came.

    Parameters
    ----------
    study
        Its name.
    said, came
        Seconds.
    methods
        By method and n: seconds of the processor that the cost model says of all its points, and
        that they took.
    """

    study: str
    said: float
    came: float
    methods: dict[str, tuple[float, float]]


def waited(study: Path, workers: int) -> Waited:
    """Plan and run one study in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HDICA_DATA": str(ROOT / "data")}
        out = Path(folder, "out.zarr")
        asked = (str(study), "--out", str(out), "--workers", str(workers))
        plan = json.loads(_called("plan", *asked, "--json", environment=environment))
        began = time.perf_counter()
        _called("run", *asked, "--quiet", environment=environment)
        came = time.perf_counter() - began
        return Waited(study.stem, plan["wait"], came, _methods(plan, out))


def _called(command: str, *given: str, environment: dict[str, str]) -> str:
    return subprocess.run(
        [*HDICA, command, *given],
        env=environment,
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def _methods(plan: dict[str, object], out: Path) -> dict[str, tuple[float, float]]:
    from hdica import open_results

    found: dict[str, tuple[float, float]] = {}
    segments = plan["segments"]
    assert isinstance(segments, list)
    with open_results(out) as tree:
        for one in segments:
            took = tree[one["method"]]["cpu_seconds"]
            if "n" in took.dims:
                took = took.sel(n=one["n"])
            name = one["method"] + (f", n = {one['n']}" if one["n"] else "")
            found[name] = one["seconds"], float(took.sum())
    return found


def shown(one: Waited) -> str:
    """What was measured, a line a method."""
    lines = [
        f"{one.study}: said {one.said:.1f} s, came {one.came:.1f} s, "
        f"ratio {one.came / one.said:.2f}"
    ]
    for name, (said, took) in one.methods.items():
        lines.append(f"  {name}: cost {said:.3g} s, took {took:.3g} s, ratio {took / said:.2f}")
    return "\n".join(lines)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    named = yaml.safe_load((ROOT / "config/config.yaml").read_text())["studies"]
    print(on(machine()))
    for study in given.studies or [ROOT / f"config/studies/{name}.yaml" for name in named]:
        print(shown(waited(study, given.workers)), flush=True)


if __name__ == "__main__":
    main()
