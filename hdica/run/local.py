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

from hdica.process.compile_cache import set_cache_folder
from hdica.process.loopback import HOST
from hdica.run.processes import for_children, own_dask

FORKS = sys.platform == "linux"
"""Whether processes that have loaded numerical libraries may be forked."""
PRELOADED = (
    "distributed",
    "scipy.special",
    "hdica.run.worker",
    "hdica.finite.projected.chain_kernels",
    "hdica.finite.projected.vector_kernels",
)
"""What a worker loads before its first block, and what most methods load in it."""
COLD_START, WARM_START = 1.8, 0.25
"""Seconds until a local cluster computes, before and after :data:`PRELOADED` is loaded."""


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

        set_cache_folder()  # or each process would do it anew
        forkserver.set_forkserver_preload(list(PRELOADED))
        with for_children():
            # Ctrl-C goes to every process of a terminal. This one and its forks would each print a
            # traceback, although the process that has started them ends them.
            resource_tracker.ensure_running()  # which lets SIGINT through again
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                forkserver.ensure_running()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return time.monotonic()


def start_seconds() -> float:
    """How long a local cluster would take to start now."""
    begun = FORKS and start_loading.cache_info().currsize
    return WARM_START if begun and time.monotonic() - start_loading() > COLD_START else COLD_START


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
    import logging

    import dask
    from distributed import Client, LocalCluster

    # Workers are spawned where forking is not safe.
    method = {"distributed.worker.multiprocessing-method": "forkserver"} if FORKS else {}
    with (
        for_children(),
        _startable(),
        own_dask(),
        dask.config.set(method),
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
