"""The campaign in small, for the test suite: looks after every operation, runs after some."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

from tests.power import forks, system
from tests.power.check import Bench, again, reference
from tests.power.phases import RESULTS, SMALL, Phase
from tests.power.recordings import Session, begin
from tests.power.sweep import State, Sweep
from tests.power.variants import Crash, in_turn

SIZE = 4
"""Seeds a cell."""


def prepared(phase: Phase, folder: Path) -> None:
    """Load everything that checks need, so that forks need not."""
    system.register()
    folder.mkdir()

    def work() -> None:
        from tests.power.reading import published

        again(phase, folder / RESULTS, folder)
        published(folder / RESULTS)

    forks.load(work)
    shutil.rmtree(folder)


def swept(
    session: Session, folder: Path, seed: int, crashes: Callable[[int], Iterable[Crash]]
) -> Sweep:
    """Power losses of a session, not yet looked at."""
    references = tuple(reference(phase, folder / phase.name) for phase in session.phases)
    ended = [mark.said["code"] for mark in session.recording.marks if "ended" in mark.said]
    assert ended == [one.code for one in references], f"the recorded runs ended with {ended}"
    which = crashes(len(session.recording.operations))
    return Sweep(session, Bench(session.phases, references), seed, which)


def control(sweep: Sweep, folder: Path, jobs: int) -> tuple[int, int]:
    """Looks around whatever was said, as if nothing had been synced; how many, and how many see it.

    Data are lost then whatever else is done.
    """
    session = replace(sweep.session, recording=sweep.session.recording.unsynced())
    crashes = [Crash(moment, variant) for moment in sweep.promises.turns for variant in "AB"]
    looks = Sweep(session, sweep.bench, sweep.seed, crashes).look(folder, jobs)
    return len(looks), sum(bool(state.wrong) for state in looks)


def _wrong(session: Session, states: list[State]) -> list[dict[str, object]]:
    return [
        {"session": session.name, "crash": asdict(state.last), **asdict(one)}
        for state in states
        for one in state.wrong or ()
    ]


def suite(count: int, seed: int, jobs: int, folder: Path) -> int:
    """Print what was found, as JSON.

    Parameters
    ----------
    count
        After how many power losses the next run is made.
    seed
        Decides what is left to chance.
    jobs
        How many processes share the work.
    folder
        For files.
    """
    started = [begin(name, SIZE, folder / name) for name in SMALL]
    prepared(started[0].phases[0], folder / "first")
    told: dict[str, int] = {"moments": 0, "looks": 0, "runs": 0, "control": 0, "seen": 0}
    wrong: list[dict[str, object]] = []
    for number, one in enumerate(started):
        place = folder / f"checks-{number}"
        sweep = swept(one.ended(), place / "reference", seed, in_turn)
        looks = sweep.look(place / "looks", jobs)
        runs = sweep.sample(-(-count // len(started)))
        sweep.check(runs, place / "runs", jobs, before=False)
        blind, seen = control(sweep, place / "control", jobs)
        counts = (len(sweep.session.recording.operations) + 1, len(looks), len(runs), blind, seen)
        told = {key: told[key] + value for key, value in zip(told, counts, strict=True)}
        wrong += _wrong(sweep.session, [*looks, *runs])
    print(json.dumps({**told, "wrong": wrong}))
    return 0
