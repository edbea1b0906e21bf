"""JSON documents that carry a digest of themselves, so that a change of any byte shows.

Zarr's metadata keep the digest among their attributes. The manifest of a published store is such a
document beside it, written last. The workflow follows it, because Snakemake deletes outputs of
failed jobs.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import HdicaError, one_sentence
from hdica.status import STATUS_NAMES
from hdica.store.files import DamageError, TornError, read_regular, write_whole
from hdica.store.paths import manifest_path
from hdica.version import __version__

Document = dict[str, Any]  # a JSON object
SCHEMA_VERSION = 3  # layout of the stores
DIGEST = "digest"
VERSION = "schema_version"


class SchemaError(HdicaError):
    """A store of another layout than this version writes; the sentence says what to do."""


def _about(document: Document) -> Document:
    """Where a document keeps its digest: Zarr's metadata among their attributes."""
    if "node_type" not in document:
        return document
    attributes = document.setdefault("attributes", {})
    return attributes if isinstance(attributes, dict) else {}  # then it has no digest


def sealed(document: Document) -> str:
    """Text of a document with its digest: that of the text in which the digest is empty."""
    whole: Document = json.loads(json.dumps(document))
    about = _about(whole)
    about[DIGEST] = ""
    unsigned = json.dumps(whole, indent=1) + "\n"
    about[DIGEST] = hashlib.sha256(unsigned.encode()).hexdigest()
    return json.dumps(whole, indent=1) + "\n"


def parsed(raw: bytes, path: Path) -> Document:
    """A JSON object."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        if not raw.rstrip(b"\0 \n").endswith(b"}") or raw.endswith(b"\0"):
            raise TornError(f"{path} is damaged (not valid JSON: it is cut short)") from exc
        raise DamageError(f"{path} is damaged (not valid JSON)") from exc
    if not isinstance(document, dict):
        raise DamageError(f"{path} is damaged (not a JSON object)")
    return document


def unsealed(raw: bytes, path: Path) -> Document:
    """The document behind the sealed text of a file."""
    document = parsed(raw, path)
    about = _about(document)
    version = about.get(VERSION, SCHEMA_VERSION)
    newer = isinstance(version, int) and version > SCHEMA_VERSION
    digest = about.get(DIGEST)
    digest = digest if isinstance(digest, str) and len(digest) == 64 else "none"
    without = raw.replace(digest.encode(errors="replace"), b"")
    if hashlib.sha256(without).hexdigest() != digest:
        hint = f"; or a version of hdica newer than {__version__} wrote it" if newer else ""
        raise DamageError(f"{path} is damaged, its digest is wrong{hint}")
    if newer:
        writer = str(about.get("hdica_version", "a newer version"))
        raise SchemaError(
            f"{path} has schema {version}, written by hdica {writer}, and this is hdica "
            f"{__version__}, which reads up to schema {SCHEMA_VERSION} (install a newer hdica)"
        )
    if version != SCHEMA_VERSION:
        raise SchemaError(
            f"{path} has schema {version}, of an earlier version of hdica (remove it, and the next "
            "run computes it anew)"
        )
    return document


def read_sealed(path: Path) -> Document | None:
    """Content of a sealed file without its digest and version, None if there is no file."""
    if (raw := read_regular(path)) is None:
        return None
    content = unsealed(raw, path)
    return {key: value for key, value in content.items() if key not in (DIGEST, VERSION)}


def sealed_text(content: Document) -> str:
    """Text of a file that :func:`read_sealed` reads."""
    return sealed({VERSION: SCHEMA_VERSION, **content})


def write_sealed(path: Path, content: Document) -> None:
    """Write a document with its version and its digest, whole or not at all."""
    write_whole(path, sealed_text(content).encode())


WITHDRAWN = "hdica repair withdraws it, and hdica run publishes again"


class Manifest(BaseModel):
    """What a manifest must say: study, numerical code, points by status, version."""

    model_config = ConfigDict(extra="allow")

    study: str
    study_hash: str
    full_hash: str
    kernel_version: str
    counts: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = Field(
        description="points by method and status"
    )
    version: str = Field(pattern="^[0-9a-f]{16}$", description="names the store's whole content")


def read_manifest(out: str | Path) -> Document | None:
    """The manifest of a published store, None if there is none."""
    path = manifest_path(out)
    try:
        if (content := read_sealed(path)) is not None:
            Manifest.model_validate(content)
    except DamageError as exc:
        raise DamageError(f"{exc} (the digests of all points; {WITHDRAWN})") from exc
    except ValidationError as exc:
        why = one_sentence(exc, "manifest")
        raise DamageError(f"{path} is damaged: {why} ({WITHDRAWN})") from exc
    return content


def count_in(manifest: Document, status: str) -> int:
    """Points that a manifest counts as pending, or as failed."""
    return sum(counts.get(status, 0) for counts in manifest["counts"].values())


def status_counts(status: NDArray[np.uint8]) -> dict[str, int]:
    """How many points have each status, by its name."""
    counts = np.bincount(status.reshape(-1), minlength=len(STATUS_NAMES)).tolist()
    return dict(zip(STATUS_NAMES, counts, strict=True))
