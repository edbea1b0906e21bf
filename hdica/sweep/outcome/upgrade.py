"""Bring stores that an earlier version wrote to the present layout, in place.

Schema 2 differs from schema 1 in what its metadata say: digests of themselves, and attributes that
came later. Schema 3 has commit records behind the statuses of a working store, and digests of what
was planned. Values stay as they are, so no number is touched. Each document is replaced whole and
those that say which schema it is come last, so that an upgrade which was cut short is gone on with.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.sweep.files.bound import BOUND, bind
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.manifest import digest, read_manifest
from hdica.sweep.files.paths import (
    DamageError,
    inside,
    manifest_path,
    read_regular,
    require_store,
    results_path,
    shard_records,
    work_path,
    write_text,
)
from hdica.sweep.files.sealed import (
    DIGEST,
    SCHEMA_VERSION,
    VERSION,
    SchemaError,
    parsed,
    sealed,
    sealed_text,
    unsealed,
)
from hdica.sweep.outcome import binding
from hdica.sweep.outcome.commit import beside, commit
from hdica.sweep.outcome.integrity import segments_in
from hdica.sweep.outcome.versions import checked_path, cloned
from hdica.sweep.run.plan import STUDY, locked
from hdica.systems import registry


def _document(path: Path) -> dict[str, Any]:
    raw = read_regular(path)
    if raw is None:
        raise DamageError(f"{path} is missing")
    return unsealed(raw, path, old=True)


def _noise(attributes: dict[str, Any]) -> str:
    """Whose noise the points of a segment have: before it was noted, their kernel said so."""
    try:
        methods = registry.methods_of(str(attributes["system"]), "shared")
    except HdicaError:
        return "own"
    method = methods.get(str(attributes["method"]))
    return method.noise if method and method.kernel == attributes["kernel"] else "own"


def _segment(path: Path) -> bool:
    """Upgrade a segment; False if it is of this version already."""
    group = _document(path / METADATA)
    attributes = group["attributes"]
    if attributes[VERSION] == SCHEMA_VERSION:
        return False
    arrays = sorted(p.name for p in path.iterdir() if p.is_dir())
    for name in arrays:
        file = inside(path, f"{name}/{METADATA}")
        raw = read_regular(file)
        if raw is not None:
            write_text(file, sealed(parsed(raw, file)))
    came_later = {
        "hdica_version": "0.1.0 or earlier",
        # The same one if this is done again: records that were bound already name it.
        "id": uuid.uuid5(uuid.NAMESPACE_OID, f"{path.name} {attributes}").hex,
        "noise": _noise(attributes),
        "save": {},
    }
    now = {**came_later, **attributes, VERSION: SCHEMA_VERSION}
    binding.bind(path, now)
    # The group last: until then it says that it is of an earlier schema.
    write_text(path / METADATA, sealed({**group, "attributes": now}))
    return True


def _published(out: str | Path) -> bool:
    """Upgrade a published store and its manifest; False if both are of this version already.

    What somebody reads is never written: a copy by links takes the place of the store.
    """
    root, file = results_path(out), manifest_path(out)
    if not root.is_dir():
        return False
    document = _document(root / METADATA)
    attributes = document.get("attributes") or {}
    manifest = read_manifest(out)
    now = {"hdica_version": "0.1.0 or earlier", **attributes, VERSION: SCHEMA_VERSION}
    text = sealed({**document, "attributes": now})
    if manifest is None:
        # Nobody knows the digests of its files: they come with the next publication.
        if DIGEST in attributes:
            return False
        write_text(root / METADATA, text)
        return True
    old = VERSION not in parsed(_raw(file), file)
    if {DIGEST, BOUND} <= {*attributes} and not old:
        return False
    # An upgrade by an earlier version may have been cut short before it came to the manifest.
    begun = old and DIGEST in attributes
    if not begun and manifest["files"].get(METADATA) != digest(_raw(root / METADATA)):
        raise DamageError(f"{root / METADATA} is damaged, its checksum is wrong (all points)")
    with beside(root) as partial:
        cloned(root, partial)
        write_text(partial / METADATA, text)
        about = {key: value for key, value in manifest.items() if key != "files"}
        commit(partial, out, about, bind(partial, manifest["files"]))
    return True


def _raw(path: Path) -> bytes:
    return read_regular(path) or b""


def _plain(path: Path) -> bool:
    """Upgrade a record; False if there is none, or it is of this version already."""
    raw = read_regular(path)
    if raw is None:
        return False
    content = unsealed(raw, path, old=True)
    if DIGEST in content:
        return False
    write_text(path, sealed_text(content))
    return True


def upgrade(path: str | Path) -> list[str]:
    """Bring a published store, its working store and their records to the present schema.

    Nothing is recomputed and no number changes. Killed at any moment, the next call goes on.

    Parameters
    ----------
    path
        Path of the published store.

    Returns
    -------
    list of str
        What was done and what could not be, one sentence each; empty if nothing was old.

    Raises
    ------
    HdicaError
        If there is neither a published nor a working store.
    SchemaError
        If a newer version wrote them.
    """
    require_store(path)
    checked_path(path)
    with locked(path):
        parts = [(segment, _segment) for segment in segments_in(path)]
        parts += [(file, _plain) for file in (work_path(path) / STUDY, *shard_records(path))]
        done: list[str] = []
        for file, one in parts:
            try:
                done += [f"{file} is of schema {SCHEMA_VERSION} now"] if one(file) else []
            except SchemaError:
                raise
            except (HdicaError, KeyError, TypeError) as exc:
                done.append(_left(file, exc))
        try:
            done += [f"{path} is of schema {SCHEMA_VERSION} now"] if _published(path) else []
        except DamageError as exc:
            done.append(_left(results_path(path), exc))
        return done


def _left(file: Path, exc: Exception) -> str:
    why = str(exc) if isinstance(exc, HdicaError) else f"{file} is damaged"
    return f"{why}: it is left as it is (hdica repair makes its points pending)"
