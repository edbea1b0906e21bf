"""How long a call may take: ``timeout`` of :func:`hdica.limit` and the other functions."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from hdica.errors import HdicaError, OutOfTime
from hdica.process.progress import CALL, Call, DeadlinePassed

USUAL = 120.0
"""Seconds that a call may take unless the caller says otherwise."""
LONGEST = 1e9
"""Seconds to which a timeout is shortened, so that the clock can be added to it."""
Result = TypeVar("Result")
_P = ParamSpec("_P")


def check_timeout(seconds: Any) -> float | None:
    """A time limit as it is used; HdicaError if it is not allowed."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is None or (number and 0 < seconds < math.inf):
        return None if seconds is None else float(min(seconds, LONGEST))
    raise HdicaError(f"timeout = {seconds!r} is not allowed (seconds > 0, or None for no limit)")


def within(seconds: float | None, what: str, compute: Callable[[], Result]) -> Result:
    """Result of ``compute``, which may take some seconds, or any time if they are None.

    ``what`` is computed, for the sentence of :class:`~hdica.errors.OutOfTime`. A computation inside
    another has the deadline of the outer one.
    """
    seconds = check_timeout(seconds)
    if seconds is None or CALL.get() is not None:
        return compute()
    call = Call(time.monotonic() + seconds)
    token = CALL.set(call)
    try:
        return compute()
    except DeadlinePassed:
        last = call.last if isinstance(call.last, str) else call.last()
    finally:
        CALL.reset(token)
    usual = " (the default)" if seconds == USUAL else ""
    raise OutOfTime(
        f"{what} took longer than timeout = {seconds:g} s{usual}{f', at {last}' if last else ''}: "
        "give a larger timeout, or None for no limit, or parameters that are less extreme"
    )


def named(function: str, system: Any) -> str:
    """A call, for a person: what is computed of which system."""
    model = isinstance(system, BaseModel)
    changed = sorted(system.model_dump(exclude_defaults=True)) if model else []
    fields = ", ".join(f"{name}={getattr(system, name)!r}" for name in changed)
    text = f"{type(system).__name__}({fields})" if changed else repr(system)
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
