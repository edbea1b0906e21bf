"""The last step of every publication: a finished store takes its place, and the manifest closes it.

In the order that makes a kill at any moment harmless. The version comes first, for readers that
want it to stay; the manifest goes, the store is swapped in by one rename where the system can, and
the new manifest, which is at hand by then, is written last. Each is on the disk before the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hdica.sweep.files.disk import exchange, sync_folder, sync_names, sync_tree
from hdica.sweep.files.manifest import read_manifest, version_in, version_of
from hdica.sweep.files.paths import DamageError, discard, manifest_path, results_path
from hdica.sweep.files.sealed import write_sealed
from hdica.sweep.outcome.versions import (
    leftovers_in,
    make_version,
    remove_old,
    version_folder,
)
from hdica.sweep.run.working_lock import locked
from hdica.version import __version__


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Where a store is written before it takes its place; what is not finished is removed."""
    partial = _partial(target)
    discard(partial)
    try:
        yield partial
    finally:
        discard(partial)


def commit(
    partial: Path, out: str | Path, about: dict[str, Any], files: dict[str, str]
) -> dict[str, Any]:
    """Make a finished store the published one; its manifest. The caller holds the lock.

    ``about`` is what the manifest says beside versions and the digests of the ``files``, which are
    in the store already.
    """
    target = results_path(out)
    version, before = version_of(files), version_in(target)
    if before == version:
        before = ""
        with suppress(DamageError):
            before = (read_manifest(out) or {"before": ""})["before"]
    sync_tree(partial)
    made = make_version(partial, out, version, files)
    if made is not None:
        sync_names(made)
    discard(manifest_path(out))
    discard(_old(target))
    if target.exists() and exchange(partial, target):
        partial.replace(_old(target))
    else:
        if target.exists():
            target.replace(_old(target))
        partial.replace(target)
    sync_folder(target.parent)
    versions = {"version": version, "before": before, "hdica_version": __version__}
    manifest = {**about, **versions, "files": files}
    write_sealed(manifest_path(out), manifest)
    _tidy(out, manifest)
    return manifest


def withdraw(out: str | Path, aside: bool) -> None:
    """Take a publication back, so that the next run publishes. The caller holds the lock.

    ``aside``: the store goes too. Until the next publication it lies aside, where nobody reads what
    is damaged in it.
    """
    discard(manifest_path(out))
    target = results_path(out)
    if aside and target.is_dir():
        discard(_old(target))
        target.replace(_old(target))


def _partial(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def is_moving(out: str | Path) -> bool:
    """Whether a store is taking the place of another; also after a kill in the middle of that."""
    target = results_path(out)
    return _partial(target).exists() or _old(target).exists()


def _tidy(out: str | Path, manifest: dict[str, Any]) -> None:
    """Remove what this publication took the place of, and what killed ones have left."""
    # It is published: what cannot be removed now, as where NFS has it open, the next run removes.
    with suppress(OSError):
        discard(_old(results_path(out)))
        remove_old(out, {manifest["version"], manifest["before"]})


def complete(out: str | Path, manifest: dict[str, Any]) -> None:
    """Do what is left of a publication: of one that was killed, or was copied without its version.

    Nothing where nothing can be written: whatever is read is there.
    """
    left = is_moving(out) or leftovers_in(out)
    if left or version_folder(out, manifest["version"]) is None:
        with suppress(OSError), locked(out):
            finish(out)


def finish(out: str | Path) -> None:
    """The same for who holds the lock."""
    manifest, target = read_manifest(out), results_path(out)
    if manifest is None:
        return
    make_version(target, out, manifest["version"], manifest["files"])
    discard(_partial(target))
    _tidy(out, manifest)
