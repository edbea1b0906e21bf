"""The campaign of power losses: ``python -m tests.power --operations 2000``.

Runs are recorded until there are so many operations on files. For every moment between two of them,
and every variant of what a disk may hold then, points that were committed and stores that were
published have to be there, and the same command again has to end well.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.power import forks, system
from tests.power.check import POINTS, PUBLICATION, RUN, Bench, again, kind, reference
from tests.power.phases import RESULTS, SCENARIOS, Phase
from tests.power.place import fresh_folder
from tests.power.recordings import Session, kept, recorded
from tests.power.sweep import Sweep
from tests.power.variants import VARIANTS

SEED = 20261121
SIZES = range(6, 100, 2)
"""Seeds a cell, in one round of recordings after the other."""
SMALL = (("alone", 3), ("together", 3))
HEAD = ("variant", "power losses", "states", "points lost", "publication lost", "not run well")


def sessions(operations: int, folder: Path) -> Iterator[Session]:
    """Recordings, until they have so many operations and there is one of every scenario."""
    total = 0
    for size in SIZES:
        for scenario in SCENARIOS:
            if total >= operations and size > SIZES[0]:
                return
            began = time.monotonic()
            session = recorded(scenario, size, folder / f"{scenario}-{size}")
            total += len(session.recording.operations)
            tell(f"{session.name}: {session.counts} in {time.monotonic() - began:.0f} s")
            yield session


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def small(folder: Path) -> list[Session]:
    """Two recordings, made at the same time."""
    with ThreadPoolExecutor(len(SMALL)) as pool:
        made = [pool.submit(recorded, name, size, folder / name) for name, size in SMALL]
        return [one.result() for one in made]


def prepared(phase: Phase, folder: Path) -> None:
    """Load everything that checks need, and the references' code."""
    from tests.power.reading import published

    system.register()
    folder.mkdir()

    def work() -> None:
        again(phase, folder / RESULTS, folder)
        published(folder / RESULTS)

    forks.load(work)
    shutil.rmtree(folder)


def swept(session: Session, folder: Path, seed: int, draws: int) -> Sweep:
    """All power losses of a session, not yet looked at."""
    references = tuple(reference(phase, folder / phase.name) for phase in session.phases)
    return Sweep(session, Bench(session.phases, references), seed, draws)


def table(sweeps: list[Sweep]) -> str:
    """What was found, by variant; a power loss counts for itself, whatever it has in common."""
    lines = [HEAD, tuple("---" for _ in HEAD)]
    for variant in VARIANTS:
        losses, wrong, states = 0, Counter[str](), 0
        for state in (state for sweep in sweeps for state in sweep.states):
            count = sum(crash.variant == variant for crash in state.crashes)
            losses, states = losses + count, states + bool(count)
            wrong.update(dict.fromkeys({one.what for one in state.wrong}, count))
        cells = (losses, states, *(wrong[what] for what in (POINTS, PUBLICATION, RUN)))
        lines.append((variant, *map(str, cells)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def kinds(sweeps: list[Sweep]) -> list[str]:
    """What was wrong, most frequent first, each with one power loss that shows it."""
    found: dict[str, list[str]] = {}
    for sweep in sweeps:
        for state in sweep.states:
            for one in state.wrong:
                where = f"{sweep.session.name} {state.last.moment} {state.last.variant}"
                found.setdefault(kind(one.sentence), []).append(f"{where} {state.last.draw}")
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return [f"{len(cases)} states, such as {cases[0]}: {text}" for text, cases in ordered]


def campaign(asked: argparse.Namespace, folder: Path) -> int:
    """Every power loss of every recording."""
    began = time.monotonic()
    place = asked.keep or folder / "recordings"
    known = kept(place) if place.exists() else []
    found = known or list(sessions(asked.operations, place))
    prepared(found[0].phases[0], folder / "first")
    sweeps = []
    for number, session in enumerate(found):
        sweep = swept(session, folder / f"reference-{number}", asked.seed, asked.draws)
        chosen = sweep.states if asked.states is None else sweep.sample(asked.states)
        tell(f"{session.name}: {len(chosen)} of {len(sweep.states)} states are checked")
        sweep.check(chosen, folder / f"jobs-{number}", asked.jobs)
        sweeps.append(sweep)
    operations = sum(len(sweep.session.recording.operations) for sweep in sweeps)
    states = sum(len(sweep.states) for sweep in sweeps)
    print(table(sweeps))
    counts = " + ".join(sweep.session.counts for sweep in sweeps)
    print(f"{operations} operations: {counts}")
    print(f"{operations + len(sweeps)} moments, {states} states")
    print(f"{time.monotonic() - began:.0f} s, seed {asked.seed}, {asked.jobs} at a time")
    wrong = kinds(sweeps)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def suite(asked: argparse.Namespace, folder: Path) -> int:
    """Looks at every power loss of two small recordings, and runs after some, as JSON."""
    found = small(folder)
    prepared(found[0].phases[0], folder / "first")
    sweeps, looks, runs = [], 0, 0
    wrong: list[dict[str, str]] = []
    for number, session in enumerate(found):
        sweep = swept(session, folder / f"reference-{number}", asked.seed, asked.draws)
        sweep.look(folder / f"looks-{number}", asked.jobs)
        chosen = sweep.sample(asked.states)
        sweep.check(chosen, folder / f"jobs-{number}", asked.jobs, before=False)
        looks, runs = looks + len(sweep.works) + len(sweep.rests), runs + len(chosen)
        sweeps.append(sweep)
        for state in (*sweep.works, *sweep.rests, *chosen):
            where = f"{session.name} {state.last}"
            wrong += [{"where": where, **asdict(one)} for one in state.wrong]
    moments = sum(len(sweep.session.recording.operations) + 1 for sweep in sweeps)
    print(json.dumps({"moments": moments, "looks": looks, "runs": runs, "wrong": wrong}))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.power")
    parser.add_argument("--operations", type=int, default=2000, help="at least, to be recorded")
    parser.add_argument("--draws", type=int, default=1, help="of each variant left to chance")
    parser.add_argument("--states", type=int, help="check so many of each recording only")
    parser.add_argument("--jobs", type=int, default=2, help="checks at the same time")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--keep", type=Path, help="folder for recordings; those in it are taken")
    parser.add_argument("--suite", action="store_true", help="as the test suite does it")
    asked = parser.parse_args()
    folder = fresh_folder()
    try:
        return suite(asked, folder) if asked.suite else campaign(asked, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main())
