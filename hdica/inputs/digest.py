"""Data by its content: digests of files and of folders, each file read once."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from hdica.errors import DataGone
from hdica.inputs.place import files_below

_KEPT = 2**20
"""Files whose digests are remembered: more than a folder of pictures has."""
SETTLED = 2 * 10**9
"""Nanoseconds after its last change from which a file is remembered: two changes that are nearer to
each other than a file system tells apart (2 s at worst) may leave the same size and times."""
Seen = tuple[int, int, int, int]


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal; remembered while its size and its times stay.

    Raises
    ------
    HdicaError
        If it cannot be read, is no regular file, or changes while it is read.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise DataGone(f"{path} cannot be read (it is no regular file)", ["path"])
        settled = time.time_ns() - about.st_ctime_ns > SETTLED
        return (_digest if settled else _read)(str(path), seen(about))
    except OSError as exc:
        raise DataGone(f"{path} cannot be read ({exc.strerror})", ["path"]) from exc


def seen(about: os.stat_result) -> Seen:
    """What changes with a file: size, number, and both times, as that of the content can be set."""
    return about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns


def _read(path: str, before: Seen) -> str:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if seen(os.fstat(file.fileno())) != before:
            raise DataGone(f"{path} cannot be read (it changed meanwhile)", ["path"])
    return found


_digest = lru_cache(maxsize=_KEPT)(_read)


def listing(digests: Mapping[str, str]) -> str:
    """Digests of files by their paths in the words of ``sha256sum``, a line a file."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def digests_below(folder: Path) -> dict[str, str]:
    """Digest of every file of data in a folder, by its path in it."""
    return {path: digest_file(file) for path, file in files_below(folder).items()}


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the list of a folder's files with their digests.

    That list is what ``sha256sum`` writes of them, sorted by path (in the order of the bytes of
    UTF-8): other pixels or other names are other data, and where the folder lies says nothing.

    Raises
    ------
    HdicaError
        If something cannot be read, or a folder holds no data.
    """
    if not path.is_dir():
        return digest_file(path)
    found = digests_below(path)
    if not found:
        raise DataGone(f"path: {path} holds no data (at least one file is needed)", ["path"])
    return hashlib.sha256(listing(found).encode()).hexdigest()
