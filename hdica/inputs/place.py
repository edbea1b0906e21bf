"""Where data lies, what is a file of data, and data by its content: digests and manifests.

A path is relative to one folder, ``$HDICA_DATA`` or ``data`` in the working directory, and leads to
nothing outside it: a study names its data in the same words on every machine. Each file is read
once for its digest; ``MANIFEST.sha256`` lists files with digests, as ``sha256sum`` writes and
checks them.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from hdica.errors import DataGone, HdicaError

VARIABLE = "HDICA_DATA"  # variable of the environment that says which folder holds the data
MANIFEST = "MANIFEST.sha256"
"""File of a folder that lists files and their digests, as ``sha256sum`` writes them."""
NOT_LISTED = "is not listed"  # in the message on a data file that no manifest names
_ABOUT = ("README", "LICENSE", MANIFEST)  # begins of the names of files that are about data
_SHOWN = 100  # letters of a path that the system refuses


def data_root() -> Path:
    """The folder that holds the data, whether it exists or not; absolute."""
    return Path(os.environ.get(VARIABLE) or "data").absolute()


def relative(text: str) -> str:
    """The same path as it is written in keys: relative, without ``.`` and doubled slashes.

    Refused if it is empty, absolute, leads up by ``..`` or holds what ``sha256sum`` cannot write.
    """
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise HdicaError(
            f"path = {text!r} is not allowed (a path below the folder {data_root()} of data, "
            "relative to it and without '..')",
            ["path"],
        )
    if not text.isprintable() or "\\" in text:
        raise HdicaError(f"path = {text!r} is not allowed (printable letters and no backslash)")
    return str(path)


def place(path: str) -> Path:
    """Where the data at a path lies: refused if nothing is there, or outside the folder of data."""
    root = data_root()
    target = root / relative(path)
    try:
        exists = target.exists()
    except OSError as exc:  # a name that is too long, a folder that may not be looked into
        shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
        raise HdicaError(f"path = {shown!r} is not allowed ({exc.strerror})", ["path"]) from exc
    if not exists:
        whose = f"that {VARIABLE} names" if os.environ.get(VARIABLE) else "of data"
        raise DataGone(
            f"path = {path!r} is not allowed (there is no {target}: paths are relative to {root}, "
            f"the folder {whose})",
            ["path"],
        )
    _check_inside(target, path)
    return target


def _check_inside(target: Path, path: str) -> None:
    """Refuse what lies outside the folder of data though its path does not say so."""
    root = data_root().resolve()
    try:
        inside = target.resolve().is_relative_to(root)
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

    Refused if a link leads to a folder, or out of the folder of data; if a folder cannot be read.
    """
    files: dict[str, Path] = {}
    for inside, folders, names in os.walk(folder, onerror=_unread):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if Path(inside, name).is_symlink():
                raise HdicaError(
                    f"path = {str(Path(inside, name))!r} is not allowed (a link to a folder: data "
                    "is found in folders alone)",
                    ["path"],
                )
        for name in filter(is_data, names):
            file = Path(inside, name)
            inner = relative(file.relative_to(folder).as_posix())
            if file.is_symlink():
                _check_inside(file, inner)
            files[inner] = file
    return dict(sorted(files.items()))


_REMEMBERED = 2**20  # files whose digests are remembered: more than a folder of pictures has
SETTLED = 2 * 10**9
"""Nanoseconds after its last change from which a file is remembered: two changes that are nearer to
each other than a file system tells apart (2 s at worst) may leave the same size and times."""
Seen = tuple[int, int, int, int]


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal; remembered while its size and its times stay.

    Refused if it cannot be read, is no regular file, or changes while it is read.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise DataGone(f"{path} cannot be read (it is no regular file)", ["path"])
        settled = time.time_ns() - about.st_ctime_ns > SETTLED
        return (_digest if settled else _digest_now)(str(path), seen(about))
    except OSError as exc:
        raise DataGone(f"{path} cannot be read ({exc.strerror})", ["path"]) from exc


