"""Data by its content: digests of files and of folders, each file read once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from hdica.errors import HdicaError
from hdica.inputs.place import files_below

_KEPT = 65536
"""Files whose digests are remembered."""


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal; remembered while size and time stay.

    Raises
    ------
    HdicaError
        If it cannot be read.
    """
    try:
        about = path.stat()
        return _digest(str(path), about.st_size, about.st_mtime_ns, about.st_ino)
    except OSError as exc:
        raise HdicaError(f"{path} cannot be read ({exc.strerror})", ["path"]) from exc


@lru_cache(maxsize=_KEPT)
def _digest(path: str, size: int, changed: int, number: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        raise HdicaError(f"path: {path} holds no data (at least one file is needed)", ["path"])
    return hashlib.sha256(listing(found).encode()).hexdigest()
