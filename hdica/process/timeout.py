"""How long a call of a person may take: ``timeout`` of :func:`hdica.limit` and its like."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from hdica.errors import HdicaError, OutOfTime
from hdica.process.interrupt import Beside
from hdica.process.progress import remembered

USUAL = 120.0
"""Seconds that a call may take unless the caller says otherwise."""
FOREVER = 1e9
"""Seconds that nobody waits, and that the system still can count."""
GRACE = 2.0
"""Seconds that a call has to end; whatever is left of it then goes on at the lowest priority."""
_LIMITED: ContextVar[bool] = ContextVar("hdica_limited", default=False)
Result = TypeVar("Result")
_P = ParamSpec("_P")


def check_timeout(seconds: Any) -> float | None:
    """A time limit as it is used, or a sentence why it is not allowed."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is None or (number and 0 < seconds < math.inf):
        return None if seconds is None else float(min(seconds, FOREVER))
    raise HdicaError(f"timeout = {seconds!r} is not allowed (seconds > 0, or None for no limit)")


def within(seconds: float | None, what: str, compute: Callable[[], Result]) -> Result:
    """Result of a computation that may take some seconds and no longer, or None for no limit.

    It runs in a thread beside the caller's: :mod:`hdica.process.interrupt` says why. A computation
    inside another has the other's limit. ``what`` is computed, as the sentence says it.
    """
    seconds = check_timeout(seconds)
    if seconds is None or _LIMITED.get():
        return compute()
    token = _LIMITED.set(True)
    try:
        with remembered() as said:
            call = Beside(compute)
    finally:
        _LIMITED.reset(token)
    try:
        ended = call.wait(seconds)
    except BaseException:  # Ctrl-C
        call.end(GRACE)
        raise
    if ended or (call.end(GRACE) and call.raised is None):
        return call.result()
    last, usual = said(), " (the default)" if seconds == USUAL else ""
    raise OutOfTime(
        f"{what} took longer than timeout = {seconds:g} s{usual}{f', at {last}' if last else ''}: "
        "give a larger timeout, or None for no limit, or parameters that are less extreme"
    )


def named(function: str, system: Any) -> str:
    """A call, for a person: what is computed of which system."""
    model = isinstance(system, BaseModel)
    given = sorted(system.model_dump(exclude_defaults=True)) if model else []
    fields = ", ".join(f"{name}={getattr(system, name)!r}" for name in given)
    text = f"{type(system).__name__}({fields})" if given else repr(system)
    return f"hdica.{function} of {text if len(text) <= 200 else text[:197] + '...'}"


def limited(function: Callable[_P, Result]) -> Callable[_P, Result]:
    """A function of a system that takes no longer than its keyword ``timeout`` says."""
    usual = inspect.signature(function).parameters["timeout"].default

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> Result:
        seconds: Any = kwargs.get("timeout", usual)
        what = named(function.__name__, args[0] if args else kwargs.get("system"))
        return within(seconds, what, lambda: function(*args, **kwargs))

    return called
