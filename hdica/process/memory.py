"""How much memory this process may have; nothing is imported that takes much of it."""

from __future__ import annotations

import os
import resource

from hdica.errors import HdicaError

LEAST = 5 * 10**8
"""Bytes of addresses without which NumPy's libraries do not load; what they say then, or do, names
no memory: OpenBLAS interrupts the process."""

COMPILED = 15 * 10**8
"""Bytes of addresses with which compiled functions load, threads start and points are computed."""


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
