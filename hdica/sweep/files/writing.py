"""Files that cannot be written: found out where it happens, and said in one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hdica.errors import Removed, Unwritable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors that every further block would meet too."""


def in_words(exc: OSError) -> str:
    """What the system says of an error, to stand inside a sentence."""
    text = exc.strerror or str(exc) or type(exc).__name__
    return text[:1].lower() + text[1:]


@contextmanager
def written(path: str | Path, then: str = "") -> Iterator[None]:
    """Say in one sentence why the body cannot write its files.

    ``then`` is what comes of it, as an end of the sentence.
    """
    try:
        yield
    except OSError as exc:
        raise Unwritable(f"{path} cannot be written: {in_words(exc)}{then}") from exc


def removed(path: Path) -> Removed:
    """That what a run writes to is there no more."""
    return Removed(f"{path} was removed while the run went on; a rerun computes it anew")


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """The same as :func:`written` of what the run itself has made, so that it was there."""
    try:
        with written(path):
            yield
    except Unwritable as exc:
        # Its folder may stand yet: what lies in it goes first.
        if isinstance(exc.__cause__, FileNotFoundError | NotADirectoryError):
            raise removed(path) from exc
        raise
