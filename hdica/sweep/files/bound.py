"""Digests of all its files inside a published store, so that none passes in the place of another.

A chunk has checksums, and those of another chunk, of an older store or of a forger fit as well. The
digest of every file is in ``digests.json``, whose own digest is in the root's metadata, which carry
a digest of themselves. So the first letters of that of the root name everything that is in a store:
they are its version. Zarr passes the file by.
"""

from __future__ import annotations

import json
from pathlib import Path

from hdica.errors import HdicaError
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.manifest import digest, file_digest, store_files
from hdica.sweep.files.paths import DamageError, inside, parts_of, read_regular, write_text
from hdica.sweep.files.sealed import sealed, unsealed, write_sealed

DIGESTS = "digests.json"
BOUND = "digests"
"""Attribute of the root that holds the digest of :data:`DIGESTS`."""
LETTERS = 16
"""Of the root's digest, in the name of a version."""


def bind(root: Path, known: dict[str, str] | None = None) -> dict[str, str]:
    """Write the digests of a store that is finished into it.

    Parameters
    ----------
    root
        The store, which nobody reads yet.
    known
        Digest of every file, where they are known: nothing is read then, and what is missing,
        damaged or does not belong there stays so.

    Returns
    -------
    dict
        Digest of every file.
    """
    if known is None:
        known = {name: file_digest(root / name) for name in store_files(root)}
    files = {name: known[name] for name in sorted(known) if name not in (METADATA, DIGESTS)}
    write_sealed(root / DIGESTS, {"files": files})
    document = json.loads(read_regular(root / METADATA) or b"{}")
    document["attributes"][BOUND] = file_digest(root / DIGESTS)
    write_text(root / METADATA, sealed(document))
    return files | {name: file_digest(root / name) for name in (DIGESTS, METADATA)}


def bound_digests(root: Path) -> dict[str, str] | None:
    """Digest of every file, as a store itself says; None if it is older than these digests."""
    path = root / METADATA
    raw = read_regular(path)
    if raw is None:
        raise DamageError(f"{path} is missing (all points)")
    named = (unsealed(raw, path, old=True).get("attributes") or {}).get(BOUND)
    if named is None:
        return None
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
    """Version of a store, empty if there is none or its metadata are damaged or older."""
    try:
        found = bound_digests(root)
    except (HdicaError, OSError):
        return ""
    return "" if found is None else version_of(found)
