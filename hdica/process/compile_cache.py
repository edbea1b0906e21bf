"""One folder of compiled functions, which nobody else can enter and which no change outlives.

numba runs whatever lies in its cache, raises where a file is cut short or the disk is full, and
does not look at the sources of functions that were inlined. So the folder is this user's alone, its
name has a digest of all sources, and every file in it begins with a digest.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hdica.errors import HdicaError
from hdica.process.private import ROOT, doubt, make_folders, open_umask, scratch, writable

if TYPE_CHECKING:
    from numba.core.caching import Cache, IndexDataCacheFile, _CacheLocator

PACKAGE = Path(__file__).parents[1]
COMPILED = ("ingredients", "finite", "limits", "systems")
"""Folders in which functions, at any depth, are compiled or inlined into compiled ones."""
PLACE, PLAIN, THREADS = "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS"
"""Variables of numba; by the second one Python runs the functions."""
NAME = re.compile("compiled-[0-9a-f]{16}")  # name of a folder of compiled functions
UNUSED_SECONDS = 30 * 86400.0  # after this time a folder of other sources is removed
DIGEST = 32  # bytes of the digest at the start of a file
KEPT_IN = "compiled functions are kept in"


@cache
def set_cache_folder(package: Path = PACKAGE) -> Path:
    """Have numba keep compiled functions in a safe folder, here and in processes started from here.

    It lies in the first safe place of ``NUMBA_CACHE_DIR``, the user's caches and the sources, else
    among the files of this process.
    """
    refuse_threads()
    after_import("numba.core.caching", _seal_files)
    # Of Python and of the sources that may be compiled; each file has numba's version.
    digest = hashlib.sha256(sys.version.encode())
    for top in COMPILED:
        for path in sorted((package / top).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"\n{path.relative_to(package)} {len(content)}\n".encode() + content)
    folder = _safe_folder(f"compiled-{digest.hexdigest()[:16]}", package)
    os.utime(folder)  # it is in use
    for other in folder.parent.glob("compiled-*"):
        with suppress(OSError):  # another process removes it, too
            if time.time() - other.stat().st_mtime > UNUSED_SECONDS and NAME.fullmatch(other.name):
                shutil.rmtree(other)
    os.environ[PLACE] = str(folder)
    if (config := sys.modules.get("numba.core.config")) is not None:
        vars(config)["CACHE_DIR"] = str(folder)
    return folder


def _safe_folder(name: str, package: Path) -> Path:
    """A folder that only this user can enter, in the first place that is safe."""
    config = sys.modules.get("numba.core.config")
    wanted = config.CACHE_DIR if config is not None else os.environ.get(PLACE)
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    caches = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or usual))
    places = [caches / "hdica", package / "__pycache__"]
    if wanted:
        place = Path(wanted).absolute()  # with the name if a parent process has chosen it
        places.insert(0, place.parent if NAME.fullmatch(place.name) else place)
    problems: list[str] = []
    for place in places:
        if not (problem := _make_private(folder := place / name)):
            if wanted and problems:
                warnings.warn(f"{problems[0]}: {KEPT_IN} {folder}", stacklevel=3)
            return folder
        problems.append(problem)
    (folder := scratch() / name).mkdir(mode=0o700, exist_ok=True)
    why = "; ".join(problems)
    warnings.warn(f"{why}: {KEPT_IN} {folder} as long as this process runs", stacklevel=3)
    return folder


def _make_private(folder: Path) -> str:
    """Make a folder for this user alone unless it exists; returns why it is not safe, if so."""
    try:
        if not folder.is_absolute():
            return f"{folder} is not an absolute path"
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if why := doubt(there, holds=there != folder):
            return why
        make_folders(folder, 0o700)
        if why := doubt(folder):
            return why
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            return f"others can enter {folder}"
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder} cannot be written to"
    except OSError as exc:
        return f"{exc.filename or folder} cannot be used ({exc.strerror})"


def nothing_compiled() -> bool:
    """Whether no function of these sources has been compiled yet."""
    return not any(set_cache_folder().rglob("*.nbc"))


def _seal_files() -> None:
    """Let numba read and write sealed files, in the folder and, if it is full, nowhere else."""
    from numba.core import caching, config

    def from_function(cls: type[_CacheLocator], function: object, source: str) -> object:
        return cls(function, source) if os.path.exists(source) else None

    os.environ.pop("NUMBA_CACHE_LOCATOR_CLASSES", None)
    config.CACHE_LOCATOR_CLASSES = ""
    in_folder, *others = caching.CacheImpl._locator_classes
    in_folder.from_function = classmethod(from_function)
    in_notebooks = [locator for locator in others if "IPython" in locator.__name__]
    caching.CacheImpl._locator_classes = [in_folder, *in_notebooks]
    files = caching.IndexDataCacheFile
    files.load, files.save, files.flush = _load, _save, _flush
    caching.Cache._guard_against_spurious_io_errors = _survive_a_full_disk


def _path(files: IndexDataCacheFile, key: object) -> Path:
    """The file of one signature of a function."""
    import llvmlite

    made_by = files._version, llvmlite.__version__, files._source_stamp, key
    digest = hashlib.sha256(repr(made_by).encode()).hexdigest()[:32]
    return Path(files._index_path).with_suffix(f".{digest}.nbc")


def _load(files: IndexDataCacheFile, key: object) -> object:
    """What was saved for a key; None if there is nothing, or nothing that is as it was written."""
    # Imported here, so that importing hdica takes no time.
    from hdica.process.progress import check_deadline

    # What is compiled first takes up to half a minute: a call whose time is over ends here.
    check_deadline()
    with suppress(Exception):  # nothing in a cache may end a computation
        whole = _path(files, key).read_bytes()
        if hashlib.sha256(whole[DIGEST:]).digest() == whole[:DIGEST]:
            saved_for, data = pickle.loads(whole[DIGEST:])  # noqa: S301  (this user's alone)
            return data if saved_for == key else None
    return None


def _save(files: IndexDataCacheFile, key: object, data: object) -> None:
    """Write what was compiled for a key."""
    from numba.core.serialize import dumps

    content = dumps((key, data))
    with files._open_for_write(str(_path(files, key))) as file:
        file.write(hashlib.sha256(content).digest() + content)


def _flush(files: IndexDataCacheFile) -> None:
    """Forget everything that was compiled of a function."""
    index = Path(files._index_path)
    for path in index.parent.glob(f"{index.stem}.*.nbc"):
        path.unlink(missing_ok=True)


@contextmanager
def _survive_a_full_disk(functions: Cache) -> Iterator[None]:
    """Compiled functions that cannot be written are compiled again by the next process."""
    try:
        yield
    except OSError as exc:
        _warn_once(str(Path(functions.cache_path).parent), exc.strerror or str(exc))


@cache
def _warn_once(folder: str, why: str) -> None:
    import multiprocessing

    if multiprocessing.parent_process() is None:  # each worker would say it
        warnings.warn(
            f"no compiled function can be written to {folder} ({why}): each process compiles them "
            "again",
            stacklevel=2,
        )


def close_caches(package: Path = PACKAGE) -> None:
    """Let nobody else write to Python's folders of compiled modules, and empty what was open."""
    open_to_all = open_umask()
    for name, _, files in os.walk(package):
        folder = Path(name)
        with suppress(OSError):  # somebody else's
            about = folder.lstat()
            if folder.name != "__pycache__":
                if open_to_all and any(file.endswith(".py") for file in files):
                    make_folders(folder / "__pycache__")
            elif about.st_uid == os.getuid() and writable(about):
                folder.chmod(stat.S_IMODE(about.st_mode) & ~0o022)
                for path in folder.iterdir():
                    if (owner := path.lstat().st_uid) not in (ROOT, os.getuid()):
                        text = f"{path} of user {owner} is deleted: it may have been run"
                        warnings.warn(text, stacklevel=2)
                    with suppress(OSError):
                        path.unlink()


