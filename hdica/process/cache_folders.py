"""Let numba and Python load no compiled code that another user could have put there.

Both run whatever lies in their folders, whoever made it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

from hdica.process.compile_cache import (
    NOTE,
    PACKAGE,
    beside,
    compiled_in,
    drop,
    folders,
    guard,
    stamp_of,
)
from hdica.process.compiled import refuse_threads
from hdica.process.trust import ROOT, doubt, make_folders, open_umask, writable

PLACE = "NUMBA_CACHE_DIR"
"""Variable that says where numba keeps compiled functions, if not beside their sources."""
BY_UMASK = "the umask lets others write to files in"
"""Begin of a reason that is the user's own doing, and is said only once."""


def close_caches(package: Path = PACKAGE) -> None:
    """Let nobody else write to the folders of compiled modules.

    Python makes them with the permissions of the day. What lay in an open one is deleted, since it
    may be from anybody. Missing ones are made, closed.
    """
    careful = open_umask()
    for folder, names, files in os.walk(package):
        names[:] = [name for name in names if name != "__pycache__"]
        with suppress(OSError):  # somebody else's
            made = Path(folder, "__pycache__")
            if careful and any(name.endswith(".py") for name in files):
                make_folders(made)
            about = made.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and writable(about):
                made.chmod(stat.S_IMODE(about.st_mode) & ~0o022)
                _empty(made)


def _empty(folder: Path) -> None:
    """Delete every file of a folder; that some were another user's is said."""
    for path in folder.iterdir():
        owner = path.lstat().st_uid
        if owner not in (ROOT, os.getuid()):
            warnings.warn(f"{path} of user {owner} is deleted: it may have been run", stacklevel=3)
        with suppress(IsADirectoryError):
            path.unlink()


@cache
def settle(package: Path = PACKAGE) -> Path | None:
    """See to it that numba loads nothing that others could have put there, and nothing damaged.

    Where they could, compiled functions are kept in a folder of this user's alone, which is said;
    if only for the umask, the first time. Returns that folder, or None where numba's own will do.
    """
    refuse_threads()
    guard()
    why = _against(package)
    if not why:
        return None
    chosen, known = _own(package)
    if not known or not why.startswith(BY_UMASK):
        warnings.warn(f"{why}: compiled functions are kept in {chosen}", stacklevel=2)
    # For the processes that this one starts, and for a numba that has been loaded already.
    os.environ[PLACE] = str(chosen)
    if (config := sys.modules.get("numba.core.config")) is not None:
        vars(config)["CACHE_DIR"] = str(chosen)
    return chosen


def _against(package: Path) -> str:
    """What is to be said against the places where numba would keep compiled functions."""
    config = sys.modules.get("numba.core.config")
    given = config.CACHE_DIR if config is not None else os.environ.get(PLACE)
    if given and _can_write(Path(given)):
        return _against_tree(Path(given), package)
    caches = beside(package)
    here = [path for path in caches if _can_write(path)]
    owner = package.stat().st_uid  # whose sources are run as they are
    why = next(filter(None, (_against_folder(path, owner) for path in here)), "")
    if why or here == caches:
        return why
    home = _user_caches()
    if home is None or not _can_write(home / "numba"):
        return f"there is no folder for them in {home or 'a home'} and none beside the sources"
    return _against_tree(home / "numba", package)


def _can_write(folder: Path) -> bool:
    """Whether numba could keep something in a folder, which is made for it."""
    with suppress(OSError):
        make_folders(folder)
    return os.access(folder, os.W_OK | os.X_OK)


def _against_tree(root: Path, package: Path) -> str:
    """What is to be said against a folder in which numba has one for each folder of sources."""
    why = _against_folder(root)
    if why or not _entered(root):
        return why
    names = {folder.name for folder in folders(package)}
    ours = [path for name in sorted(names) for path in root.glob(f"{name}_*")]
    return next(filter(None, map(_against_folder, ours)), "")


def _entered(folder: Path) -> int:
    """Whether others may enter or read a folder; if not, what is in it is as safe as itself."""
    return stat.S_IMODE(folder.stat().st_mode) & 0o077


def _against_folder(folder: Path, owner: int = ROOT) -> str:
    """The same of one folder; files in it that others can write to are deleted first."""
    try:
        if why := doubt(folder, (owner,)):
            return why
        for path in compiled_in([folder]):
            about = path.lstat()
            if about.st_uid not in (ROOT, os.getuid(), owner) or writable(about):
                path.unlink()
        loose = _entered(folder) and open_umask()
    except OSError as exc:
        return f"{exc.filename or folder} cannot be trusted ({exc.strerror})"
    return f"{BY_UMASK} {folder}" if loose else ""


def _user_caches() -> Path | None:
    """Where this user's caches lie, as numba has it; None for a user without a home."""
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    found = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or usual))
    return found if found.is_absolute() else None


def _own(package: Path) -> tuple[Path, bool]:
    """A folder for compiled functions that only this user can enter, and whether there was one.

    Among the user's caches, if others cannot exchange what is there; else for this process.
    """
    name = f"compiled-{hashlib.sha256(os.fsencode(package)).hexdigest()[:16]}"
    folder = (_user_caches() or Path(os.devnull)) / "hdica" / name
    with suppress(OSError):
        known = folder.exists()
        make_folders(folder, 0o700)
        if not _entered(folder) and not doubt(folder) and os.access(folder, os.W_OK):
            drop(folder / NOTE, stamp_of(package), [p for p in folder.iterdir() if p.is_dir()])
            return folder, known
    from hdica.process.private import scratch

    return scratch(), False
