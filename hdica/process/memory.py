"""How much memory this process may have, and sizes of memory as a user writes them.

Nothing is imported that takes much of it.
"""

from __future__ import annotations

import os
import re
import resource

from hdica.errors import HdicaError

LEAST = 5 * 10**8
"""Bytes of addresses without which NumPy's libraries do not load; what they say then, or do, names
no memory: OpenBLAS interrupts the process."""

COMPILED = 15 * 10**8
"""Bytes of addresses with which compiled functions load, threads start and points are computed."""

LEAST_WORKER = 256 * 2**20
"""Bytes below which no worker lives long: its libraries alone take 150 MiB."""
SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([kMGT])(i?)B")


def allowed() -> int | None:
    """Bytes of addresses that ``ulimit -v`` allows; None without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def available() -> tuple[float, str]:
    """Bytes of memory that there are for this process, and in words what says so."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = allowed()
    if limit is not None and limit < there:
        return limit, "ulimit -v allows"
    return there, "there are"


def refuse_little(what: str) -> None:
    """Refuse work that needs compiled functions where ``ulimit -v`` lets them not be loaded."""
    limit = allowed()
    if limit is not None and limit < COMPILED:
        raise HdicaError(
            f"{what} is not allowed with ulimit -v at {limit / 1e9:.3g} GB (at least "
            f"{COMPILED / 1e9:.3g}, for each process)"
        )


def in_bytes(text: str) -> int:
    """Bytes of a size, 0 if it is none."""
    found = SIZE.fullmatch(text)
    if found is None:
        return 0
    number, letter, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** ("kMGT".index(letter) + 1))


def check_size(text: str, field: str, workers: int = 1) -> str:
    """``text`` if it is a size of memory, as 2GiB or 500MB, in which so many workers can live."""
    if in_bytes(text) < workers * LEAST_WORKER:
        each = f" for each of {workers} workers" if workers > 1 else ""
        raise HdicaError(
            f"{field} = {text!r} is not allowed (a number and a unit, as 2GiB or 500MB; at least "
            f"{LEAST_WORKER // 2**20}MiB{each})"
        )
    return text
