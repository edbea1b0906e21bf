"""Where blocks are computed: in this process, on a local cluster, or by a Dask scheduler."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hdica.errors import HdicaError, from_validation
from hdica.sweep.axes import check_keys

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
FORKS = sys.platform == "linux"
"""Whether processes that have loaded numerical libraries may be forked."""
PRELOADED = (
    "distributed",
    "scipy.special",
    "hdica.sweep.block",
    "hdica.finite.chain_kernels",
    "hdica.finite.kernels",
)
"""What a worker loads before its first block, and what most methods load in it."""
COLD_START, WARM_START = 1.8, 0.25
"""Seconds until a local cluster computes, before and after :data:`PRELOADED` is loaded."""
CALM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Observes a local cluster less often: by default that takes four per cent of two cores."""


class ClusterSettings(BaseModel):
    """Where Dask runs. It never changes a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["auto", "serial", "local", "scheduler"] = Field(
        default="auto",
        description="auto: scheduler if an address is given, else local where it is worth it",
    )
    workers: int = Field(default=1, ge=1, le=4096, description="processes of a local cluster")
    address: str = Field(default="", description="of a running scheduler: tcp://host:port")
    scheduler_file: str = Field(default="", description="file that a running scheduler wrote")

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    @model_validator(mode="after")
    def _reachable(self) -> ClusterSettings:
        if self.mode == "scheduler" and not self.external:
            raise HdicaError("mode = 'scheduler' needs an address or a scheduler_file")
        return self

    @property
    def external(self) -> bool:
        """Whether a running scheduler is named."""
        return bool(self.address or self.scheduler_file)

    @property
    def kind(self) -> Literal["serial", "local", "scheduler"]:
        """What ``mode`` comes to."""
        if self.mode != "auto":
            return self.mode
        if self.external:
            return "scheduler"
        return "local" if self.workers > 1 else "serial"


def cluster_settings(given: Any = None, workers: int | None = None) -> ClusterSettings:
    """Settings from plain data.

    Parameters
    ----------
    given
        Settings, a mapping, or None for the defaults.
    workers
        Processes, where ``given`` does not say it.

    Raises
    ------
    HdicaError
        One sentence: field, value, what is allowed.
    """
    if isinstance(given, ClusterSettings):
        return given
    content = {} if given is None else given
    if isinstance(content, dict) and workers is not None:
        content = {"workers": workers, **content}
    try:
        return ClusterSettings.model_validate(content)
    except ValidationError as exc:
        raise from_validation(exc, "cluster") from exc


@contextmanager
def one_thread() -> Iterator[None]:
    """Let child processes use one thread each.

    The parent's environment is the only place that works: a worker's own settings come after
    its numerical libraries are loaded, and an inherited value wins over them.
    """
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@cache
def start_loading() -> float:
    """Start a process that loads the workers' libraries, to fork them from; when that was.

    Nobody waits for it. It is a fresh process of one thread that ends with this one, so that a
    later cluster starts in a fraction of a second.
    """
    if FORKS:
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload(list(PRELOADED))
        with one_thread():
            forkserver.ensure_running()
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
    with dask.config.set({**CALM, **method}):
        yield


@contextmanager
def connect(settings: ClusterSettings) -> Iterator[Any]:
    """A Dask client on a local cluster or on a running scheduler.

    Raises
    ------
    HdicaError
        If the scheduler cannot be reached.
    """
    if settings.kind == "scheduler":
        with _running(settings) as client:
            yield client
    else:
        start_loading()  # before Dask is imported here, so that both load at once
        with one_thread(), _configured(), _local(settings.workers) as client:
            yield client


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """A client of a cluster of processes on this machine."""
    import logging

    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            # No dashboard, and an HTTP server on any port: a fixed one warns where two runs meet.
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            # A server that has been running for long knows an old environment.
            env=dict(os.environ),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _running(settings: ClusterSettings) -> Any:
    """A client of a running scheduler."""
    from distributed import Client

    address, file = settings.address, settings.scheduler_file
    if file and not address and not os.path.exists(file):
        raise HdicaError(f"scheduler_file = {file!r} does not exist (a Dask scheduler writes it)")
    try:
        return Client(address) if address else Client(scheduler_file=file)
    except (OSError, ValueError) as exc:
        raise HdicaError(f"no Dask scheduler answers at {address or file}") from exc
