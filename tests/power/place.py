"""Disks as folders: what a real one holds, and a folder that holds what a disk may hold."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.power.disk import Image

MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one."""


def quick_folder() -> str | None:
    """Where temporary folders are quickest; None for the usual place."""
    return str(MEMORY) if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None


def fresh_folder() -> Path:
    """A new folder, in memory if possible."""
    return Path(tempfile.mkdtemp(prefix="hdica-power-", dir=quick_folder())).resolve()


def held(folder: Path) -> Image:
    """What a real folder holds."""
    found: Image = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def put(image: Image, folder: Path, before: Image | None = None) -> None:
    """Let a folder hold what a disk may hold.

    Parameters
    ----------
    image
        What it shall hold.
    folder
        The folder.
    before
        What it holds now, if it is there: only what differs is written.
    """
    before = {} if before is None else before
    gone = [p for p in before if p not in image or type(image[p]) is not type(before[p])]
    for path in sorted(gone, reverse=True):
        if before[path] is None:
            shutil.rmtree(folder / path)
        else:
            (folder / path).unlink()
    folder.mkdir(exist_ok=True)
    root = str(folder)
    for path in sorted(image):
        content = image[path]
        if path in before and path not in gone and before[path] == content:
            continue
        place = f"{root}/{path}"
        if content is None:
            os.mkdir(place)
        elif isinstance(content, str):
            os.symlink(content, place)
        else:
            with open(place, "wb", buffering=0) as file:
                file.write(content)
