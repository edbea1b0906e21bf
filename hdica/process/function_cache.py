"""numba's cache of one function, in which a damaged or unwritable file costs a compilation alone.

numba itself raises where a file of its cache is empty or cut short, and where the disk is full.
Beyond that it loads whatever it can read, so that one wrong byte may end the process or, worse,
compute other numbers. Here each file ends with a digest of what it says. numba reads such files,
too: it looks at nothing behind the end of what was pickled.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from hdica.process.compile_cache import PACKAGE

MARK = b"hdica sha256 "
"""Begin of what follows the pickled content of a file: the digest of that content."""


def sealed(content: bytes) -> bytes:
    """A content with its digest behind it."""
    return content + MARK + hashlib.sha256(content).digest()


def check(whole: bytes, strict: bool) -> None:
    """Raise ValueError if what was read differs from what :func:`sealed` has returned.

    Unless ``strict``, a content without a digest is trusted, as numba alone has written it.
    """
    content, mark, _ = whole.rpartition(MARK)
    if sealed(content) != whole if mark else strict:
        raise ValueError("a file of the cache is not as it was written")


class _Files(IndexDataCacheFile):
    """Index and data of one function, each with its digest."""

    strict = False

    def _dump(self, what: Any) -> bytes:
        return sealed(super()._dump(what))

    def _load_index(self) -> Any:
        head = len(pickle.dumps(self._version, protocol=-1))  # written in front of what _dump gives
        path = Path(self._index_path)
        if path.exists():
            check(path.read_bytes()[head:], self.strict)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        check(Path(self._data_path(name)).read_bytes(), self.strict)
        return super()._load_data(name)


class Careful(FunctionCache):
    """A cache in which what cannot be read is compiled anew, and what cannot be written is not."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)
        source = Path(function.__code__.co_filename)
        self._cache_file.strict = source.is_relative_to(PACKAGE)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function; None if there is none that can be read."""
        try:
            return super().load_overload(signature, target)
        except Exception:  # whatever pickle meets in a file that is cut short
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled function; where the index is damaged, write a new one."""
        try:
            try:
                self._cache_file._load_index()
            except Exception:
                self.flush()
            super().save_overload(signature, result)
        except OSError:
            say_once(str(Path(self._cache_path).parent))


@cache
def say_once(folder: str) -> None:
    """Say that nothing can be written to a folder; not in workers, of which each would say it."""
    if multiprocessing.parent_process() is None:
        text = f"no compiled function can be written to {folder} (no room, or no permission)"
        warnings.warn(f"{text}: each process compiles them again", stacklevel=2)


def cache_of(function: Any) -> Any:
    """The cache of a function, and none where numba finds no folder for it."""
    try:
        return Careful(function)
    except (OSError, RuntimeError):  # no folder in which a file can be made
        say_once(config.CACHE_DIR or str(PACKAGE))
        return NullCache()
