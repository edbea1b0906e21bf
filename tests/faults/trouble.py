"""The toy system in trouble: while a file says so, points at one step size misbehave."""

from __future__ import annotations

import ctypes
import errno
import importlib
import math
import os
import py_compile
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hdica.run import worker
from hdica.systems.method import Together
from tests.sweep import toy

VARIABLE = "TOY_TROUBLE"
"""Names the file: its text is a kind of trouble, and without it there is none."""
LOADING = "TOY_LOADING"
"""Names the seconds more that a new process has for a point."""
TAU = 0.3
MET = ".met"
"""Suffix of the file that appears once a point has met its trouble."""


def hang() -> None:
    """As a kernel does that has lost its way: no interpreter runs meanwhile."""
    while True:
        ctypes.CDLL(None).sleep(3600)


def eat() -> None:
    """Take more and more memory, but no more than a test machine has."""
    hoard = []
    for _ in range(40):
        hoard.append(bytearray(os.urandom(2**20) * 32))
        time.sleep(0.05)
    time.sleep(3600)


def loop() -> None:
    while True:
        pass


def swallow() -> None:
    """Code that takes what it is told for a failure of its own."""
    try:
        loop()
    except BaseException as exc:
        raise RuntimeError("something went wrong") from exc


def integrate() -> None:
    """A solver in Fortran that calls back for ever."""
    from scipy.integrate import odeint

    def rate(y: Any, t: float) -> Any:
        return -1e7 * (y - math.cos(1e9 * t))

    odeint(rate, [0.0], [0.0, 1e9], mxstep=10**9)


SPINNING: list[Any] = []
"""What kernels of this process are spinning on; a first number other than 0 lets them return."""


def spin() -> None:
    from tests.faults import kernels

    SPINNING.append(np.zeros(3))
    kernels.spin(SPINNING[-1])


def clutch() -> None:
    from tests.faults import kernels

    kernels.clutch(np.zeros(3))


def release() -> None:
    """Let the kernels of this process return."""
    while SPINNING:
        SPINNING.pop()[0] = 1.0


def crash() -> None:
    ctypes.string_at(0)


def starve() -> None:
    raise MemoryError("Unable to allocate 3 TiB")


def fill() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/kernel.nbi")


def lose() -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def cut() -> None:
    """Import a module whose compiled file is cut short."""
    folder = Path(os.environ[VARIABLE]).parent / "modules"
    folder.mkdir(exist_ok=True)
    source = folder / "cut_short.py"
    source.write_text("x = 1\n" * 100)
    compiled = Path(py_compile.compile(str(source), doraise=True) or "")
    compiled.write_bytes(compiled.read_bytes()[:40])
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module("cut_short")
    finally:
        sys.path.remove(str(folder))


def lack() -> None:
    try:
        importlib.import_module("not_installed_here")
    except ImportError:
        raise ValueError("filters need the package not_installed_here") from None


def crowd() -> None:
    """As where a user may have no more threads."""
    raise RuntimeError("can't start new thread")


def sink() -> None:
    """Read a file that has become shorter, as one on a disk that fails: SIGBUS."""
    import mmap

    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        page = mmap.mmap(file.fileno(), 0)
        file.truncate(0)
        page[0]


def pause() -> None:
    """As in a job that its cluster suspends, once."""
    stopped = Path(os.environ[VARIABLE]).with_suffix(".stopped")
    if not stopped.exists():
        stopped.touch()
        os.kill(os.getpid(), signal.SIGSTOP)


KINDS: dict[str, Callable[[], None]] = {
    "hang": hang,
    "loop": loop,
    "swallow": swallow,
    "integrate": integrate,
    "spin": spin,
    "clutch": clutch,
    "crash": crash,
    "eat": eat,
    "starve": starve,
    "fill": fill,
    "lose": lose,
    "cut": cut,
    "lack": lack,
    "crowd": crowd,
    "sink": sink,
    "pause": pause,
}


def misbehave(system: toy.Toy) -> None:
    file = os.environ.get(VARIABLE)
    if system.tau == TAU and file and Path(file).exists():
        Path(file).with_suffix(MET).touch()
        KINDS[Path(file).read_text()]()


def troubled(run: Callable[..., Any]) -> Callable[..., Any]:
    def compute(system: toy.Toy, *arguments: Any) -> Any:
        misbehave(system)
        return run(system, *arguments)

    return compute


def flock(run: Callable[..., Any]) -> Callable[..., Any]:
    """Points of one step size and more, computed together."""

    def compute(trials: Any, times: Any, n: int | None, save: Any) -> list[Any]:
        return [run(system, times, n, seed, save) for system, seed in trials]

    return compute


def register() -> None:
    worker.LOADING = float(os.environ.get(LOADING, worker.LOADING))
    toy.register()
    walk = toy.registry.methods_of("Toy")["walk"]
    run = troubled(walk.run)
    toy.put(
        replace(walk, run=run), replace(walk, name="herd", run=run, together=Together(flock(run)))
    )
