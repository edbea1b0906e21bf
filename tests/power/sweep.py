"""Check what every power loss may leave of a recorded session, in several processes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tests.power.check import Bench, Wrong, checked, committed, publication
from tests.power.disk import Image
from tests.power.owed import Promises
from tests.power.phases import RESULTS
from tests.power.place import put
from tests.power.recordings import Session
from tests.power.variants import Crash, crashes, digest

TOLD = 250
"""States after which a process says how far it is."""


def halves(image: Image) -> tuple[Image, Image]:
    """The working store, and everything else."""
    work = Path(RESULTS).with_suffix(".work").name
    first = {path: image[path] for path in image if path.partition("/")[0] == work}
    return first, {path: image[path] for path in image if path not in first}


@dataclass
class State:
    """What one or more power losses leave.

    Parameters
    ----------
    crashes
        Which ones; after the last of them the most is owed.
    wrong
        All that was found wrong.
    """

    crashes: list[Crash] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)

    @property
    def last(self) -> Crash:
        return self.crashes[-1]


Found = tuple[Crash, list[Wrong]]


@dataclass
class Sweep:
    """All power losses of a session, by what they leave and which command is given again.

    Parameters
    ----------
    session
        What was recorded.
    bench
        What its commands should make.
    seed
        Decides what is left to chance.
    draws
        How often that is drawn for each moment.
    """

    session: Session
    bench: Bench
    seed: int
    draws: int = 1
    promises: Promises = field(init=False)
    states: list[State] = field(init=False)
    works: list[State] = field(init=False)
    rests: list[State] = field(init=False)

    def __post_init__(self) -> None:
        self.promises = Promises(self.session.recording, self.session.phases)
        states: dict[tuple[object, ...], State] = {}
        works: dict[tuple[object, ...], State] = {}
        rests: dict[tuple[object, ...], State] = {}
        for crash, image in self.images():
            owed = self.promises.at(crash.moment)
            work, rest = map(digest, halves(image))
            states.setdefault((work, rest, owed.phase), State()).crashes.append(crash)
            if owed.points:
                works.setdefault((work, owed.phase), State()).crashes.append(crash)
            if owed.published is not None:
                promise = owed.phase, owed.published, owed.publishing
                rests.setdefault((rest, *promise), State()).crashes.append(crash)
        self.states, self.works, self.rests = map(
            list, (d.values() for d in (states, works, rests))
        )

    def images(self) -> Iterator[tuple[Crash, Image]]:
        """What every power loss leaves."""
        return crashes(self.session.recording.operations, self.seed, self.draws)

    def check(self, chosen: list[State], folder: Path, jobs: int, before: bool = True) -> None:
        """Check some states before the next run and after it, each in a fork of its own."""

        def work(mine: list[State], place: Path) -> Iterator[Found]:
            wanted = {state.last for state in mine}
            for crash, image in self.images():
                if crash in wanted:
                    owed = self.promises.at(crash.moment)
                    yield crash, checked(self.bench, owed, image, place / "case", before)

        self._spread(chosen, folder, jobs, work)

    def look(self, folder: Path, jobs: int) -> None:
        """Look at all committed points and publications, without a next run."""
        for half, states, question in (
            (0, self.works, committed),
            (1, self.rests, publication),
        ):

            def work(
                mine: list[State], place: Path, half=half, question=question
            ) -> Iterator[Found]:
                wanted, before = {state.last for state in mine}, None
                for crash, image in self.images():
                    if crash in wanted:
                        part = halves(image)[half]
                        put(part, place / "disk", before)
                        before, owed = part, self.promises.at(crash.moment)
                        yield crash, list(question(self.bench, owed, place / "disk" / RESULTS))

            self._spread(states, folder, jobs, work)

    def _spread(
        self,
        states: list[State],
        folder: Path,
        jobs: int,
        work: Callable[[list[State], Path], Iterator[Found]],
    ) -> None:
        """Share work among forks, and take in what they find."""
        known, children = {state.last: state for state in states}, []
        for job in range(jobs):
            place = folder / f"job-{job}"
            place.mkdir(parents=True)
            mine = states[job::jobs]
            child = os.fork()
            if not child:
                os._exit(self._write(work(mine, place), len(mine), place / "found.txt"))
            children.append((child, place))
        for child, place in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            for line in (place / "found.txt").read_text().splitlines():
                crash, wrong = json.loads(line)
                known[Crash(**crash)].wrong = [Wrong(**one) for one in wrong]
            shutil.rmtree(place)

    def _write(self, found: Iterator[Found], count: int, file: Path) -> int:
        began = time.monotonic()
        with file.open("w") as stream:
            for done, (crash, wrong) in enumerate(found, 1):
                line = [asdict(crash), [asdict(one) for one in wrong]]
                stream.write(json.dumps(line) + "\n")
                if done % TOLD == 0:
                    passed = time.monotonic() - began
                    text = f"{self.session.name}: {done} of {count} states in {passed:.0f} s"
                    print(text, file=sys.stderr, flush=True)
        return 0

    def sample(self, count: int) -> list[State]:
        """Some states: of every variant, before and after whatever was said."""
        turns, stream = set(self.promises.turns), Random(self.seed)
        found: dict[str, list[State]] = {}
        for state in self.states:
            if state.last.moment in turns:
                found.setdefault(state.last.variant, []).append(state)
        share = -(-count // max(1, len(found)))
        chosen = []
        for variant in sorted(found):
            some = found[variant]
            chosen += stream.sample(some, min(share, len(some)))
        return chosen[:count]
