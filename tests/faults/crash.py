"""kill -9 before one of the operations on files of a run: planning, computing, publishing.

A run in one process makes the same operations each time, so that the moment is exact. Each trial is
a fork of a process that has everything loaded: FOLDER OPERATION... prints a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hdica.study.study import study_from
from tests.faults import trouble
from tests.faults.bench import ROOT, SERIAL, Bench, content
from tests.faults.moments import SEED, Outcome, fraction

NAME = "file"
STUDY = content(
    sleep=0.0, methods={"walk": {"n": [10], "seeds": 6}, "profile": {}, "line": {}, "steady": {}}
)
BLOCK = 5
CHANGES = frozenset({"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"})
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def changes(folder: str, event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an event of the interpreter is a change of files in a folder."""
    if event == "open":
        path, _, flags = arguments
        return str(path).startswith(folder) and bool(flags & WRITES)
    return event in CHANGES and str(arguments[0]).startswith(folder)


def counted(folder: Path, last: int) -> Callable[[], int]:
    """Count the changes in a folder, and die before one of them."""
    lock, seen = threading.Lock(), [0]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if changes(str(folder), event, arguments):
            with lock:
                seen[0] += 1
                if seen[0] == last:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    return lambda: seen[0]


def forked(work: Callable[[], int]) -> int:
    """Exit status of a fork that does some work, negative for a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def compute(bench: Bench) -> int:
    """The whole run, in this process."""
    from hdica.run.runner import run
    from hdica.store.publish import publish

    study = study_from(STUDY)
    if not run(study, bench.out, progress=False, cluster=SERIAL, block=BLOCK).complete:
        return 1
    publish(study, bench.out)
    return 0


def compute_and_replace(bench: Bench) -> int:
    """The whole run, and two publications more: the last removes the version of the first."""
    from hdica.store.publish import publish

    code = compute(bench)
    for title in ("Another title", "Yet another one"):
        publish(study_from({**STUDY, "title": title}), bench.out)
    return code


def check(bench: Bench) -> int:
    """What must hold after the kill, and after the run that follows it."""
    bench.undamaged()
    assert compute(bench) == 0
    bench.whole()
    return 0


def one(folder: Path, last: int) -> bool:
    """One trial; whether the run was killed."""
    folder.mkdir(parents=True)
    bench = Bench(folder, STUDY)

    def disturbed() -> int:
        counted(folder, last)
        return compute_and_replace(bench)

    code = forked(disturbed)
    assert code in (0, -signal.SIGKILL), code
    assert forked(lambda: check(bench)) == 0
    return code != 0


def count(folder: Path) -> int:
    """How many changes of files a run makes."""
    folder.mkdir(parents=True)
    bench = Bench(folder, STUDY)

    def undisturbed() -> int:
        seen = counted(folder, 0)
        code = compute_and_replace(bench)
        (folder / "count.txt").write_text(str(seen()))
        return code

    assert forked(undisturbed) == 0
    return int((folder / "count.txt").read_text())


class Crash:
    """Trials in a process of their own, which forks."""

    name = NAME

    def __init__(self, folder: Path, seed: int = SEED) -> None:
        self.folder, self.seed = folder, seed
        self.total = 0

    def _ask(self, *arguments: str) -> list[Any]:
        command = [sys.executable, "-m", "tests.faults.crash", str(self.folder), *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def count(self) -> int:
        """How many changes of files a run makes."""
        self.total = self.total or int(self._ask()[0])
        return self.total

    def killed(self, operations: list[int]) -> list[bool]:
        """Whether runs were killed before some of them; all that must hold holds."""
        return [bool(hit) for hit in self._ask(*map(str, operations))]

    def trial(self, moment: int) -> Outcome:
        operation = 1 + int(fraction(self.name, moment, self.seed)[0] * self.count())
        began = time.monotonic()
        hit = self.killed([operation])[0]
        return Outcome(hit, not hit, time.monotonic() - began)

    def close(self) -> None:
        """Nothing is left."""


def main(folder: str, *operations: str) -> None:
    trouble.register()
    place = Path(folder).resolve()
    if not operations:
        print(json.dumps(count(place / "count")), flush=True)
    for operation in operations:
        # At once: the next trial forks, and its children would print what is not printed yet.
        print(json.dumps(one(place / operation, int(operation))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
