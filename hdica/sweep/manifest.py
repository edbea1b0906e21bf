"""The manifest of a published store: what it holds, and the digest of every file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from hdica.sweep.paths import manifest_path, read_json, results_path, write_text


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def store_files(store: Path) -> list[str]:
    """Every file of a store, relative and sorted."""
    return sorted(p.relative_to(store).as_posix() for p in store.rglob("*") if p.is_file())


def write_manifest(out: str | Path, about: dict[str, Any]) -> dict[str, Any]:
    """Write the manifest of a published store.

    Parameters
    ----------
    out
        Path of the published store.
    about
        study, study_hash, full_hash, kernel_version and counts.

    Returns
    -------
    dict
        What was written.
    """
    root = results_path(out)
    files = {name: file_digest(root / name) for name in store_files(root)}
    manifest = {**about, "files": files}
    write_text(manifest_path(out), json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    return manifest


def read_manifest(out: str | Path) -> dict[str, Any] | None:
    """The manifest of a published store, None if there is none.

    Raises
    ------
    DamageError
        If it is not JSON.
    """
    path = manifest_path(out)
    if not path.exists():
        return None
    found: dict[str, Any] = read_json(path)
    return found


def pending_in(manifest: dict[str, Any]) -> int:
    """Points that a manifest counts as pending."""
    return sum(counts.get("pending", 0) for counts in manifest["counts"].values())
