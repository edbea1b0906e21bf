"""What does a study of a million points cost beside its points: to plan, to resume, to ask?

The points are short chains, because what is measured does not depend on how long a point takes.
They are spread in different ways: over a thousand cells with a thousand seeds each, over a million
cells with one seed, over a million values of one parameter, over several methods and dimensions,
and over two constants of a formula, whose cells all lie in one field of the system.

Every command runs as a user would run it, in a process of its own: wall time, processor time and
most memory of that process, imports included. Inside Python are measured what a run decides before
its first block, and queries of one slice. Where other programs run, processor times say more.

Run: python -m benchmarks.scale million [--small] [--write]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.table import number

ROOT = Path(__file__).parents[1]
MILLION, FEW = 10**6, 400
N, TIMES = 50, {"start": 0, "stop": 1, "num": 5}

Content = Callable[[int], dict[str, Any]]


def _study(grid: dict[str, Any], methods: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "study": "many",
        "title": "short chains",
        "system": "OnlineICA",
        "parameters": {"source": "rademacher", **more},
        "grid": grid,
        "times": TIMES,
        "methods": methods,
    }


def _tau(count: int) -> dict[str, Any]:
    return {"start": 0.01, "stop": 0.1, "num": count}


def _q0(count: int) -> dict[str, Any]:
    return {"start": 0.0, "stop": 0.9, "num": count}


def _root(points: float) -> int:
    return max(2, round(points**0.5))


def seeds(points: int) -> dict[str, Any]:
    """As many seeds as cells."""
    count = _root(points)
    side = max(2, round(count**0.5 * 0.8))
    grid = {"tau": _tau(side), "Q0": _q0(max(2, round(count / side)))}
    return _study(grid, {"chain": {"n": N, "seeds": count}})


def cells(points: int) -> dict[str, Any]:
    """One seed a cell, over two parameters."""
    side = _root(points)
    return _study({"tau": _tau(side), "Q0": _q0(side)}, {"chain": {"n": N, "seeds": 1}})


def axis(points: int) -> dict[str, Any]:
    """One seed a cell, over one parameter."""
    return _study({"tau": _tau(points)}, {"chain": {"n": N, "seeds": 1}})


def several(points: int) -> dict[str, Any]:
    """Three methods, four dimensions and, for a million, 25 seeds."""
    side = max(2, round((points / 101) ** 0.5))
    where = {"n": [N, 2 * N, 4 * N, 8 * N], "seeds": max(1, round((points / side**2 - 1) / 4))}
    methods = {"chain": where, "ode": {}, "drift": {}}
    return _study({"tau": _tau(side), "Q0": _q0(side)}, methods)


def constants(points: int) -> dict[str, Any]:
    """One seed a cell, over two constants of the regularizer."""
    side = _root(points)
    grid = {"alpha": _q0(side), "beta": _q0(side)}
    methods = {"chain": {"n": N, "seeds": 1}}
    return _study(grid, methods, tau=0.05, regularizer="alpha*x + beta*x")


SHAPES: dict[str, tuple[Content, bool]] = {
    "10³ cells x 10³ seeds": (seeds, True),
    "10³ x 10³ cells x 1 seed": (cells, True),
    "10⁶ values of one parameter": (axis, True),
    "3 methods, 4 values of n": (several, True),
    "10³ x 10³ constants": (constants, False),
}
"""Studies, and whether they are computed: formulas of a million systems take the time of a run."""


@dataclass(frozen=True)
class Cost:
    """What a command took.

    Parameters
    ----------
    seconds
        Wall time, from the start of its process to the end.
    cpu
        Processor time of the process itself.
    mib
        Most MiB that the process had resident; 0 where it does more.
    """

    seconds: float
    cpu: float
    mib: float = 0.0


def called(arguments: list[str], folder: Path) -> Cost:
    """Run a command.

    Raises
    ------
    RuntimeError
        If it fails, with what it said.
    """
    with (folder / "printed").open("w") as printed, (folder / "said").open("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(arguments, cwd=folder, stdout=printed, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(arguments)} failed: {said.read()[-2000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def hdica(folder: Path, *arguments: str) -> Cost:
    """Run ``hdica``."""
    return called([str(Path(sys.executable).parent / "hdica"), *arguments], folder)


def inside(folder: Path, what: str) -> dict[str, Any]:
    """Costs of some things that a process does after its imports."""
    command = [sys.executable, "-m", "benchmarks.million", str(folder), what]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Clock:
    """Costs by name of what was done between two calls."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}
        self.last = time.perf_counter(), time.process_time()

    def __call__(self, name: str) -> None:
        """Give what was done since the last call to a name."""
        now = time.perf_counter(), time.process_time()
        self.costs[name] = Cost(now[0] - self.last[0], now[1] - self.last[1])
        self.last = time.perf_counter(), time.process_time()


def decided(folder: Path) -> dict[str, Cost]:
    """Until a run knows what it has to compute: the study is read, placed and looked up."""
    from hdica.run.plan import tasks
    from hdica.store.working import place
    from hdica.study.study import load_study

    clock = Clock()
    study = load_study(folder / "many.yaml")
    clock("load")
    tasks(place(study, folder / "many.zarr"))
    clock("decide")
    return clock.costs


