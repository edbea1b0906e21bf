"""What this machine has: memory, also as a user writes it; its speed; threads of BLAS."""

from __future__ import annotations

import os
import re
import resource
import time
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

from hdica.errors import HdicaError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

LEAST, COMPILED = 5 * 10**8, 15 * 10**8
"""Bytes of addresses without which NumPy's libraries do not load, and with which compiled functions
load, threads start and points are computed."""
LEAST_WORKER = 256 * 2**20  # bytes: the libraries of a worker alone take 150 MiB
SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([kMGT])(i?)B")
NARROW = 5.0
"""How many times longer kernels of Gaussian numbers take on a processor without registers of 512
bits: 4.3 to 5.4 for projected rules of vectors and chains, by ``python -m benchmarks.waiting``."""
WIDE = ("X86_V4", "AVX512")  # what NumPy calls such registers, now and before 2.4
LOOP, ROUNDS = 5e-3, 5
"""Seconds of :func:`_interpreted` on the processor of the cost models, and how often it runs."""


def allowed() -> int | None:
    """Bytes of addresses that ``ulimit -v`` allows; None without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def available() -> tuple[float, str]:
    """Bytes of memory that there are for this process, and in words what says so."""
    installed, limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), allowed()
    if limit is not None and limit < installed:
        return limit, "ulimit -v allows"
    return installed, "there are"


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
    if (match := SIZE.fullmatch(text)) is None:
        return 0
    number, letter, binary = match.groups()
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


@cache
def pace() -> float:
    """How many times longer interpreted code takes here; only estimates of time depend on it."""
    return min(_interpreted() for _ in range(ROUNDS)) / LOOP


def _interpreted() -> float:
    """Seconds of the processor, which other programs share, for numbers, words and look-ups."""
    begun, table = time.thread_time(), dict[int, int]()
    for k in range(20_000):
        table[k % 64] = table.get(k % 7, 0) + len(str(k))
    return time.thread_time() - begun


@cache
def slowness() -> float:
    """How many times longer a kernel takes than its cost model says, which is of wide registers."""
    return 1.0 if _is_wide() else NARROW


def _is_wide() -> bool:
    """Whether NumPy computes logarithms, which are in every Gaussian number, in wide registers."""
    import numpy as np

    loops = np.lib.introspect.opt_func_info("^log$", "float64")
    chosen = [loop["current"] for by_type in loops.values() for loop in by_type.values()]
    return any(name in loop for loop in chosen for name in WIDE)


@cache
def _threads() -> ThreadpoolController:
    # SciPy has a BLAS of its own, which has to be there to be found.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """One thread for the BLAS of NumPy and of SciPy: with several they add in another order."""
    return _threads().limit(limits=1, user_api="blas")


OF_FUNCTION = 1.8e-8
"""Seconds of tanh, exp, log or a root: 10 to 28 ns, one number at a time on any processor."""
_OF_SOURCE = {
    "laplace": 8e-9,
    "gaussian": 8e-9,
    "discrete": 1.5e-8,
    "bernoulli_gaussian": 1.7e-8,
    "chi2": 2e-8,
    "beta": 6e-8,
    "mixture": 2.6e-8,
    "scipy": 3e-8,
    "student": 3.2e-8,
}
"""Seconds that a number of a source takes more than a sign."""


def seconds_of_law(spec: object) -> float:
    """Seconds that a number of a law takes more than a sign, of the field that names it."""
    name = next(iter(spec), "") if isinstance(spec, dict) else spec
    return _OF_SOURCE.get(str(name), 0.0)
