"""How fast code runs here beside the processor on which costs were measured."""

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
"""Seconds of :func:`_interpreted` on the processor on which costs were measured; where it took
2.25 ms, functions compiled and limits were solved in 0.39 to 0.48 of what was said of them."""
ROUNDS = 5


@cache
def pace() -> float:
    """How many times longer interpreted code takes than on the processor of the cost models.

    Functions compile, libraries load and most limits are solved as fast as that: of all of these
    the interpreter is the larger part. It is measured once a process, in some hundredths of a
    second, and nothing but what is said of time depends on it.
    """
    return min(_interpreted() for _ in range(ROUNDS)) / LOOP


def _interpreted() -> float:
    """Seconds of a loop as interpreted code has them: numbers, words, calls and look-ups.

    They are the processor's, as all costs are: other programs, which share it, do not count.
    """
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
