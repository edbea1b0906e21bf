"""``hdica data``: what lies in the folder of data, and whether it is what its manifests list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from hdica.errors import printable

data_app = typer.Typer(name="data", help="List data, write manifests of it and verify them.")

Folder = Annotated[
    str, typer.Argument(metavar="[PATH]", help="Below the folder of data; default: all of it.")
]


@data_app.callback()
def _data() -> None:
    """List data, write manifests of it and verify them."""


def _say(text: str) -> None:
    typer.echo(printable(text))


def _folder(path: str) -> Path:
    from hdica.errors import HdicaError
    from hdica.inputs.place import data_root, place

    found = place(path) if path else data_root()
    if not found.is_dir():
        where = path or str(found)
        raise HdicaError(f"PATH = {where!r} is not allowed (a folder of data)", ["path"])
    return found


@data_app.command("list", epilog="Example: hdica data list images")
def list_files(path: Folder = "") -> None:
    """List files of data with their sizes and digests."""
    from hdica.inputs.place import data_root, digest_file, files_below

    folder = _folder(path)
    inner = folder.relative_to(data_root())
    total = 0
    for name, file in files_below(folder).items():
        size = file.stat().st_size
        total += size
        _say(f"{digest_file(file)}  {size:>12}  {(inner / name).as_posix()}")
    _say(f"{total} bytes in {folder}")


@data_app.command(epilog="Example: hdica data write images/mine")
def write(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Folder below that of data.")],
) -> None:
    """List what lies in a folder now in its MANIFEST.sha256, as sha256sum does."""
    from hdica.inputs.place import read_manifest, write_manifest
    from hdica.store.paths import refuse_own

    folder = _folder(path)
    refuse_own(folder)
    made = write_manifest(folder)
    _say(f"{made}: {len(read_manifest(folder))} files")


@data_app.command(epilog="Example: hdica data verify")
def verify(path: Folder = "") -> None:
    """Compare files with the manifests that list them; status 3 if one is missing or differs.

    Files that no manifest lists are named.
    """
    from hdica.inputs.place import NOT_LISTED, differences
    from hdica.store.files import DamageError

    bad: list[str] = []
    folders = list(_listed(_folder(path)))
    for folder in folders:
        found = differences(folder)
        for text in found:
            _say(f"{folder}: {text}")
        bad += [text for text in found if not text.endswith(NOT_LISTED)]
    if bad:
        files = "1 file is" if len(bad) == 1 else f"{len(bad)} files are"
        raise DamageError(f"{files} not what a manifest lists (the first: {bad[0]})")
    many = "1 manifest agrees" if len(folders) == 1 else f"{len(folders)} manifests agree"
    _say(f"{many} with the files listed")


def _listed(folder: Path) -> Iterator[Path]:
    """Folders with a manifest."""
    from hdica.inputs.place import MANIFEST

    yield from sorted(found.parent for found in folder.rglob(MANIFEST))
