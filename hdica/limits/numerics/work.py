"""How much work one call may do, counted, so that where it ends depends on no clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from hdica.errors import HdicaError
from hdica.process.progress import tell

MOST = 800_000_000
"""Points at which one call may evaluate Boltzmann densities: about a minute on a slow core."""
EACH = 20_000
"""Points that one evaluation costs whatever its size."""


@dataclass
class _Account:
    """What one call has spent."""

    what: str
    points: int = 0
    evaluations: int = 0


_ACCOUNT: ContextVar[_Account | None] = ContextVar("hdica_work", default=None)


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Count the work of ``what`` is done inside; a call inside another counts with it."""
    if _ACCOUNT.get() is not None:
        yield
        return
    token = _ACCOUNT.set(_Account(what))
    try:
        yield
    finally:
        _ACCOUNT.reset(token)


def spend(points: int, each: int = EACH) -> None:
    """Count one evaluation at some points."""
    account = _ACCOUNT.get()
    if account is None:
        return
    account.points += points + each
    account.evaluations += 1
    tell(lambda: f"{account.what}: {account.evaluations:,} evaluations")
    if account.points > MOST:
        raise HdicaError(
            f"{account.what} were not found within the work that is allowed "
            f"({account.evaluations:,} evaluations of Boltzmann averages): give a narrower range "
            "(low, high), fewer values, a smoother or weaker regularizer, or a prior with fewer "
            "values"
        )
