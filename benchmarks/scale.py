"""The measurements behind ``docs/scale.md``, and its tables.

Run: python -m benchmarks.scale [account|million|scheduler ...] [--small] [--write]
     (account: 17 minutes, or two with --points 10000; million: a quarter of an hour;
     scheduler: five minutes)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import account, million, scheduler
from benchmarks.machine import machine
from benchmarks.table import on

ROOT = Path(__file__).parents[1]
PACKAGES = ("numpy", "xarray", "zarr", "distributed")
TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "account": account.tables,
    "million": million.tables,
    "scheduler": scheduler.tables,
}


def here() -> dict[str, Any]:
    """The machine, with the packages that matter here."""
    found = machine()
    python = found["versions"]["Python"]  # type: ignore[index]
    return {**found, "versions": {"Python": python, **{name: version(name) for name in PACKAGES}}}


def measured(name: str, small: bool, points: int) -> dict[str, Any]:
    """What one measurement found, and where."""
    few = {"points": 200, "last": 1.0, "bare": 2} if small else {"points": points}
    measurements = {
        "account": partial(account.measure, **few),
        "million": partial(million.measure, small),
        "scheduler": partial(scheduler.measure, small),
    }
    return {"machine": here(), "found": measurements[name]()}


def section(name: str, entry: dict[str, Any]) -> str:
    """One table with the machine below it, in Markdown."""
    return "\n".join([*TABLES[name](entry["found"]), "", f"{on(entry['machine'])}."])


def with_tables(text: str, results: dict[str, Any]) -> str:
    """The text with every table that was measured between its markers.

    Raises
    ------
    ValueError
        If the text has not exactly one pair of markers for one of them.
    """
    for name, entry in results.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if text.count(start) != 1 or text.count(end) != 1 or text.index(end) < text.index(start):
            raise ValueError(f"the text has not exactly one pair {start} ... {end}")
        before, rest = text.split(start)
        text = f"{before}{start}\n{section(name, entry)}\n{end}{rest.split(end)[1]}"
    return text


def write(name: str, entry: dict[str, Any], root: Path = ROOT) -> None:
    """Put one measurement into ``benchmarks/scale.json`` and into the page."""
    path, page = root / "benchmarks/scale.json", root / "docs/scale.md"
    found = json.loads(path.read_text()) if path.exists() else {}
    found[name] = entry
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    page.write_text(with_tables(page.read_text(), found))


def main(arguments: list[str] | None = None, root: Path = ROOT) -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--points", type=int, default=10**5, help="of the study of vectors")
    parser.add_argument(
        "--write", action="store_true", help="into benchmarks/scale.json and docs/scale.md"
    )
    args = parser.parse_args(arguments)
    unknown = [name for name in args.names if name not in TABLES]
    if unknown:
        parser.error(f"no measurement {', '.join(unknown)} (there are {', '.join(TABLES)})")
    for name in args.names or TABLES:
        entry = measured(name, args.small, args.points)
        print(f"{name}\n\n{section(name, entry)}\n", flush=True)
        if args.write:
            write(name, entry, root)


if __name__ == "__main__":
    main()
