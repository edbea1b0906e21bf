"""The digests of a published store's files: in the manifest beside it, and inside the store itself.

A chunk has checksums, and those of another chunk, of an older store or of a forger fit as well. The
digest of every file is in ``digests.json``, whose own digest is in the root's metadata, which carry
a digest of themselves. So the first letters of that of the root name everything that is in a store:
they are its version. Zarr passes the file by.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import HdicaError, one_sentence
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.paths import (
    DamageError,
    inside,
    manifest_path,
    parts_of,
    read_regular,
    walk,
    write_text,
)
from hdica.sweep.files.sealed import read_sealed, sealed, unsealed, write_sealed

WHAT = "the digests of all points; hdica repair withdraws it, and hdica run publishes again"
DIGESTS = "digests.json"
BOUND = "digests"
"""Attribute of the root that holds the digest of :data:`DIGESTS`."""
LETTERS = 16
"""Of the root's digest, in the name of a version."""


def _own(name: str) -> str:
    if not parts_of(name):
        raise ValueError("it is no file of the store")
    return name


class Manifest(BaseModel):
    """What a manifest must say."""

    model_config = ConfigDict(extra="allow")

    study: str
    study_hash: str
    full_hash: str
    kernel_version: str
    counts: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = Field(
        description="points by method and status"
    )
    files: dict[Annotated[str, AfterValidator(_own)], str] = Field(
        description="digest of every file of the store"
    )
    segments: dict[Annotated[str, AfterValidator(_own)], tuple[str, int]] = Field(
        description="identity and places of every segment it was made from"
    )
    version: str = Field(pattern="^[0-9a-f]{16}$", description="names the store's whole content")
    before: str = Field(
        pattern="^([0-9a-f]{16})?$", description="version that it took the place of"
    )


def digest(content: bytes) -> str:
    """sha256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    content = read_regular(path)
    if content is None:
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return digest(content)


def store_files(store: Path) -> list[str]:
    """Every file of a store, relative and sorted; links are none."""
    return walk(store)[0]


def read_manifest(out: str | Path) -> dict[str, Any] | None:
    """The manifest of a published store, None if there is none."""
    path = manifest_path(out)
    try:
        found = read_sealed(path)
        if found is not None:
            Manifest.model_validate(found)
    except DamageError as exc:
        raise DamageError(f"{exc} ({WHAT})") from exc
    except ValidationError as exc:
        why = one_sentence(exc, "manifest")
        raise DamageError(f"{path} is damaged: {why} ({WHAT})") from exc
    return found


def count_in(manifest: dict[str, Any], status: str) -> int:
    """Points that a manifest counts as pending, or as failed."""
    return sum(counts.get(status, 0) for counts in manifest["counts"].values())


def bind(root: Path) -> dict[str, str]:
    """Write the digests of a store that is finished, and that nobody reads yet, into it.

    Returns the digest of every file, of those that were written for it too.
    """
    files = {name: file_digest(root / name) for name in store_files(root)}
    inner = {name: one for name, one in files.items() if name not in (METADATA, DIGESTS)}
    write_sealed(root / DIGESTS, {"files": inner})
    document = json.loads(read_regular(root / METADATA) or b"{}")
    document["attributes"][BOUND] = file_digest(root / DIGESTS)
    write_text(root / METADATA, sealed(document))
    return inner | {name: file_digest(root / name) for name in (DIGESTS, METADATA)}


def bound_digests(root: Path) -> dict[str, str]:
    """Digest of every file, as a store itself says."""
    path = root / METADATA
    raw = read_regular(path)
    if raw is None:
        raise DamageError(f"{path} is missing (all points)")
    named = (unsealed(raw, path).get("attributes") or {}).get(BOUND)
    if named is None:
        raise DamageError(f"{path} is damaged (it does not name the digests of all points)")
    file = inside(root, DIGESTS)
    text = read_regular(file)
    if text is None:
        raise DamageError(f"{file} is missing (the digests of all points)")
    if digest(text) != named:
        raise DamageError(f"{file} is damaged, its checksum is wrong (the digests of all points)")
    files = unsealed(text, file).get("files")
    if not isinstance(files, dict) or not all(map(parts_of, files)):
        raise DamageError(f"{file} is damaged (it names what cannot be a file of the store)")
    return {**files, DIGESTS: named, METADATA: digest(raw)}


def version_of(files: dict[str, str]) -> str:
    """Version of a store whose files have these digests: the same content is the same version."""
    return files[METADATA][:LETTERS]


def version_in(root: Path) -> str:
    """Version of a store, empty if there is none or its metadata are damaged."""
    try:
        return version_of(bound_digests(root))
    except (HdicaError, OSError):
        return ""