def refuse_interpreter() -> None:
    """Refuse to simulate where numba compiles nothing: Python has no vector instructions."""
    config = sys.modules.get("numba.core.config")
    value = os.environ.get(PLAIN, "") if config is None else config.DISABLE_JIT
    if str(value).strip() not in ("", "0"):
        raise HdicaError(
            f"{PLAIN} = {value} is not allowed with simulations (they are compiled with vector "
            "instructions that Python lacks; unset it: limits alone can be computed without)"
        )


def refuse_threads() -> None:
    """Refuse a number of threads with which numba cannot be imported, or is with a traceback."""
    value = os.environ.get(THREADS)
    if value is None or "numba.core.config" in sys.modules:
        return
    with suppress(ValueError):
        if int(value) > 0:
            return
    raise HdicaError(
        f"{THREADS} = {value!r} is not allowed (a whole number above 0, or unset it: functions of "
        "hdica use one thread)"
    )


def after_import(module: str, action: Callable[[], None]) -> None:
    """Call ``action()`` after a module is imported; at once if it has been."""
    if module in sys.modules:
        action()
    elif not any(isinstance(one, Waiting) and one.module == module for one in sys.meta_path):
        sys.meta_path.insert(0, Waiting(module, action))


class Waiting:
    """Finds a module by the usual finders, once, and acts after it is loaded."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self.module, self.action = module, action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The usual specification, whose loader calls the action at its end."""
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load, loader = spec.loader.exec_module, spec.loader

            def load_and_act(module: ModuleType) -> None:
                del loader.exec_module  # the next import runs the original loader
                load(module)
                self.action()

            loader.exec_module = load_and_act  # type: ignore[method-assign]
        return spec
