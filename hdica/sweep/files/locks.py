"""Locks of files, which the system drops with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO


def lockable(path: Path, mode: int) -> BinaryIO:
    """A file that can be locked, made if need be, with a mode less what the user masks; no link."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, mode), "r+b", buffering=0)


def taken(file: int | BinaryIO, shared: bool = False) -> bool:
    """Whether a file is locked now, alone or ``shared`` with others.

    Where a file system has no locks, nobody else holds any.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
