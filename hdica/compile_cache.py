"""Keep numba's cache on disk true to the sources.

numba looks at the file of a compiled function alone, not at the files of the functions that were
inlined into it: after a change there it would silently run the old code.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parent
COMPILED = ("ingredients", "finite", "limits")
"""Folders whose functions are compiled, or inlined into compiled ones."""


def _stamp(package: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(p for folder in COMPILED for p in (package / folder).glob("*.py")):
        about = path.stat()
        found.update(f"{path.name} {about.st_mtime_ns} {about.st_size}\n".encode())
    return found.hexdigest()


def drop_stale(package: Path = PACKAGE) -> bool:
    """Delete the cache if a source has changed since it was made; returns whether it did.

    Parameters
    ----------
    package
        Folder of the package.
    """
    note, stamp = package / "__pycache__" / "compiled-from", _stamp(package)
    try:
        if note.exists() and note.read_text(encoding="ascii") == stamp:
            return False
        for folder in COMPILED:
            for path in (package / folder / "__pycache__").glob("*.nb[ic]"):
                path.unlink(missing_ok=True)
        note.parent.mkdir(exist_ok=True)
        note.write_text(stamp, encoding="ascii")
    except OSError:  # an installation that cannot be written to does not change by one file either
        return False
    return True
