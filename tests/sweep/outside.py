"""Schedulers and workers as processes of their own, for tests that connect to them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/where-it-runs.md").read_text()
STARTED = 60.0
"""Seconds for a scheduler or a worker to come."""


def wait_until(true: Callable[[], Any], what: str, seconds: float = STARTED) -> None:
    """Wait for something, but not for ever."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what} did not come within {seconds} s"
        time.sleep(0.05)


def toy_environment() -> dict[str, str]:
    """The environment of workers that know the toy system."""
    preload = {"DASK_DISTRIBUTED__WORKER__PRELOAD": '["tests.sweep.preload"]'}
    # A site may let libraries have all threads.
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "8", **preload}


def documented(word: str) -> str:
    """The first shell lines with a word in the manual on where Dask runs."""
    return next(text for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if word in text)


def make_certificates(folder: Path) -> None:
    """Run the lines of openssl of the manual."""
    lines = documented("openssl").replace("certs", shlex.quote(str(folder)))
    subprocess.run(["bash", "-e", "-c", lines], check=True, capture_output=True)


def server_lines(folder: Path) -> tuple[str, str]:
    """The manual's lines that start a scheduler and workers with the certificates in a folder."""
    first, scheduler, worker = documented("scheduler $tls").splitlines()
    (tls,) = shlex.split(first.removeprefix("tls="))
    tls = tls.replace("certs/", f"{shlex.quote(str(folder))}/")
    return scheduler.replace("$tls", tls), worker.replace("$tls", tls)


def stop(processes: Sequence[psutil.Process]) -> None:
    """End processes and their children, by their numbers."""
    family = []
    for process in processes:
        if process.is_running():
            family += [process, *process.children(recursive=True)]
    for one in family:
        one.kill()
    psutil.wait_procs(family, timeout=20)


@contextmanager
def running(folder: Path, lines: Sequence[str]) -> Iterator[list[psutil.Process]]:
    """Run lines ``dask ...``, ``python ...`` in a folder; what they say goes to ``said-0``, ..."""
    processes = []
    try:
        for number, line in enumerate(lines):
            first, *rest = shlex.split(line)
            assert first in ("dask", "python")
            with (folder / f"said-{number}").open("wb") as said:
                command = [sys.executable, *(["-m", "dask"] if first == "dask" else []), *rest]
                where = {"cwd": folder, "env": toy_environment()}
                processes.append(
                    psutil.Popen(command, stdout=said, stderr=subprocess.STDOUT, **where)
                )
        yield processes
    finally:
        stop(processes)
