"""Where data lies: a folder that holds it all, and what is a file of data in it.

A path is relative to that folder, ``$HDICA_DATA`` or ``data`` in the working directory, and leads
to nothing outside it: a study names its data in the same words on every machine.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from hdica.errors import DataGone, HdicaError

VARIABLE = "HDICA_DATA"
"""Variable of the environment that says which folder holds the data."""
MANIFEST = "MANIFEST.sha256"
"""File of a folder that lists files and their digests, as ``sha256sum`` writes them."""
NOT_LISTED = "is not listed"
"""What is said of a file of data that a manifest does not name."""
_ABOUT = ("README", "LICENSE", MANIFEST)
"""Begins of the names of files that are about data and are none."""
_SHOWN = 100
"""Letters of a path that the system refuses."""


def data_root() -> Path:
    """The folder that holds the data, whether it exists or not; absolute."""
    return Path(os.environ.get(VARIABLE) or "data").absolute()


def relative(given: str) -> str:
    """The same path as it is written in keys: relative, without ``.`` and doubled slashes.

    Raises
    ------
    HdicaError
        If it is empty, absolute, leads up by ``..`` or holds what ``sha256sum`` cannot write as
        it is.
    """
    path = PurePosixPath(given)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise HdicaError(
            f"path = {given!r} is not allowed (a path below the folder {data_root()} of data, "
            "relative to it and without '..')",
            ["path"],
        )
    if not given.isprintable() or "\\" in given:
        raise HdicaError(f"path = {given!r} is not allowed (printable letters and no backslash)")
    return str(path)


def place(path: str) -> Path:
    """Where the data at a path lies.

    Raises
    ------
    HdicaError
        If nothing is there, or a link leads out of the folder of data.
    """
    root = data_root()
    found = root / relative(path)
    if not _exists(found, path):
        whose = f"that {VARIABLE} names" if os.environ.get(VARIABLE) else "of data"
        raise DataGone(
            f"path = {path!r} is not allowed (there is no {found}: paths are relative to {root}, "
            f"the folder {whose})",
            ["path"],
        )
    _check_inside(found, path)
    return found


def _exists(found: Path, path: str) -> bool:
    try:
        return found.exists()
    except OSError as exc:  # a name that is too long, a folder that may not be looked into
        shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
        raise HdicaError(f"path = {shown!r} is not allowed ({exc.strerror})", ["path"]) from exc


def _check_inside(found: Path, path: str) -> None:
    """Refuse what lies outside the folder of data though its path does not say so."""
    root = data_root().resolve()
    try:
        inside = found.resolve().is_relative_to(root)
    except (OSError, RuntimeError) as exc:
        raise HdicaError(
            f"path = {path!r} is not allowed (a link that leads nowhere)", ["path"]
        ) from exc
    if not inside:
        raise HdicaError(
            f"path = {path!r} is not allowed (a link leads out of the folder {root} of data)",
            ["path"],
        )


def is_data(name: str) -> bool:
    """Whether a file of this name is data, and neither hidden nor about data."""
    return not name.startswith((".", *_ABOUT))


def _unread(error: OSError) -> None:
    """What would be left out of a digest without a word."""
    raise HdicaError(f"{error.filename} cannot be read ({error.strerror})", ["path"]) from error


def files_below(folder: Path) -> dict[str, Path]:
    """Files of data in a folder and in its folders, by their path in it, sorted by that.

    Raises
    ------
    HdicaError
        If a link leads to a folder, or out of the folder of data; if a folder cannot be read.
    """
    found: dict[str, Path] = {}
    for here, folders, names in os.walk(folder, onerror=_unread):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if Path(here, name).is_symlink():
                raise HdicaError(
                    f"path = {str(Path(here, name))!r} is not allowed (a link to a folder: data "
                    "is found in folders alone)",
                    ["path"],
                )
        for name in filter(is_data, names):
            file = Path(here, name)
            inner = relative(file.relative_to(folder).as_posix())
            if file.is_symlink():
                _check_inside(file, inner)
            found[inner] = file
    return dict(sorted(found.items()))
