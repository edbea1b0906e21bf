"""A Dask scheduler and workers as somebody would start them, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.faults.bench import Bench, begin, kill, session, wait_for


@dataclass
class Cluster:
    """One scheduler, and workers that each have a nanny.

    Parameters
    ----------
    bench
        Whose environment the processes have.
    workers
        How many of them there are to be.
    """

    bench: Bench
    workers: int = 2
    scheduler: subprocess.Popen[bytes] | None = None
    nannies: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.bench.folder / "scheduler.json"

    @property
    def settings(self) -> dict[str, Any]:
        return {"scheduler_file": str(self.file)}

    def replenish(self) -> Cluster:
        """Start whatever is missing, and wait for the scheduler."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            self.file.unlink(missing_ok=True)
            self.scheduler = self._start("scheduler", "--port", "0")
        self.nannies = [one for one in self.nannies if one.poll() is None]
        while len(self.nannies) < self.workers:
            self.nannies.append(self._start("worker", "--nworkers", "1", "--nthreads", "1"))
        wait_for(self.file.exists, "the scheduler")
        return self

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file)]
        where = ["--host", "127.0.0.1", "--no-dashboard"]
        said = self.bench.folder / f"{kind}.txt"
        return begin([*command, *where, *arguments], said, self.bench.environment())

    def family(self) -> list[psutil.Process]:
        """Every living process."""
        leaders = [one for one in (self.scheduler, *self.nannies) if one is not None]
        return [process for one in leaders for process in session(one.pid)]

    def __enter__(self) -> Cluster:
        return self.replenish()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill everything."""
        for process in self.family():
            kill(process)
        for one in (self.scheduler, *self.nannies):
            if one is not None:
                with suppress(subprocess.TimeoutExpired):
                    one.wait(10)
        self.scheduler, self.nannies = None, []
