"""Where the stores of a study lie, and how their files are read and written without harm.

Stores are data, perhaps of others: nothing in them leads out of their folder. Links are refused
wherever one could stand, and what is no regular file is never opened for reading.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path, PurePosixPath

from hdica.errors import HdicaError, path_of
from hdica.sweep.files.disk import write_all

MOST_BYTES = 2**30
"""Largest file of a store: its chunks are a thousand times smaller."""
LONGEST_NAME = 200
"""Bytes of a store's name: file systems allow 255 for what lies beside it."""
LOCK, STUDY = ".lock", "study.json"
"""Files of a working store: its lock, and the record of the study that was planned last."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_OWN = re.compile(
    r"\.?(?P<name>.+?)\.(?:(?P<zarr>zarr)(?:\.partial|\.old)?|work|versions|shards|"
    r"manifest\.json(?:\.\w+\.partial)?)",
    re.IGNORECASE,
)
"""Names of all that belongs to a store."""


class DamageError(HdicaError):
    """Stored data that is missing or does not decode; the sentence names file and points."""


class TornError(DamageError):
    """Stored data that a power loss or a full disk cut short: empty, missing or without its end.

    Nothing of it was changed by anybody, so that the next run makes its points pending by itself.
    """


def results_path(out: str | Path) -> Path:
    """Path of the published store."""
    path = path_of(out, "results", "results/first.zarr")
    wrong = f"results {str(out)!r} is not allowed"
    if path.suffix != ".zarr":
        raise HdicaError(f"{wrong} (the name must end in .zarr)")
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        shown = f"{path.name[:50]}...zarr"
        raise HdicaError(
            f"results {shown!r} is not allowed (a name of at most {LONGEST_NAME} bytes, for its "
            "manifest has a longer one)"
        )
    # Both would be folders of that name here, which nobody has meant.
    if _ADDRESS.match(str(out)):
        raise HdicaError(f"{wrong} (a path of this machine is needed, and no address)")
    if path.parts[0].startswith("~"):
        raise HdicaError(f"{wrong} (write out which folder {path.parts[0]} is)")
    return no_link(path)


def work_path(out: str | Path) -> Path:
    """Directory of the working store, beside the published one."""
    return no_link(results_path(out).with_suffix(".work"))


def refuse_own(path: str | Path, what: str = "") -> None:
    """Refuse to write something else to a place that belongs to a store, under whatever name.

    That is the published store, the working one, their manifest, versions and records of shards,
    and all that lies in them, of a store that is there or may come to be; ``what`` names the
    setting for the sentence.
    """
    # Links and .. lead elsewhere, and a name may be that of a store before or after they do.
    ways = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    for way in map(Path, ways):
        for place in (way, *way.parents):
            if _is_own(place, place == way):
                where = f"{what} = {str(path)!r}" if what else str(path)
                raise HdicaError(
                    f"{where} is not allowed ({place} is for the files of a store alone: take "
                    "another name than *.zarr, *.work, *.versions, *.shards and *.manifest.json)"
                )


def _is_own(place: Path, last: bool) -> bool:
    """Whether a path is that of something which belongs to a store.

    The ``last`` part of a path is so by its name alone, since a store may yet be made there; but a
    folder that stands already, and beside no store, is somebody's own.
    """
    found = _OWN.fullmatch(place.name)
    if found is None:
        return False
    if last and (found["zarr"] or not place.is_dir()):
        return True
    if found["zarr"] and _is_zarr(place):
        return True
    # Some file systems take upper and lower case for the same.
    beside = f"{found['name']}.".casefold()
    names = [name for name in _names(place.parent) if name.casefold().startswith(beside)]
    return any(_is_zarr(place.with_name(name)) for name in names)


def _is_zarr(store: Path) -> bool:
    """Whether a folder holds a published or a working store, or an array of somebody else."""
    kinds = {".zarr": ("zarr.json", ".zarray", ".zgroup"), ".work": (LOCK, STUDY)}
    return any((store / name).exists() for name in kinds.get(store.suffix.lower(), ()))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def refuse_file(store: Path) -> None:
    """Refuse something else than a folder at the place of a store."""
    if store.exists() and not store.is_dir():
        raise HdicaError(f"{store} is a file and no store (a folder, as results/first.zarr)")


def require_store(out: str | Path) -> None:
    """Refuse results of which there is neither a published nor a working store."""
    root = results_path(out)
    refuse_file(root)
    if not root.is_dir() and not work_path(out).is_dir():
        raise HdicaError(f"{root} does not exist (hdica run writes it)")


def shard_records(out: str | Path) -> list[Path]:
    """Records that the workflow keeps of finished shards, beside the published store."""
    return sorted(no_link(results_path(out).with_suffix(".shards")).glob("[!.]*.json"))


def manifest_path(out: str | Path) -> Path:
    """The manifest of the published store, written last."""
    return no_link(results_path(out).with_suffix(".manifest.json"))


def no_link(path: Path) -> Path:
    """The path itself, if no link stands there."""
    if path.is_symlink():
        raise HdicaError(f"{path} is a link, which is not followed (give the place it leads to)")
    return path


def parts_of(name: str) -> tuple[str, ...]:
    """Folders and file of a name inside a store; empty if the name could lead elsewhere."""
    parts = name.split("/")
    unsafe = any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
    return () if unsafe or PurePosixPath(name).is_absolute() else tuple(parts)


def inside(root: Path, name: str) -> Path:
    """Path of a file of a store."""
    parts = parts_of(name)
    if not parts:
        raise DamageError(f"{root} names the file {name!r}, which cannot be one of its own")
    path = str(root)
    for part in parts:
        path = f"{path}/{part}"
        if os.path.islink(path):
            raise DamageError(f"{path} is a link, which is not followed")
    return Path(path)


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """Content of a file, None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        if path.is_symlink() or path.is_socket():
            raise DamageError(f"{path} is no regular file, and is not read") from exc
        raise
    about = os.fstat(descriptor)
    # Python opens no folder, and leaves its descriptor open.
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise DamageError(f"{path} is no regular file, and is not read")
    with os.fdopen(descriptor, "rb") as file:
        if about.st_size > most:
            raise DamageError(f"{path} has {about.st_size} bytes (at most {most} are read)")
        return file.read()


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing, in UTF-8."""
    write_whole(path, text.encode())


def write_whole(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a whole file or nothing; when this returns, it is on the disk under its name."""
    write_all([(path, content)], mode)


def discard(path: Path) -> None:
    """Remove a file, a folder or a link; what a link leads to stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def discard_inside(root: Path, name: str) -> None:
    """Remove a file of a store, or the first thing on the way to it that is no folder."""
    path = root
    for part in parts_of(name):
        path = path / part
        if path.is_symlink() or not path.is_dir():
            break
    discard(path)


def walk(root: Path) -> tuple[list[str], list[str]]:
    """Every regular file below a folder, and everything else that is no folder.

    What a write that was killed leaves behind (``*.partial``) is not listed. Names are relative
    and sorted.
    """
    files: list[str] = []
    strange: list[str] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/")
                elif not entry.is_file(follow_symlinks=False):
                    strange.append(name)
                elif not entry.name.endswith(".partial"):
                    files.append(name)
    return sorted(files), sorted(strange)
