"""How fast code runs here, compared with the processor on which costs were measured."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

NARROW = 5.0
"""How many times longer kernels of Gaussian numbers take on a processor without registers of 512
bits: 4.3 to 5.4 for projected rules of vectors and chains, by ``python -m benchmarks.waiting``."""
WIDE = ("X86_V4", "AVX512")
"""What NumPy calls such registers, now and before 2.4."""
LOOP = 5e-3
"""Seconds of :func:`_interpreted` on the processor on which costs were measured."""
ROUNDS = 5


@cache
def pace() -> float:
    """How many times longer interpreted code takes: loading libraries, and solving most limits.

    It is measured once a process, in some hundredths of a second; nothing but what is said of time
    depends on it.
    """
    return min(_interpreted() for _ in range(ROUNDS)) / LOOP


def _interpreted() -> float:
    """Seconds of the processor, which other programs share, for numbers, words and look-ups."""
    begun, kept = time.thread_time(), dict[int, int]()
    for k in range(20_000):
        kept[k % 64] = kept.get(k % 7, 0) + len(str(k))
    return time.thread_time() - begun


@cache
def slowness() -> float:
    """How many times longer a kernel takes than its cost model says, which is of wide registers."""
    return 1.0 if _is_wide() else NARROW


def _is_wide() -> bool:
    """Whether NumPy computes logarithms, which are in every Gaussian number, in wide registers."""
    found = np.lib.introspect.opt_func_info("^log$", "float64")
    chosen = [one["current"] for ways in found.values() for one in ways.values()]
    return any(name in one for one in chosen for name in WIDE)
