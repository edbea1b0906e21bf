"""Keep numba's cache on disk true to the sources, and a damaged one from ending a computation.

numba looks at the file of a compiled function alone, not at the files of the functions that were
inlined into it: after a change there it would silently run the old code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from hdica.process.trust import make_folders

PACKAGE = Path(__file__).parents[1]
COMPILED = ("ingredients", "finite", "limits", "systems")
"""Folders in which functions, at any depth, are compiled or inlined into compiled ones."""
NOTE = "compiled-from"
"""File that says which sources the compiled functions beside it were made of."""


def folders(package: Path) -> list[Path]:
    """Every folder of sources that may be compiled."""
    found = []
    for top in COMPILED:
        for folder, names, files in os.walk(package / top):
            names[:] = sorted(name for name in names if name != "__pycache__")
            if any(name.endswith(".py") for name in files):
                found.append(Path(folder))
    return found


def stamp_of(package: Path) -> str:
    """What changes whenever a source does."""
    found = hashlib.sha256()
    for folder in folders(package):
        for path in sorted(folder.glob("*.py")):
            about = path.stat()
            name = path.relative_to(package)
            found.update(f"{name} {about.st_mtime_ns} {about.st_size}\n".encode())
    return found.hexdigest()


def beside(package: Path) -> list[Path]:
    """Where numba keeps compiled functions beside their sources."""
    return [folder / "__pycache__" for folder in folders(package)]


def drop_stale(package: Path = PACKAGE) -> bool:
    """Delete the cache if a source has changed since it was made; returns whether it did."""
    return drop(package / "__pycache__" / NOTE, stamp_of(package), beside(package))


def drop(note: Path, stamp: str, caches: Iterable[Path]) -> bool:
    """Delete what was compiled of other sources than a note says; returns whether that was so.

    The stamp says what they are made of now, the caches are the folders in which they lie.
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


DISPATCHER = "numba.core.dispatcher"
"""Module of numba that gives each compiled function its cache."""


class _Guard(MetaPathFinder):
    """Puts our cache into numba when numba is imported, which takes too long to do it before."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != DISPATCHER:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        if found is not None and found.loader is not None:
            run = found.loader.exec_module

            def run_and_guard(module: Any) -> None:
                run(module)
                _put_into(module)

            found.loader.exec_module = run_and_guard  # type: ignore[method-assign]
        return found


def _put_into(dispatcher: Any) -> None:
    """Let the module of numba that makes compiled functions use our cache."""
    from hdica.process.function_cache import cache_of

    vars(dispatcher)["FunctionCache"] = cache_of


def guard() -> None:
    """Let damaged and unwritable files of numba's cache cost a compilation, and nothing else."""
    if (dispatcher := sys.modules.get(DISPATCHER)) is not None:
        _put_into(dispatcher)
    elif not any(isinstance(one, _Guard) for one in sys.meta_path):
        sys.meta_path.insert(0, _Guard())
