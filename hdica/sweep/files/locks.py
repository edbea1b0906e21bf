"""Locks of files, which the system drops with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO


def lockable(path: Path, mode: int) -> BinaryIO:
    """A file that can be locked, made if need be; a link is refused.

    Parameters
    ----------
    path
        The file.
    mode
        Its permissions if it is made, less those that the user masks.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, mode), "r+b", buffering=0)


def taken(file: int | BinaryIO, shared: bool = False) -> bool:
    """Whether a file is locked now; where a file system has no locks, nobody else holds any.

    Parameters
    ----------
    file
        The open file, or its descriptor.
    shared
        Whether others may hold it in the same way.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
