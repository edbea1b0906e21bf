"""A process that has loaded everything a run needs, and forks one that runs whenever it is asked.

To load it anew costs a run of these tests more than all the rest. A fork is a driver like any
other: it leads a session of its own, with an environment of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOADED = (
    "distributed",
    "hdica.cli",
    "hdica.store.publish",
    "hdica.run.runner",
    "tests.faults.kernels",
    "tests.sweep.toy",
)


@dataclass
class Forked:
    """A fork, with what is needed of :class:`subprocess.Popen`."""

    nursery: Nursery
    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.nursery.ask({"pid": self.pid})
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.03)
        return code


@dataclass
class Nursery:
    """The process that forks; it ends with the one that has started it."""

    process: subprocess.Popen[str] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: dict[str, Any]) -> Any:
        with self.lock:
            if self.process is None:
                command = [sys.executable, "-m", "tests.faults.nursery"]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
                self.process = subprocess.Popen(command, cwd=ROOT, **pipes)
                atexit.register(self.close)
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def run(self, arguments: list[str], said: Path, environment: dict[str, str]) -> Forked:
        """Begin ``hdica run``; what it says goes to a file."""
        asked = {"arguments": arguments, "said": str(said), "environment": environment}
        return Forked(self, self.ask(asked))

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(10)


NURSERY = Nursery()


def load() -> None:
    """Import what a run imports; nothing of it may start a thread."""
    for name in LOADED:
        import_module(name)
    assert threading.active_count() == 1


def become(asked: dict[str, Any]) -> int:
    """The fork: a process as if it had been started for this."""
    import dask

    from hdica.cli import call
    from tests.faults import trouble

    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open(asked["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for number, file in enumerate((nothing, said, said)):
        os.dup2(file, number)
    # As on a terminal: what a shell starts in the background ignores it from birth.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["environment"])
    tempfile.tempdir = None  # or its place would be that of the nursery
    dask.config.refresh()
    trouble.register()
    return call(["run", *asked["arguments"]])


def ended(pid: int) -> int | None:
    """Exit status of a fork, None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def main() -> None:
    load()
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if "pid" in asked:
            answer = ended(asked["pid"])
        else:
            answer = os.fork()
            if not answer:
                sys.exit(become(asked))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
