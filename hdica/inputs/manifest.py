"""Lists of files with their digests: ``MANIFEST.sha256``, as ``sha256sum`` writes and checks."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from hdica.errors import HdicaError
from hdica.inputs.digest import digest_file, digests_below, listing
from hdica.inputs.place import MANIFEST, NOT_LISTED, data_root, relative

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def read_manifest(folder: Path) -> dict[str, str]:
    """Digests that a folder's manifest lists, by path in that folder; empty without a manifest.

    Raises
    ------
    HdicaError
        If it cannot be read, a line is not one that ``sha256sum`` writes, or it names something
        outside the folder.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    # Its digest is what is remembered, with the care that takes.
    return dict(_read(str(path), digest_file(path)))


@lru_cache(maxsize=256)
def _read(path: str, sha256: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
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
        found[relative(match[2])] = match[1]
    return tuple(found.items())


def write_manifest(folder: Path) -> Path:
    """List all data of a folder in its manifest; the path of that."""
    path = folder / MANIFEST
    path.write_text(listing(digests_below(folder)), encoding="utf-8")
    return path


def differences(folder: Path) -> list[str]:
    """What a folder's manifest says otherwise than its files, each in some words; sorted by path.

    Files that are not listed are among them.
    """
    listed = read_manifest(folder)
    there = digests_below(folder)
    found = {path: f"{path} is missing" for path in listed.keys() - there.keys()}
    found |= {path: f"{path} {NOT_LISTED}" for path in there.keys() - listed.keys()}
    common = listed.keys() & there.keys()
    found |= {path: f"{path} differs" for path in common if listed[path] != there[path]}
    return [found[path] for path in sorted(found)]


def check_listed(path: Path) -> None:
    """Refuse data that a manifest lists otherwise: of its folder, or of one that holds that.

    What no manifest lists is anybody's own and is let through.

    Raises
    ------
    HdicaError
        If a listed file is missing or has another content.
    """
    root = data_root()
    folders = [folder for folder in (path, *path.parents) if folder.is_relative_to(root)]
    for folder in folders:
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
