"""A Dask scheduler that runs already: finding it, asking it, and why it does not answer."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError
from hdica.sweep.workers.address import Address, parse_address

if TYPE_CHECKING:
    from hdica.sweep.workers.settings import ClusterSettings

ANSWER = 10.0
"""Seconds in which a scheduler has to answer."""
WRITTEN = 1.0
"""Seconds in which a scheduler has written its file, which it does not do at once."""


PLAIN = ("convert to SSL", "WRONG_VERSION_NUMBER")
"""What is said of a scheduler that speaks first, as Dask does over plain tcp."""


@dataclass(frozen=True)
class Reached:
    """A scheduler that answers."""

    address: Address
    security: Any  # Dask's description of the certificates, None for plain tcp
    workers: int  # threads of its workers now


def find(settings: ClusterSettings) -> Address:
    """Address of the scheduler that the settings name."""
    if settings.address:
        return settings.allowed(parse_address(settings.address))
    file = settings.scheduler_file
    try:
        content = _content(Path(file))
    except FileNotFoundError:
        raise HdicaError(
            f"scheduler_file = {file!r} does not exist (a Dask scheduler writes it)"
        ) from None
    except (OSError, ValueError) as exc:
        raise HdicaError(f"scheduler_file = {file!r} cannot be read ({_first(exc)})") from exc
    text = content.get("address") if isinstance(content, dict) else None
    if not isinstance(text, str):
        raise HdicaError(f"scheduler_file = {file!r} names no address (a Dask scheduler writes it)")
    field = f"the address in {file}"
    return settings.allowed(parse_address(text, field), field)


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
    security = None
    if address.encrypted:
        from hdica.sweep.workers.tls import security as read_certificates

        security = read_certificates(settings.tls, settings.tls_key)
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
def _sentences(settings: ClusterSettings, address: Address) -> Iterator[None]:
    """Say in one sentence why a scheduler cannot be used."""
    try:
        yield
    except HdicaError:
        raise
    except Exception as exc:
        chain = list(_chain(exc))
        refused = [one for one in chain if isinstance(one, ssl.SSLError) or "SSLError" in str(one)]
        if address.encrypted and any(text in str(one) for one in chain for text in PLAIN):
            raise HdicaError(f"what answers at {address} has no certificates") from exc
        if address.encrypted and refused:
            raise HdicaError(
                f"the scheduler at {address} and the certificates in {settings.tls!r} refuse each "
                f"other ({_reason(refused[-1])}; both need certificates of one hdica cluster certs)"
            ) from exc
        if type(exc).__name__ == "CommClosedError":
            hint = "" if address.encrypted else "; one with certificates is reached by tls://"
            raise HdicaError(f"{address} hangs up without an answer{hint}") from exc
        if isinstance(exc, OSError):
            raise HdicaError(f"no Dask scheduler answers at {address}") from exc
        raise HdicaError(f"what answers at {address} is no Dask scheduler ({_first(exc)})") from exc


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """An exception and everything that led to it, also what tornado keeps aside."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = getattr(exc, "real_error", None) or exc.__cause__ or exc.__context__


def _reason(exc: BaseException) -> str:
    """Why a handshake failed, in OpenSSL's words."""
    found = getattr(exc, "verify_message", None) or getattr(exc, "reason", None) or _first(exc)
    return str(found).lower().replace("_", " ")


def _first(exc: BaseException) -> str:
    text = getattr(exc, "strerror", None) or str(exc)
    return text.strip().splitlines()[0] if text.strip() else type(exc).__name__


@contextmanager
def scheduler_client(settings: ClusterSettings) -> Iterator[Any]:
    """A client of a running scheduler."""
    from distributed import Client

    found = reach(settings)
    with _silent():
        with _sentences(settings, found.address):
            client = Client(str(found.address), security=found.security)
        with client:
            yield client


@contextmanager
def _silent() -> Iterator[None]:
    """Let Dask's client print no traceback when its scheduler is gone: the run has a sentence."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