def asked(folder: Path) -> dict[str, Cost]:
    """To open the results, and to open them and load one slice along each of the parameters."""
    import hdica
    from hdica.store.query import query

    clock, out = Clock(), folder / "many.zarr"
    tree = hdica.open_results(out)
    clock("open")
    sizes = {str(dim): tree["chain"][dim].size for dim in tree["chain"]["status"].dims}
    middles = {
        dim: f"{tree['chain'][dim].to_numpy()[size // 2]:.12g}"
        for dim, size in sizes.items()
        if size > 1
    }
    # Imports are no part of a slice.
    query(tree, dict(list(middles.items())[:1]), "chain", ["status"])
    for dim, middle in middles.items():
        clock("")
        query(hdica.open_results(out), {dim: middle}, "chain", ["Q"])
        clock(dim)
    del clock.costs[""]
    return clock.costs


STAGES = {
    "plan": "`hdica plan`, nothing there",
    "plan half": "`hdica plan`, half done",
    "plan whole": "`hdica plan`, all done",
    "run half": "`hdica run --shard 0/2`",
    "run rest": "`hdica run` of the other half, publishing",
    "run whole": "`hdica run`, all done",
    "status": "`hdica status`",
    "query": "`hdica query --sel`, one slice as csv",
    "verify": "`hdica verify`",
}
"""Commands of which seconds and memory are kept, and what a reader should know of them."""


def shape(given: dict[str, Any], computed: bool) -> dict[str, Any]:
    """Every cost of one study, and the sizes of its stores."""
    from hdica.study.study import point_count, study_from

    found: dict[str, Any] = {"points": point_count(study_from(given))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "many.yaml").write_text(json.dumps(given))
        study, quiet = ("many.yaml", "--out", "many.zarr"), ("--workers", "2", "--quiet")

        def clocked(stage: str, *arguments: str) -> None:
            found[stage] = asdict(hdica(folder, *arguments))

        clocked("plan", "plan", *study)
        if not computed:
            found["fresh"] = inside(folder, "decided")
            return found
        clocked("run half", "run", *study, *quiet, "--shard", "0/2")
        clocked("plan half", "plan", *study)
        found["half"] = inside(folder, "decided")
        clocked("run rest", "run", *study, *quiet)
        clocked("plan whole", "plan", *study)
        clocked("run whole", "run", *study, *quiet)
        found["whole"] = inside(folder, "decided")
        clocked("status", "status", "many.zarr")
        found["slices"] = inside(folder, "asked")
        dim, values = list(given["grid"].items())[-1]
        select = ("--method", "chain", "--sel", f"{dim}={values['start']:g}")
        clocked("query", "query", "many.zarr", *select, "--to", "csv")
        clocked("verify", "verify", "many.zarr")
        found["working"] = _size(folder / "many.work")
        found["published"] = _size(folder / "many.zarr")
    return found


def _size(folder: Path) -> dict[str, int]:
    """Files, folders and bytes."""
    files = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    folders = sum(len(inner) for _, inner, _ in os.walk(folder))
    size = sum(file.stat().st_size for file in files)
    return {"files": len(files), "folders": folders, "bytes": size}


def measure(small: bool = False) -> dict[str, Any]:
    """Every shape; two of them for a look."""
    if small:
        name = "10³ x 10³ cells x 1 seed"
        return {name: shape(cells(FEW), True), "10³ x 10³ constants": shape(constants(FEW), False)}
    return {name: shape(of(MILLION), computed) for name, (of, computed) in SHAPES.items()}


def tables(found: dict[str, Any]) -> list[str]:
    """What was measured, in Markdown."""
    rows: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("points", lambda one: str(one["points"])),
        *((what, partial(_cost, stage)) for stage, what in STAGES.items()),
        ("read and check the study, in Python", partial(_first, "load", ("half", "fresh"))),
        ("what to compute, nothing there", partial(_first, "decide", ("fresh",))),
        ("what to compute, half done", partial(_first, "decide", ("half",))),
        ("what to compute, all done", partial(_first, "decide", ("whole",))),
        ("open the results", partial(_first, "open", ("slices",))),
        ("one slice along the slowest parameter", _slowest),
        ("working store", partial(_stored, "working")),
        ("published store", partial(_stored, "published")),
    ]
    lines = [f"| | {' | '.join(found)} |", f"|---|{'---:|' * len(found)}"]
    return [*lines, *(f"| {what} | {' | '.join(map(of, found.values()))} |" for what, of in rows)]


def _told(cost: dict[str, float] | None) -> str:
    if cost is None:
        return ""
    memory = f", {cost['mib']:.0f} MiB" if cost["mib"] else ""
    return f"{number(cost['seconds'])} s ({number(cost['cpu'])} s){memory}"


def _cost(stage: str, one: dict[str, Any]) -> str:
    return _told(one.get(stage))


def _first(key: str, parts: tuple[str, ...], one: dict[str, Any]) -> str:
    return _told(next((one[part][key] for part in parts if part in one), None))


def _slowest(one: dict[str, Any]) -> str:
    costs = {dim: cost for dim, cost in one.get("slices", {}).items() if dim != "open"}
    dim = max(costs, key=lambda name: costs[name]["seconds"], default="")
    return f"{_told(costs[dim])}, {dim}" if dim else ""


def _stored(which: str, one: dict[str, Any]) -> str:
    size = one.get(which)
    return f"{size['files']} files, {size['bytes'] / 1e6:.0f} MB" if size else ""


def main() -> None:
    """Print what is asked for as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=("decided", "asked"))
    args = parser.parse_args()
    found = {"decided": decided, "asked": asked}[args.what](args.folder)
    print(json.dumps({name: asdict(cost) for name, cost in found.items()}))


if __name__ == "__main__":
    main()
