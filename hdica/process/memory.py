"""How much memory this process may have; nothing is imported that takes much of it."""

from __future__ import annotations

import os
import resource

LEAST = 5 * 10**8
"""Bytes of addresses without which NumPy's libraries do not load; what they say then, or do, names
no memory: OpenBLAS interrupts the process."""


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
