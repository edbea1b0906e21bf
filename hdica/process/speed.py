"""How fast kernels are here beside the processor on which their costs were measured."""

from __future__ import annotations

from functools import cache

import numpy as np

NARROW = 5.0
"""How many times longer kernels of Gaussian numbers take on a processor without registers of 512
bits: 4.3 to 5.4 for projected rules of vectors and chains, by ``python -m benchmarks.waiting``."""
WIDE = ("X86_V4", "AVX512")
"""What NumPy calls such registers, now and before 2.4."""


@cache
def slowness() -> float:
    """How many times longer a kernel takes than its cost model says, which is of wide registers."""
    return 1.0 if _is_wide() else NARROW


def _is_wide() -> bool:
    """Whether NumPy computes logarithms, which are in every Gaussian number, in wide registers."""
    found = np.lib.introspect.opt_func_info("^log$", "float64")
    chosen = [one["current"] for ways in found.values() for one in ways.values()]
    return any(name in one for one in chosen for name in WIDE)
