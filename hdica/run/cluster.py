"""Blocks on a cluster: its client, by the settings, and blocks spread over its workers."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import ssl
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hdica.errors import HdicaError, Incomplete
from hdica.process.private import scratch
from hdica.run.block import Block
from hdica.run.console import aside
from hdica.run.processes import certificates, local_client, read_certificates, start_loading
from hdica.run.settings import Address, ClusterSettings
from hdica.run.worker import Care, run_on_worker

if TYPE_CHECKING:
    from distributed import Client, Future, as_completed
    from distributed.security import Security

ANSWER = 10.0  # seconds in which a scheduler has to answer
WRITTEN = 1.0  # seconds in which a scheduler has written its file, which it does not do at once
PLAIN = ("convert to SSL", "WRONG_VERSION_NUMBER")  # in errors of Dask over plain tcp


def ready(settings: ClusterSettings) -> ClusterSettings:
    """Check what can be checked before any work, and fill in the workers that a plan counts on."""
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


def connect(settings: ClusterSettings, blocks: int = sys.maxsize) -> AbstractContextManager[Client]:
    """A Dask client of a local cluster, a running scheduler or jobs: at most a worker a block."""
    if settings.kind == "scheduler":
        return _scheduler_client(settings)
    if settings.kind == "slurm":
        from hdica.run.slurm import slurm_client

        return slurm_client(settings, blocks)
    start_loading()  # before Dask is imported here, so that both load at once
    # Any user of this machine can reach its ports, and who is let in may run code.
    workers = max(1, min(settings.workers, blocks))
    return local_client(workers, settings.memory_each, certificates(settings))


class Reached(NamedTuple):
    """A scheduler that answers."""

    address: Address
    security: Security | None  # None for plain tcp
    workers: int  # threads of its workers now


def find(settings: ClusterSettings) -> Address:
    """Address of the scheduler that the settings name."""
    if settings.address:
        return settings.allowed(settings.address)
    file, writes = settings.scheduler_file, "(a Dask scheduler writes it)"
    end = time.monotonic() + WRITTEN  # the scheduler may be writing it now
    while True:
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8"))
            break
        except FileNotFoundError:
            raise HdicaError(f"scheduler_file = {file!r} does not exist {writes}") from None
        except (OSError, ValueError) as exc:
            if isinstance(exc, OSError) or time.monotonic() > end:
                why = _first(exc)
                raise HdicaError(f"scheduler_file = {file!r} cannot be read ({why})") from exc
        time.sleep(0.05)
    text = content.get("address") if isinstance(content, dict) else None
    if not isinstance(text, str):
        raise HdicaError(f"scheduler_file = {file!r} names no address {writes}")
    return settings.allowed(text, f"the address in {file}")


def reach(settings: ClusterSettings) -> Reached:
    """Ask the scheduler that the settings name for its workers."""
    address = find(settings)
    security = read_certificates(settings.tls, settings.tls_key) if address.encrypted else None
    import dask
    from dask.utils import parse_timedelta
    from distributed.core import rpc

    usual = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"), "s")
    limit = min(ANSWER, usual)
    arguments = security.get_connection_args("client") if security else {}

    async def count() -> int:
        """Threads of the workers of the scheduler, by its own answer."""
        # Dask's own limit ends with the connection: one that is never answered would wait for ever.
        async with (
            asyncio.timeout(limit + 1),
            rpc(str(address), timeout=limit, connection_args=arguments) as scheduler,
        ):
            return sum((await scheduler.ncores()).values())

    with _sentences(settings, address), ThreadPoolExecutor(1) as thread:
        # In a thread of its own, since this one may be running an event loop.
        return Reached(address, security, thread.submit(asyncio.run, count()).result())


@contextmanager
def _scheduler_client(settings: ClusterSettings) -> Iterator[Client]:
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
    chain: list[BaseException] = []
    step: BaseException | None = exc
    while step is not None and step not in chain:  # with what tornado keeps aside
        chain.append(step)
        step = getattr(step, "real_error", None) or step.__cause__ or step.__context__
    refused = [each for each in chain if isinstance(each, ssl.SSLError) or "SSLError" in str(each)]
    if address.encrypted and any(text in str(each) for each in chain for text in PLAIN):
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


def _first(exc: BaseException) -> str:
    text = getattr(exc, "strerror", None) or str(exc)
    return text.strip().splitlines()[0] if text.strip() else type(exc).__name__


WINDOW = 4  # blocks in flight a worker
LOOK = 10.0  # seconds after which workers that have come or gone are noticed
SLACK = 10  # how many times longer than by the cost model a block may take before it is hung
MAX_NAMED = 8  # blocks in flight that a sentence names
NO_SCHEDULER = "the Dask scheduler was lost"


@dataclass(frozen=True)
class Patience:
    """How long to wait while no block ends; anew when the working store changes.

    So many ``seconds``, or :data:`SLACK` times what the longest block in flight should take.
    """

    seconds: float = math.inf
    for_workers: bool = True  # time without any does not count: they may come later, from a queue
    note: Callable[[str], None] = lambda text: None  # reports that there are none
    committed: Callable[[], int] = lambda: 0  # files that the working store has of the blocks

    def limit(self, blocks: Iterable[Block]) -> float:
        """Seconds to wait for one of some blocks."""
        return max(self.seconds, SLACK * max(block.seconds for block in blocks))


def spread(
    client: Client,
    blocks: Iterator[Block],
    care: Care,
    patience: Patience,
    compute: Callable[[Block, Care], object] = run_on_worker,
) -> Iterator[tuple[Block, Exception | None]]:
    """Keep every worker busy through a sliding window of blocks; yield them as they end.

    They are made in their order, each when it is sent, and come with the exception that ended them.
    """
    from distributed import as_completed

    running: dict[Future[Any], Block] = {}

    def submit(count: int) -> list[Future[Any]]:
        some = list(islice(blocks, count))
        futures = client.map(compute, some, care=care, pure=False) if some else []
        running.update(zip(futures, some, strict=True))
        return futures

    looked, width = time.monotonic(), _width(client, WINDOW)
    ended = as_completed(submit(width))
    # In batches, because each message to the scheduler costs the driver a millisecond.
    while running:
        batch = _wait(client, ended, running, patience)
        if time.monotonic() - looked > LOOK:
            looked, width = time.monotonic(), _width(client, WINDOW)
        outcomes = [(running.pop(future), _failure(future)) for future in batch]
        ended.update(submit(max(0, width - len(running))))
        yield from outcomes


def _wait(
    client: Client, ended: as_completed, running: dict[Future[Any], Block], patience: Patience
) -> list[Future[Any]]:
    """Futures that have ended: at least one."""
    look = min(LOOK, patience.seconds / 4)
    since, looked, committed = time.monotonic(), False, -1
    while not (batch := _batch(ended, look)):
        if committed < 0:
            committed = patience.committed()
        limit = patience.limit(running.values())
        late = time.monotonic() - since >= limit
        if patience.for_workers and (late or not looked):
            looked = True
            if _threads(client) == 0:
                patience.note("the scheduler has no workers; waiting for them")
                since = time.monotonic()
                continue
        if late and committed != (now := patience.committed()):
            since, committed = time.monotonic(), now
        elif late:
            raise Incomplete(_stuck([*running.values()], limit))
    return batch


def _batch(ended: as_completed, seconds: float) -> list[Future[Any]]:
    """Futures that have ended, after at most some seconds; none if none has."""
    deadline = time.monotonic() + seconds
    while not ended.has_ready() and time.monotonic() < deadline:
        with ended.thread_condition:
            # What ends between the question and this line is noticed after a tenth of a second.
            ended.thread_condition.wait(0.1)
    return list(ended.next_batch(block=False))


def _stuck(blocks: list[Block], limit: float) -> str:
    """The sentence that no block ends, and which are in flight."""
    named = [f"{block.size} points of {block.label}" for block in blocks[:MAX_NAMED]]
    more = f" and {len(blocks) - MAX_NAMED} more" if len(blocks) > MAX_NAMED else ""
    return f"no block has ended for {limit:.0f} s, in flight: {', '.join(named)}{more}"


def _threads(client: Client) -> int | None:
    """Threads of all workers that there are now, None if the scheduler does not say."""
    with suppress(Exception):
        return sum(aside(client.nthreads, seconds=LOOK).values())
    return None


def _width(client: Client, before: int) -> int:
    """Blocks in flight for the workers that there are now; as ``before`` if nobody says."""
    threads = _threads(client)
    return before if threads is None else WINDOW * max(1, threads)


def _failure(future: Future[Any]) -> Exception | None:
    """Why an ended future has no result; None if it has one, which stays where it is."""
    # To fetch results from a thousand workers would cost the scheduler more than all the rest.
    # Dask calls the future of a worker that died with its result lost: that was committed before.
    if future.status in ("finished", "lost"):
        return None
    try:
        return future.exception() or HdicaError(NO_SCHEDULER)
    except Exception as exc:
        return exc
