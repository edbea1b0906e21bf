"""Where the stores of a study lie, and which places are for their files alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hdica.errors import HdicaError, path_of
from hdica.store.files import Folder, no_link, opened, written

METADATA = "zarr.json"
LOCK, STUDY = ".lock", "study.json"
"""Files of a working store: its lock, and the study that was run last."""
LONGEST_NAME = 200
"""Bytes of a store's name: file systems allow 255 for its manifest, too."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_OWN = re.compile(
    r"\.?(?P<name>.+?)\.(?:(?P<zarr>zarr)(?:\.partial|\.old)?|work|shards|manifest\.json)",
    re.IGNORECASE,
)
"""Names of everything that belongs to a store."""


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
    # Both would be folders of that name in the working directory, which nobody means.
    if _ADDRESS.match(str(out)):
        raise HdicaError(f"{wrong} (a path of this machine is needed, and no address)")
    if path.parts[0].startswith("~"):
        raise HdicaError(f"{wrong} (write out which folder {path.parts[0]} is)")
    return no_link(path)


def work_path(out: str | Path) -> Path:
    """Folder of the working store, beside the published one."""
    return no_link(results_path(out).with_suffix(".work"))


def manifest_path(out: str | Path) -> Path:
    """The manifest of the published store, written last."""
    return no_link(results_path(out).with_suffix(".manifest.json"))


def shard_records(out: str | Path) -> list[Path]:
    """Records that the workflow writes of finished shards, beside the published store."""
    return sorted(no_link(results_path(out).with_suffix(".shards")).glob("[!.]*.json"))


def partial_path(out: str | Path) -> Path:
    """Where a new published store is written before it takes its place."""
    target = results_path(out)
    return target.with_name(f".{target.name}.partial")


def previous_path(out: str | Path) -> Path:
    """Where the published store before the current one stays until the next publication."""
    target = results_path(out)
    return target.with_name(f".{target.name}.old")


def refuse_own(path: str | Path, what: str = "") -> None:
    """Refuse to write something else to a place that belongs to a store, under whatever name.

    That is the published store, the working store, their manifest and records of shards, and
    everything inside them, of a store that exists or may come to exist; ``what`` names the setting
    for the sentence.
    """
    # Links and .. lead elsewhere, and a name may be that of a store before or after they do.
    ways = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    for way in map(Path, ways):
        for place in (way, *way.parents):
            if _is_own(place, place == way):
                where = f"{what} = {str(path)!r}" if what else str(path)
                raise HdicaError(
                    f"{where} is not allowed ({place} is for the files of a store alone: take "
                    "another name than *.zarr, *.work, *.shards and *.manifest.json)"
                )


def _is_own(place: Path, last: bool) -> bool:
    """Whether a path belongs to a store.

    The ``last`` part of a path does so by its name alone, since a store may yet be made there; but
    a folder that exists, and beside no store, is somebody's own.
    """
    match = _OWN.fullmatch(place.name)
    if match is None:
        return False
    if last and (match["zarr"] or not place.is_dir()):
        return True
    if match["zarr"] and _is_store(place):
        return True
    # Some file systems do not distinguish upper and lower case.
    begin = f"{match['name']}.".casefold()
    names = [name for name in names_in(place.parent) if name.casefold().startswith(begin)]
    return any(_is_store(place.with_name(name)) for name in names)


def _is_store(folder: Path) -> bool:
    """Whether a folder is a published or a working store, or an array of somebody else."""
    files = {".zarr": (METADATA, ".zarray", ".zgroup"), ".work": (LOCK, STUDY)}
    return any((folder / name).exists() for name in files.get(folder.suffix.lower(), ()))


def names_in(folder: Path) -> list[str]:
    """Names in a folder; none where it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def refuse_file(store: Path) -> None:
    """Refuse a file in the place of a store."""
    if store.exists() and not store.is_dir():
        raise HdicaError(f"{store} is a file and no store (a folder, as results/first.zarr)")


def require_store(out: str | Path) -> None:
    """Refuse results of which there is neither a published nor a working store."""
    root = results_path(out)
    refuse_file(root)
    if not root.is_dir() and not work_path(out).is_dir():
        raise HdicaError(f"{root} does not exist (hdica run writes it)")


@contextmanager
def _around(path: Path) -> Iterator[Folder]:
    """The folder of a file that a user has named; links may lead to it."""
    if path.name in ("", ".."):
        raise HdicaError(f"{path} is a folder (give the name of a file)")
    refuse_own(path)
    with opened(path.parent) as folder:
        yield folder


def check_file(path: Path) -> None:
    """Refuse a place where no file can be written, before the work for its content."""
    with written(path), _around(path) as folder:
        folder.check(path.name)
        folder.try_out()


def write_file(path: Path, content: bytes) -> None:
    """Write a file that a user has named, whole or not at all, into a folder that exists."""
    with written(path), _around(path) as folder:
        folder.remove_partials()
        folder.write(path.name, content)
