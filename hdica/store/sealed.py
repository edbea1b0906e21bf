"""JSON documents that carry a digest of themselves: a change of any byte shows.

The digest is of the text, so that even a changed space is found. Zarr's metadata keep it among
their attributes, where readers that do not know it pass it by.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.store.files import DamageError, TornError, read_regular, write_text
from hdica.version import __version__

SCHEMA_VERSION = 3
"""Layout of the stores."""
DIGEST = "digest"
VERSION = "schema_version"


class SchemaError(HdicaError):
    """A store of another layout than this version writes; the sentence says what to do."""


def _about(document: dict[str, Any]) -> dict[str, Any]:
    """Where a document keeps its digest: Zarr's metadata among their attributes."""
    if "node_type" not in document:
        return document
    attributes = document.setdefault("attributes", {})
    return attributes if isinstance(attributes, dict) else {}  # then it has no digest


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1) + "\n"


def sealed(document: dict[str, Any]) -> str:
    """Text of a document with its digest: that of the text in which the digest is empty."""
    whole: dict[str, Any] = json.loads(json.dumps(document))
    about = _about(whole)
    about[DIGEST] = ""
    about[DIGEST] = hashlib.sha256(_text(whole).encode()).hexdigest()
    return _text(whole)


def _is_sealed(raw: bytes, digest: Any) -> bool:
    """Whether a text without its digest has this digest."""
    if not isinstance(digest, str) or len(digest) != 64:
        return False
    without = raw.replace(digest.encode(errors="replace"), b"")
    return hashlib.sha256(without).hexdigest() == digest


def parsed(raw: bytes, path: Path) -> dict[str, Any]:
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


def unsealed(raw: bytes, path: Path) -> dict[str, Any]:
    """The document behind the sealed text of a file."""
    document = parsed(raw, path)
    about = _about(document)
    version = about.get(VERSION, SCHEMA_VERSION)
    newer = isinstance(version, int) and version > SCHEMA_VERSION
    if not _is_sealed(raw, about.get(DIGEST)):
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


def read_sealed(path: Path) -> dict[str, Any] | None:
    """Content of a sealed file without its digest and version, None if there is no file."""
    raw = read_regular(path)
    if raw is None:
        return None
    found = unsealed(raw, path)
    return {key: value for key, value in found.items() if key not in (DIGEST, VERSION)}


def sealed_text(content: dict[str, Any]) -> str:
    """Text of a file that :func:`read_sealed` reads."""
    return sealed({VERSION: SCHEMA_VERSION, **content})


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write a document with its version and its digest, whole or not at all."""
    write_text(path, sealed_text(content))
