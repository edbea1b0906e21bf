"""Whether other users of the machine could put something in the place of a file or a folder.

What lies there may be code: modules that are imported, compiled functions that are loaded. Whoever
can put it there, or under its name, runs commands as the user.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

ROOT = 0
MOST_LINKS = 40
"""Links on the way to a file, as many as Linux follows."""


def doubt(path: Path, owners: Collection[int] = (), holds: bool = False) -> str:
    """Why others could change what lies at a path that exists; empty if they cannot.

    Every folder and every link on the way counts: whoever can rename one can put another there.
    Owners are trusted besides root and the one who runs this. Where the folder only ``holds`` what
    the user makes in it, as ``/tmp`` does, it is enough that others cannot touch that.
    """
    trusted = {ROOT, os.getuid(), *owners}
    here, rest, links = Path("/"), _parts(path.absolute()), 0
    while True:
        about = os.lstat(here)
        if about.st_uid not in trusted:
            return f"{here} belongs to user {about.st_uid}"
        if stat.S_ISLNK(about.st_mode):
            links += 1
            if links > MOST_LINKS:
                return f"{path} leads through too many links"
            target = here.parent / os.readlink(here)
            here, rest = Path("/"), [*_parts(target), *rest]
            continue
        last = not rest
        sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
        if writable(about) and (not sticky or (last and not holds)):
            return f"others can write to {here}"
        if last:
            return ""
        here = here.parent if (name := rest.pop(0)) == ".." else here / name


def _parts(path: Path) -> list[str]:
    """Names on the way from the root to a path."""
    return list(path.parts[1:])


def writable(about: os.stat_result) -> bool:
    """Whether others than the owner and root may write to what is described."""
    mode = about.st_mode
    return bool(mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _alone_in(about.st_gid)))


def _alone_in(group: int) -> bool:
    """Whether a group is the user's own: it has the user's name and no other member.

    Some systems give one to each user, and let it write what the user makes.
    """
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    own = group != ROOT and found.gr_name == user.pw_name and user.pw_gid == group
    return own and set(found.gr_mem) <= {user.pw_name}


def open_umask() -> bool:
    """Whether others may write to what this process makes with the usual permissions."""
    mask = _umask()
    return not mask & stat.S_IWOTH or not (mask & stat.S_IWGRP or _alone_in(os.getgid()))


def _umask() -> int:
    """The umask, where the system tells it without a change that other threads would notice."""
    with suppress(OSError):
        told = Path("/proc/self/status").read_bytes().partition(b"\nUmask:")[2]
        if told:
            return int(told.split(maxsplit=1)[0], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def make_folders(path: Path, mode: int = 0o755) -> None:
    """Make a folder and those above it, into which by default nobody else can write.

    Those that exist stay as they are. All may enter those above it, whatever the mode.
    """
    if not path.parent.exists():
        make_folders(path.parent, mode | 0o055)
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        if not path.is_dir():
            raise