def seen(about: os.stat_result) -> Seen:
    """What changes with a file: size, number, and both times, as that of the content can be set."""
    return about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns


def _digest_now(path: str, before: Seen) -> str:
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if seen(os.fstat(file.fileno())) != before:
            raise DataGone(f"{path} cannot be read (it changed meanwhile)", ["path"])
    return sha256


_digest = lru_cache(maxsize=_REMEMBERED)(_digest_now)


def listing(digests: Mapping[str, str]) -> str:
    """Digests of files by their paths in the words of ``sha256sum``, a line a file."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def digests_below(folder: Path) -> dict[str, str]:
    """Digest of every file of data in a folder, by its path in it."""
    return {path: digest_file(file) for path, file in files_below(folder).items()}


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the list of a folder's files with their digests.

    That list is what ``sha256sum`` writes of them, sorted by path (in the order of the bytes of
    UTF-8): other pixels or other names are other data, and where the folder lies says nothing.
    Refused if something cannot be read, or a folder holds no data.
    """
    if not path.is_dir():
        return digest_file(path)
    digests = digests_below(path)
    if not digests:
        raise DataGone(f"path: {path} holds no data (at least one file is needed)", ["path"])
    return hashlib.sha256(listing(digests).encode()).hexdigest()


_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def read_manifest(folder: Path) -> dict[str, str]:
    """Digests that a folder's manifest lists, by path in that folder; empty without a manifest.

    Refused if it cannot be read, a line is not one that ``sha256sum`` writes, or it names something
    outside the folder.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    # Its digest is what is remembered, with the care that takes.
    return dict(_listed(str(path), digest_file(path)))


@lru_cache(maxsize=256)
def _listed(path: str, sha256: str) -> tuple[tuple[str, str], ...]:
    digests: dict[str, str] = {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise HdicaError(f"{path} cannot be read (byte {exc.start} is no UTF-8)") from exc
    for number_of, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise HdicaError(
                f"{path}, line {number_of}: {line!r} is not allowed (a SHA-256, two spaces and a "
                "path, as sha256sum writes them)"
            )
        digests[relative(match[2])] = match[1]
    return tuple(digests.items())


def write_manifest(folder: Path) -> Path:
    """List all data of a folder in its manifest; the path of that."""
    path = folder / MANIFEST
    path.write_text(listing(digests_below(folder)), encoding="utf-8")
    return path


def differences(folder: Path) -> list[str]:
    """What a folder's manifest says otherwise than its files, each in some words; sorted by path.

    Files that are not listed are among them.
    """
    listed, there = read_manifest(folder), digests_below(folder)
    words = {path: f"{path} is missing" for path in listed.keys() - there.keys()}
    words |= {path: f"{path} {NOT_LISTED}" for path in there.keys() - listed.keys()}
    common = listed.keys() & there.keys()
    words |= {path: f"{path} differs" for path in common if listed[path] != there[path]}
    return [words[path] for path in sorted(words)]


def check_listed(path: Path) -> None:
    """Refuse data that a manifest lists otherwise: of its folder, or of one that holds that.

    What no manifest lists is anybody's own and is let through.
    """
    root = data_root()
    for folder in (folder for folder in (path, *path.parents) if folder.is_relative_to(root)):
        listed = read_manifest(folder) if folder.is_dir() else {}
        inside = path.relative_to(folder).parts
        for name, expected in listed.items():
            if Path(name).parts[: len(inside)] != inside:
                continue
            file = folder / name
            if not file.is_file():
                what = "is missing"
            elif digest_file(file) != expected:
                what = f"has the sha256 {digest_file(file)} and not {expected}"
            else:
                continue
            raise HdicaError(
                f"path: {file} {what} ({folder / MANIFEST} lists it: bring it back, or write "
                "the list anew with `hdica data write`)",
                ["path"],
            )
