"""What became of a point, as results say it: the codes of the variable ``status``."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from traceback import walk_tb
from types import FrameType

from hdica.errors import DataGone

PENDING, DONE, DIVERGED, FAILED = range(4)
STATUS_NAMES = ("pending", "done", "diverged", "failed")  # by code
LEFT_OUT = len(STATUS_NAMES)
"""Code of a place in the arrays whose point the study leaves out: it counts as no point."""
OF_MACHINE = (MemoryError, OSError, DataGone, ImportError, EOFError, pickle.PickleError)
"""Exceptions for which a machine is to blame and no point."""
_NO_THREAD = "can't start new thread"
"""What Python says, as a RuntimeError, where a user may have no more threads."""
_IMPORT = "<frozen importlib"  # begin of the files of Python's own code that imports modules


def of_machine(exc: BaseException) -> bool:
    """Whether the machine, or an import, is to blame for an exception, or for one it replaces."""
    return any(
        isinstance(one, OF_MACHINE)
        or (isinstance(one, RuntimeError) and _NO_THREAD in str(one))
        or any(_importing(one))
        for one in _origins(exc)
    )


def _origins(exc: BaseException) -> Iterator[BaseException]:
    """An exception and those that it was raised in the place of."""
    one: BaseException | None = exc
    while one is not None:
        yield one
        one = one.__cause__ or (one.__context__ if one.__suppress_context__ else None)


def _importing(exc: BaseException) -> Iterator[FrameType]:
    """Frames of the import of a module, through which an exception has come."""
    frames = (frame for frame, _ in walk_tb(exc.__traceback__))
    return (frame for frame in frames if frame.f_code.co_filename.startswith(_IMPORT))


def damaged_file(exc: BaseException) -> str:
    """The compiled module that an import could not read, empty if there is none."""
    if not isinstance(exc, EOFError | ValueError):
        return ""
    paths = [frame.f_locals.get("bytecode_path") for frame in _importing(exc)]
    return next(filter(None, reversed(paths)), "")
