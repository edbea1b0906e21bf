"""Threads of BLAS, on which the order of sums depends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _threads() -> ThreadpoolController:
    # SciPy has a BLAS of its own, which has to be there to be found.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """One thread for the BLAS of NumPy and of SciPy: with several they add in another order."""
    return _threads().limit(limits=1, user_api="blas")
