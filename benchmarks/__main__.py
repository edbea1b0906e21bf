"""``python -m benchmarks [NAME ...] [--small] [--repeats N] [--write] [--pages]``."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks import REGISTRY
from benchmarks.results import merge, read, write_pages
from benchmarks.table import plain

ROOT = Path(__file__).parents[1]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> None:
    """Run the named benchmarks, or all, and print their rows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=main.__doc__, epilog="\n".join(REGISTRY)
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(REGISTRY))
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--write", action="store_true", help="into benchmarks/results.json and the pages"
    )
    parser.add_argument(
        "--pages", action="store_true", help="the pages of benchmarks/results.json, nothing timed"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in REGISTRY]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)} (there are {', '.join(REGISTRY)})")
    results = root / "benchmarks/results.json"
    for name in () if given.pages else given.names or REGISTRY:
        rows = import_module(f"benchmarks.{name}").rows(small=given.small, repeats=given.repeats)
        print(plain(rows), flush=True)
        if given.write:
            merge(results, name, rows)
    if given.write or given.pages:
        write_pages(root, read(results))


if __name__ == "__main__":
    main()
