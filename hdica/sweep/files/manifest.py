"""The manifest of a published store: what it holds, and the digest of every file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import one_sentence
from hdica.sweep.files.paths import (
    DamageError,
    manifest_path,
    parts_of,
    read_regular,
    walk,
)
from hdica.sweep.files.sealed import read_sealed, write_sealed
from hdica.version import __version__

WHAT = "the digests of all points; hdica repair withdraws it, and hdica run publishes again"


def _own(name: str) -> str:
    if not parts_of(name):
        raise ValueError("it is no file of the store")
    return name


class Manifest(BaseModel):
    """What a manifest must say; older ones say less."""

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
        default_factory=dict, description="identity and places of every segment it was made from"
    )
    version: str = Field(
        default="", pattern="^([0-9a-f]{16})?$", description="names the store's whole content"
    )
    before: str = Field(
        default="", pattern="^([0-9a-f]{16})?$", description="version that it took the place of"
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


def write_manifest(out: str | Path, about: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """Write the manifest of a published store.

    Parameters
    ----------
    out
        Path of the published store.
    about
        study, study_hash, full_hash, kernel_version, counts, segments, version and before.
    files
        Digest of every file.

    Returns
    -------
    dict
        What was written.
    """
    manifest = {**about, "hdica_version": __version__, "files": files}
    write_sealed(manifest_path(out), manifest)
    return manifest


def read_manifest(out: str | Path) -> dict[str, Any] | None:
    """The manifest of a published store, None if there is none."""
    path = manifest_path(out)
    try:
        found = read_sealed(path, old=True)
        if found is not None:
            Manifest.model_validate(found)
    except DamageError as exc:
        raise DamageError(f"{exc} ({WHAT})") from exc
    except ValidationError as exc:
        why = one_sentence(exc, "manifest")
        raise DamageError(f"{path} is damaged: {why} ({WHAT})") from exc
    return found


def pending_in(manifest: dict[str, Any]) -> int:
    """Points that a manifest counts as pending."""
    return sum(counts.get("pending", 0) for counts in manifest["counts"].values())
