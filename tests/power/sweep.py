"""Check what every power loss may leave of a recorded session, in several processes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from tests.power.check import Bench, Wrong, checked, committed, publication
from tests.power.disk import Image
from tests.power.owed import Owed, Promises
from tests.power.phases import RESULTS
from tests.power.place import put
from tests.power.recordings import Session
from tests.power.variants import Crash, digest, left

TOLD = 250
"""States after which a process says how far it is."""


WORK = str(Path(RESULTS).with_suffix(".work"))
"""Name of the working store."""


def halves(image: Image) -> tuple[Image, Image]:
    """The working store, and everything else."""
    work = {path: image[path] for path in image if path.partition("/")[0] == WORK}
    return work, {path: image[path] for path in image if path not in work}


@dataclass
class State:
    """What one or more power losses leave.

    Parameters
    ----------
    crashes
        Which ones; after the last of them the most is owed.
    wrong
        All that was found wrong; None if nobody has looked.
    """

    crashes: list[Crash] = field(default_factory=list)
    wrong: list[Wrong] | None = None

    @property
    def last(self) -> Crash:
        return self.crashes[-1]


Found = tuple[Crash, list[Wrong]]
Question = Callable[[Bench, Owed, Path], Iterator[Wrong]]


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
    crashes
        Which power losses, by their moments.
    """

    session: Session
    bench: Bench
    seed: int
    crashes: InitVar[Iterable[Crash]]
    promises: Promises = field(init=False)
    states: list[State] = field(init=False)
    works: list[State] = field(init=False)
    rests: list[State] = field(init=False)

    def __post_init__(self, crashes: Iterable[Crash]) -> None:
        self.promises = Promises(self.session.recording, self.session.phases)
        states: dict[tuple[object, ...], State] = {}
        works: dict[tuple[object, ...], State] = {}
        rests: dict[tuple[object, ...], State] = {}
        for crash, image in self.left(crashes):
            owed = self.promises.at(crash.moment)
            work, rest = digest(image, WORK)
            states.setdefault((work, rest, owed.phase), State()).crashes.append(crash)
            if owed.points:
                works.setdefault((work, owed.phase), State()).crashes.append(crash)
            if owed.published is not None:
                promise = owed.phase, owed.published, owed.publishing
                rests.setdefault((rest, *promise), State()).crashes.append(crash)
        self.states, self.works, self.rests = map(
            list, (d.values() for d in (states, works, rests))
        )

    def left(self, crashes: Iterable[Crash]) -> Iterator[tuple[Crash, Image]]:
        """What some power losses leave."""
        return left(self.session.recording.operations, crashes, self.seed)

    def last(self, states: list[State]) -> Iterator[tuple[Crash, Image, Owed]]:
        """The last power loss of each state, what it leaves and what is owed then."""
        for crash, image in self.left(sorted(state.last for state in states)):
            yield crash, image, self.promises.at(crash.moment)

    def check(self, chosen: list[State], folder: Path, jobs: int, before: bool = True) -> None:
        """Check some states before the next run and after it, each in a fork of its own."""
        self._spread(chosen, folder, jobs, partial(self._checks, before))

    def _checks(self, before: bool, mine: list[State], folder: Path) -> Iterator[Found]:
        for crash, image, owed in self.last(mine):
            yield crash, checked(self.bench, owed, image, folder / "case", before)

    def look(self, folder: Path, jobs: int) -> list[State]:
        """Look at all committed points and publications, without a next run; what was looked at."""
        self._spread(self.works, folder, jobs, partial(self._looks, 0, committed))
        self._spread(self.rests, folder, jobs, partial(self._looks, 1, publication))
        return self.works + self.rests

    def _looks(
        self, half: int, question: Question, mine: list[State], folder: Path
    ) -> Iterator[Found]:
        disk, before = folder / "disk", None
        for crash, image, owed in self.last(mine):
            part = halves(image)[half]
            put(part, disk, before)
            before = part
            yield crash, list(question(self.bench, owed, disk / RESULTS))

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

    def chosen(self, count: int | None, moment: int | None) -> list[State]:
        """States to check: all, some, or those of one moment."""
        if moment is not None:
            return [s for s in self.states if any(c.moment == moment for c in s.crashes)]
        return self.states if count is None else self.sample(count)

    def sample(self, count: int) -> list[State]:
        """Some states: of every variant around whatever was said, then any."""
        turns, stream = set(self.promises.turns), Random(self.seed)
        found: dict[str, list[State]] = {}
        for state in self.states:
            near = [crash.variant for crash in state.crashes if crash.moment in turns]
            if near:
                found.setdefault(near[0], []).append(state)
        chosen: list[State] = []
        for variant in sorted(found):
            some = found[variant]
            chosen += stream.sample(some, min(-(-count // len(found)), len(some)))
        others = [state for state in self.states if all(state is not one for one in chosen)]
        chosen += stream.sample(others, min(max(0, count - len(chosen)), len(others)))
        return chosen[:count]
