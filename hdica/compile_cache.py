"""Keep numba's cache on disk true to the sources.

numba looks at the file of a compiled function alone, not at the files of the functions that were
inlined into it: after a change there it would silently run the old code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from hdica.trust import make_folders

PACKAGE = Path(__file__).parent
COMPILED = ("ingredients", "finite", "limits")
"""Folders whose functions are compiled, or inlined into compiled ones."""
NOTE = "compiled-from"
"""File that says which sources the compiled functions beside it were made of."""


def stamp_of(package: Path) -> str:
    """What changes whenever a source does."""
    found = hashlib.sha256()
    for path in sorted(p for folder in COMPILED for p in (package / folder).glob("*.py")):
        about = path.stat()
        found.update(f"{path.name} {about.st_mtime_ns} {about.st_size}\n".encode())
    return found.hexdigest()


def beside(package: Path) -> list[Path]:
    """Where numba keeps compiled functions beside their sources."""
    return [package / folder / "__pycache__" for folder in COMPILED]


def drop_stale(package: Path = PACKAGE) -> bool:
    """Delete the cache if a source has changed since it was made; returns whether it did.

    Parameters
    ----------
    package
        Folder of the package.
    """
    return drop(package / "__pycache__" / NOTE, stamp_of(package), beside(package))


def drop(note: Path, stamp: str, caches: Iterable[Path]) -> bool:
    """Delete what was compiled of other sources than a note says; returns whether that was so.

    Parameters
    ----------
    note
        A file that says what the compiled functions were made of.
    stamp
        What they are made of now.
    caches
        Folders in which they lie.
    """
    try:
        if note.exists() and note.read_text(encoding="ascii") == stamp:
            return False
        for path in compiled_in(caches):
            path.unlink(missing_ok=True)
        make_folders(note.parent)
        note.touch(mode=0o644)
        note.write_text(stamp, encoding="ascii")
    except OSError:  # an installation that cannot be written to does not change by one file either
        return False
    return True


def compiled_in(caches: Iterable[Path]) -> Iterator[Path]:
    """Files of compiled functions."""
    return (path for folder in caches for path in folder.glob("*.nb[ic]"))
