"""Where blocks are computed: here, on this machine, by a Dask scheduler, or in Slurm jobs.

A Dask scheduler that runs already has to be reached, and may not answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.process.machine import in_bytes
from hdica.process.private import scratch
from hdica.run.processes import certificates, local_client, read_certificates, start_loading
from hdica.run.settings import Address, ClusterSettings

ANSWER = 10.0
"""Seconds in which a scheduler has to answer."""
WRITTEN = 1.0
"""Seconds in which a scheduler has written its file, which it does not do at once."""
PLAIN = ("convert to SSL", "WRONG_VERSION_NUMBER")
"""What is said of a scheduler that speaks first, as Dask does over plain tcp."""


def ready(settings: ClusterSettings) -> ClusterSettings:
    """Check what can be checked before any work, and fill in the workers that a plan counts on.

    A local cluster has as many as the settings say, Slurm as many as all its jobs, a running
    scheduler as many as it says.
    """
    workers, exposed = settings.workers, False
    if settings.kind == "scheduler":
        reached = reach(settings)
        workers, exposed = max(1, reached.workers), reached.address.exposed
    elif settings.kind == "slurm":
        from hdica.run.slurm import check_slurm

        check_slurm(settings)
        workers, exposed = settings.slurm.workers, settings.slurm.interface != "lo"
    elif settings.kind == "local":
        if settings.tls:
            read_certificates(settings.tls, settings.tls_key)
        scratch()
    if exposed and settings.insecure:
        text = "insecure: true lets anyone on the network read this run and run commands as you"
        warnings.warn(text, stacklevel=2)
    return settings.model_copy(update={"workers": workers})


@contextmanager
def connect(settings: ClusterSettings, blocks: int | None = None) -> Iterator[Any]:
    """A Dask client of a local cluster, of a running scheduler or of jobs.

    No more workers are started than there are blocks to compute.
    """
    if settings.kind == "scheduler":
        with _scheduler_client(settings) as client:
            yield client
    elif settings.kind == "slurm":
        from hdica.run.slurm import slurm_client

        with slurm_client(settings, blocks) as client:
            yield client
    else:
        start_loading()  # before Dask is imported here, so that both load at once
        workers = settings.workers if blocks is None else max(1, min(settings.workers, blocks))
        memory = in_bytes(settings.memory) if settings.memory else 0
        # Any user of this machine can reach its ports, and who is let in may run code.
        with local_client(workers, memory, certificates(settings)) as client:
            yield client


@dataclass(frozen=True)
class Reached:
    """A scheduler that answers."""

    address: Address
    security: Any  # Dask's description of the certificates, None for plain tcp
    workers: int  # threads of its workers now


def find(settings: ClusterSettings) -> Address:
    """Address of the scheduler that the settings name."""
    if settings.address:
        return settings.allowed(settings.address)
    file = settings.scheduler_file
    writes = "(a Dask scheduler writes it)"
    try:
        content = _content(Path(file))
    except FileNotFoundError:
        raise HdicaError(f"scheduler_file = {file!r} does not exist {writes}") from None
    except (OSError, ValueError) as exc:
        raise HdicaError(f"scheduler_file = {file!r} cannot be read ({_first(exc)})") from exc
    text = content.get("address") if isinstance(content, dict) else None
    if not isinstance(text, str):
        raise HdicaError(f"scheduler_file = {file!r} names no address {writes}")
    return settings.allowed(text, f"the address in {file}")


def _content(file: Path) -> Any:
    """What a scheduler has written to its file, which it may be writing now."""
    end = time.monotonic() + WRITTEN
    while True:
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


def reach(settings: ClusterSettings) -> Reached:
    """Ask the scheduler that the settings name for its workers."""
    address = find(settings)
    security = read_certificates(settings.tls, settings.tls_key) if address.encrypted else None
    with _sentences(settings, address), ThreadPoolExecutor(1) as thread:
        # In a thread of its own, since this one may be running an event loop.
        workers = thread.submit(asyncio.run, _workers(str(address), security)).result()
    return Reached(address, security, workers)


async def _workers(address: str, security: Any) -> int:
    import dask
    from dask.utils import parse_timedelta
    from distributed.core import rpc

    given = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"), "s")
    limit = min(ANSWER, given)
    arguments = security.get_connection_args("client") if security else {}
    # Dask's own limit ends with the connection: one that is never answered would wait for ever.
    async with (
        asyncio.timeout(limit + 1),
        rpc(address, timeout=limit, connection_args=arguments) as scheduler,
    ):
        threads = await scheduler.ncores()
    return sum(threads.values())


@contextmanager
def _scheduler_client(settings: ClusterSettings) -> Iterator[Any]:
    """A client of a running scheduler."""
    from distributed import Client

    reached, log = reach(settings), logging.getLogger("distributed.client")
    before = log.level
    # Dask prints no traceback when its scheduler is gone: the run has a sentence.
    log.setLevel(logging.CRITICAL)
    try:
        with _sentences(settings, reached.address):
            client = Client(str(reached.address), security=reached.security)
        with client:
            yield client
    finally:
        log.setLevel(before)


@contextmanager
def _sentences(settings: ClusterSettings, address: Address) -> Iterator[None]:
    """Say in one sentence why a scheduler cannot be used."""
    try:
        yield
    except HdicaError:
        raise
    except Exception as exc:
        raise HdicaError(_why(exc, settings, address)) from exc


def _why(exc: Exception, settings: ClusterSettings, address: Address) -> str:
    """Why a scheduler cannot be used, by what happened when it was asked."""
    chain = list(_chain(exc))
    refused = [one for one in chain if isinstance(one, ssl.SSLError) or "SSLError" in str(one)]
    if address.encrypted and any(text in str(one) for one in chain for text in PLAIN):
        return f"what answers at {address} has no certificates"
    if address.encrypted and refused:
        last = refused[-1]
        reason = getattr(last, "verify_message", None) or getattr(last, "reason", None)
        words = str(reason or _first(last)).lower().replace("_", " ")
        return (
            f"the scheduler at {address} and the certificates in {settings.tls!r} refuse each "
            f"other ({words}; both need the same)"
        )
    if type(exc).__name__ == "CommClosedError":
        hint = "" if address.encrypted else "; one with certificates is reached by tls://"
        return f"{address} hangs up without an answer{hint}"
    if isinstance(exc, OSError):
        return f"no Dask scheduler answers at {address}"
    return f"what answers at {address} is no Dask scheduler ({_first(exc)})"


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """An exception and everything that led to it, also what tornado keeps aside."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = getattr(exc, "real_error", None) or exc.__cause__ or exc.__context__


def _first(exc: BaseException) -> str:
    text = getattr(exc, "strerror", None) or str(exc)
    return text.strip().splitlines()[0] if text.strip() else type(exc).__name__
