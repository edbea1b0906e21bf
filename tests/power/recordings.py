"""Recordings of runs, with what each of their commands makes undisturbed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.faults.nursery import ROOT
from tests.power import marks
from tests.power.driver import PHASES
from tests.power.operations import Recording
from tests.power.phases import SCENARIOS, SMALL, Phase, read, written
from tests.power.record import operations_in
from tests.power.trace import strace, trace_lines

DISK, FILES, TRACE = "disk", "files", "trace.txt"
MARKS, PLACE = "marks.txt", "place.json"
"""Files of a recording: what was said, and where it was made."""
LONGEST = 600
"""Seconds that a recording may take."""


@dataclass(frozen=True)
class Session:
    """Commands that were recorded.

    Parameters
    ----------
    name
        Of the scenario, with its size.
    phases
        The commands.
    recording
        What they did to files.
    """

    name: str
    phases: tuple[Phase, ...]
    recording: Recording

    @property
    def counts(self) -> str:
        """How many operations of which kind."""
        found = Counter(type(one).__name__.lower() for one in self.recording.operations)
        parts = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
        return f"{self.name} {len(self.recording.operations)} ({parts})"


@dataclass(frozen=True)
class Started:
    """A recording that goes on.

    Parameters
    ----------
    name
        Of the session.
    phases
        The commands.
    folder
        Where its files lie.
    process
        What is recorded.
    """

    name: str
    phases: tuple[Phase, ...]
    folder: Path
    process: subprocess.Popen[bytes]

    def ended(self) -> Session:
        """Wait for its end, and read it."""
        code = self.process.wait(LONGEST)
        assert code == 0, f"{self.name}: the recorded run ended with {code}"
        return replayed(self.folder, self.name)


def begin(scenario: str, seeds: int, folder: Path) -> Started:
    """Begin to record one scenario.

    Parameters
    ----------
    scenario
        One of :data:`tests.power.phases.SCENARIOS`.
    seeds
        Points a cell: its size.
    folder
        For its files; it may not exist yet.
    """
    files = folder / FILES
    files.mkdir(parents=True)
    (folder / DISK).mkdir()
    phases = {**SCENARIOS, **SMALL}[scenario](seeds)
    (files / PHASES).write_text(written(phases))
    (files / PLACE).write_text(json.dumps(str(folder.resolve())))
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DASK_DISTRIBUTED__WORKER__PRELOAD": '["tests.power.preload"]',
        "DASK_TEMPORARY_DIRECTORY": str(folder / "scratch"),
        marks.FILE: str(files / MARKS),
        "HDICA_SYNC": "on",
    }
    command = [sys.executable, "-m", "tests.power.driver", str(folder / DISK), str(files)]
    process = strace(command, folder / TRACE, ROOT, environment)
    return Started(f"{scenario}-{seeds}", phases, folder, process)


def replayed(folder: Path, name: str) -> Session:
    """A session from the files of its recording, wherever they lie now."""
    files = folder / FILES
    phases = read((files / PHASES).read_text())
    place = Path(json.loads((files / PLACE).read_text()))
    lines = trace_lines(folder / TRACE)
    found = operations_in(lines, str(place / DISK), str(place / FILES / MARKS), str(ROOT))
    ended = [mark for mark in found.marks if "ended" in mark.said]
    assert len(ended) == len(phases), ended
    return Session(name, phases, found)


def kept(folder: Path) -> list[Session]:
    """All sessions whose recordings lie in a folder."""
    return [replayed(path, path.name) for path in sorted(folder.iterdir())]
