"""Workers on this machine: one thread each, forked from a process that has loaded their code."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from hdica.process.cache_folders import settle
from hdica.process.loopback import HOST
from hdica.process.private import scratch
from hdica.sweep.workers.folder import keep_sockets, own_folder

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Without it Python looks for the modules of a new process in the current folder first."""
FORKS = sys.platform == "linux"
"""Whether processes that have loaded numerical libraries may be forked."""
PRELOADED = (
    "distributed",
    "scipy.special",
    "hdica.sweep.run.block",
    "hdica.finite.projected.chain_kernels",
    "hdica.finite.projected.vector_kernels",
)
"""What a worker loads before its first block, and what most methods load in it."""
COLD_START, WARM_START = 1.8, 0.25
"""Seconds until a local cluster computes, before and after :data:`PRELOADED` is loaded."""
CALM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Observes a cluster less often: by default that takes four per cent of two cores."""
UNPAUSED = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 1.0,
}
"""A worker above its memory is restarted. Dask would first pause it, and then it waits for ever,
since what a block takes is no data that could be moved."""
APART = {"distributed.worker.use-file-locking": False}
"""Without the lock that all of Dask on a machine shares: a process of another run that is stopped
while it holds it would let nothing start."""


@contextmanager
def for_children() -> Iterator[None]:
    """Let child processes use one thread each, and load nothing from the current folder.

    The parent's environment is the only place that works: a worker's own settings come after
    its numerical libraries are loaded, and an inherited value wins over them.
    """
    ours = {**dict.fromkeys(THREAD_VARIABLES, "1"), **SAFE_PATH}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def unguarded() -> str:
    """What to change in a script that would start workers anew in every worker; empty if none."""
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    with suppress(OSError, ValueError):
        if script.endswith(".py") and "__main__" not in Path(script).read_text():
            return f" ({script} has to begin its work below: if __name__ == '__main__')"
    return ""


@cache
def start_loading() -> float:
    """Start a process that loads the workers' libraries, to fork them from; when that was.

    Nobody waits for it. It is a fresh process of one thread that ends with this one, so that a
    later cluster starts in a fraction of a second.
    """
    if FORKS:
        from multiprocessing import forkserver, resource_tracker

        settle()  # or each process would do it anew
        keep_sockets(scratch())
        forkserver.set_forkserver_preload(list(PRELOADED))
        # Ctrl-C goes to every process of a terminal. This one and its forks would each print a
        # traceback, although the process that has started them ends them.
        with for_children():
            resource_tracker.ensure_running()  # which lets SIGINT through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with for_children():
                forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return time.monotonic()


def start_seconds() -> float:
    """How long a local cluster would take to start now."""
    begun = FORKS and start_loading.cache_info().currsize
    return WARM_START if begun and time.monotonic() - start_loading() > COLD_START else COLD_START


@contextmanager
def _configured() -> Iterator[None]:
    """Dask's settings for a local cluster; workers are spawned where forking is not safe."""
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)

    method = {"distributed.worker.multiprocessing-method": "forkserver"} if FORKS else {}
    with dask.config.set({**CALM, **UNPAUSED, **APART, **method}), own_folder(scratch()):
        yield


@contextmanager
def _startable() -> Iterator[None]:
    """Let processes be started from a program of standard input and from a daemonic process.

    A new process imports the file of the program first, and ``<stdin>`` is none. A daemonic one
    may have no children in multiprocessing, which would outlive it; these end with it.
    """
    from multiprocessing import process

    ours: dict[str, Any] = process.current_process()._config  # type: ignore[attr-defined]
    before, main = ours.get("daemon"), vars(sys.modules["__main__"])
    path = main.get("__file__")
    if path is not None and not Path(process.ORIGINAL_DIR or "", path).exists():  # type: ignore[attr-defined]
        del main["__file__"]
    ours["daemon"] = False
    try:
        yield
    finally:
        ours["daemon"] = before
        if path is not None:
            main["__file__"] = path


@contextmanager
def local_client(workers: int, memory: int = 0, security: Any = None) -> Iterator[Any]:
    """A client of a cluster of processes on this machine, which nothing beyond it can reach.

    A worker is restarted beyond ``memory`` bytes; 0 is no limit. ``security`` are certificates,
    against other users of the machine.
    """
    start_loading()  # before Dask is imported here, so that both load at once
    import logging

    from distributed import Client, LocalCluster

    with (
        for_children(),
        _startable(),
        _configured(),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host=HOST,
            # The HTTP server that is stopped at once: on a fixed port it warns where two runs meet.
            scheduler_kwargs={"dashboard": False, "dashboard_address": f"{HOST}:0"},
            memory_limit=memory,
            security=security,
            # A server that has been running for long knows an old environment.
            env=dict(os.environ),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
