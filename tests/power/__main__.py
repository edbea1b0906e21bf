"""The campaign of power losses: ``python -m tests.power --operations 2000``.

Runs are recorded until there are so many operations on files. For every moment between two of them,
and every variant of what a disk may hold then, points that were committed and stores that were
published have to be there, and the same command again has to end well.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.power.phases import SCENARIOS
from tests.power.place import fresh_folder
from tests.power.recordings import Session, begin, kept
from tests.power.suite import prepared, suite, swept
from tests.power.tables import kinds, table
from tests.power.trace import why_not
from tests.power.variants import VARIANTS, every

SEED = 20261121
SIZES = range(6, 100, 2)
"""Seeds a cell, in one round of recordings after the other."""
ALWAYS = ("alone", "together")
"""Scenarios that are recorded however few operations are asked for."""


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def sessions(operations: int, only: list[str], folder: Path) -> Iterator[Session]:
    """Recordings, until they have so many operations."""
    total = 0
    wanted = only or SCENARIOS
    for size in SIZES:
        for scenario in wanted:
            needed = size == SIZES[0] and scenario in (only or ALWAYS)
            if total >= operations and not needed:
                continue
            began = time.monotonic()
            session = begin(scenario, size, folder / f"{scenario}-{size}").ended()
            total += len(session.recording.operations)
            tell(f"{session.counts} in {time.monotonic() - began:.0f} s")
            yield session


def campaign(asked: argparse.Namespace, folder: Path) -> int:
    """Every power loss of every recording."""
    began = time.monotonic()
    place = asked.keep or folder / "recordings"
    known = kept(place) if place.exists() else []
    found = known or list(sessions(asked.operations, asked.only or [], place))
    prepared(found[0].phases[0], folder / "first")
    sweeps = []
    for number, session in enumerate(found):
        variants = tuple(asked.variant or VARIANTS)
        crashes = partial(every, draws=asked.draws, variants=variants)
        sweep = swept(session, folder / f"reference-{number}", asked.seed, crashes)
        chosen = sweep.chosen(asked.states, asked.moment)
        tell(f"{session.name}: {len(chosen)} of {len(sweep.states)} states are checked")
        sweep.check(chosen, folder / f"jobs-{number}", asked.jobs)
        sweeps.append(sweep)
    print(table(sweeps))
    operations = sum(len(session.recording.operations) for session in found)
    print(f"{operations} operations, {operations + len(found)} moments between them:")
    for session in found:
        print(session.counts)
    print(f"{time.monotonic() - began:.0f} s, seed {asked.seed}, {asked.jobs} at a time")
    wrong = kinds(sweeps)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.power")
    parser.add_argument("--operations", type=int, default=2000, help="at least, to be recorded")
    parser.add_argument(
        "--only", action="append", choices=tuple(SCENARIOS), help="this scenario (repeatable)"
    )
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="(repeatable)")
    parser.add_argument("--draws", type=int, default=1, help="of each variant left to chance")
    parser.add_argument("--states", type=int, help="check so many of each recording only")
    parser.add_argument("--moment", type=int, help="check what is left at this one only")
    parser.add_argument("--jobs", type=int, default=2, help="checks at the same time")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--keep", type=Path, help="folder for recordings; those in it are taken")
    parser.add_argument("--suite", action="store_true", help="in small, as the test suite does it")
    asked = parser.parse_args()
    if why_not():
        parser.error(why_not())
    folder = fresh_folder()
    try:
        if asked.suite:
            return suite(asked.states or 40, asked.seed, asked.jobs, folder)
        return campaign(asked, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main())
