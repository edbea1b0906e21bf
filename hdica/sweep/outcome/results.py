"""Open a published store."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hdica.errors import HdicaError, one_sentence, path_of
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.manifest import BOUND, bound_digests, digest, read_manifest, version_of
from hdica.sweep.files.paths import (
    DamageError,
    inside,
    manifest_path,
    no_link,
    read_regular,
    refuse_file,
    work_path,
)
from hdica.sweep.files.sealed import DIGEST, unsealed
from hdica.sweep.outcome.looks import settled
from hdica.sweep.outcome.published import PublishedStore
from hdica.sweep.outcome.versions import is_version, version_folder
from hdica.sweep.study.asked import check_read

if TYPE_CHECKING:
    import xarray as xr


def _every(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every index below some counts, one at a time: nobody knows yet how many they are."""
    if not counts:
        yield ()
        return
    for head in _every(counts[:-1]):
        for last in range(counts[-1]):
            yield (*head, last)


def check_chunks(published: PublishedStore) -> None:
    """Refuse a store with a missing chunk, which would read as NaN."""
    for name, chunks in published.arrays.items():
        for index in _every(chunks.counts):
            key = "/".join([name, "c", *map(str, index)])
            if not (published.root / key).exists():
                published.load(key)
            _check_newest(published, key)


def _check_newest(published: PublishedStore, key: str) -> None:
    """Refuse a store whose newest publication lacks a file that its version has."""
    if published.newest is not None:
        try:
            there = stat.S_ISREG(os.lstat(published.newest / key).st_mode)
        except OSError:
            there = False
        if not there:
            published.compare_newest(key)


def existing(path: str | Path) -> Path:
    """Path of a published store that is there."""
    root = no_link(path_of(path, "path", "results/first.zarr"))
    refuse_file(root)
    if root.is_dir() and (root / METADATA).exists():
        return root
    if root.suffix == ".zarr" and manifest_path(root).exists():
        raise DamageError(f"{root / METADATA} is missing (all points; hdica verify tells more)")
    if root.suffix == ".zarr" and work_path(root).is_dir():
        raise HdicaError(f"{root} is not published yet (see hdica status {root})")
    if root.is_dir():
        raise HdicaError(f"{root} is not a published store (it has no zarr.json)")
    raise HdicaError(f"{root} does not exist (hdica run writes it)")


def published_store(root: Path) -> PublishedStore:
    """A published store to read from, its root's metadata checked.

    It is the version that never changes, where there is one.
    """
    manifest = read_manifest(root) if root.suffix == ".zarr" else None
    raw = read_regular(inside(root, METADATA))
    if raw is None:
        raise DamageError(f"{root / METADATA} is missing (all points)")
    if manifest is not None and digest(raw) != manifest["files"].get(METADATA):
        unsealed(raw, root / METADATA)
        raise DamageError(f"{root / METADATA} is not what its manifest says (all points)")
    files = bound_digests(root) if manifest is None else manifest["files"]
    folder = version_folder(root, version_of(files))
    if folder is None:
        return learned(PublishedStore(root, files))
    return learned(PublishedStore(folder, files, newest=root))


def learned(published: PublishedStore) -> PublishedStore:
    """The same store, which knows its arrays from its root's metadata."""
    if published.load(METADATA) is None:
        raise DamageError(f"{published.root / METADATA} is missing (all points)")
    if not published.arrays:
        raise DamageError(f"{published.root / METADATA} is damaged (no consolidated metadata)")
    return published


def version_path(results: str | Path) -> Path:
    """Folder of the version of a published store that is the newest now, for other tools.

    ``results/<study>.zarr`` is another store as soon as its study is published anew: what is read
    lazily before and after does not belong together. The folder of a version never changes. It is
    kept until its study has been published anew twice, and longer as long as a tree of
    :func:`open_results` reads it.

    Parameters
    ----------
    results
        ``results/<study>.zarr``.

    Returns
    -------
    pathlib.Path
        ``results/<study>.versions/<version>.zarr``.

    Raises
    ------
    HdicaError
        If there is no such store, or no folder of its version.
    DamageError
        If its manifest or its metadata were changed.
    """
    path = path_of(results, "results", "results/first.zarr")
    found = settled(path, lambda: published_store(existing(path)).root)
    if is_version(found):
        return found
    raise HdicaError(
        f"{found} has no folder of its version (hdica publish makes one where the file system has "
        "hard links)"
    )


def open_results(path: str | Path) -> xr.DataTree:
    """Open a published store, lazily; every file is compared with its digest when it is read.

    The tree keeps its values under its labels when the study is published anew, where the file
    system has hard links; elsewhere it refuses to read on.

    Parameters
    ----------
    path
        ``results/<study>.zarr``.

    Returns
    -------
    xarray.DataTree
        One group a method.

    Raises
    ------
    HdicaError
        If there is no such store.
    DamageError
        If metadata were changed or a chunk is missing, naming file and points; so does the first
        use of data that were changed.
    """
    there = path_of(path, "path", "results/first.zarr")
    return settled(there, lambda: _opened(existing(there)))


def _opened(root: Path) -> xr.DataTree:
    import xarray as xr

    published = published_store(root)
    check_chunks(published)
    try:
        # Plain arrays, no Dask: many times faster for the small selections of a query.
        tree = xr.open_datatree(
            published,  # type: ignore[arg-type]
            engine="zarr",
            chunks=None,
            consolidated=True,
            zarr_format=3,
        )
    except HdicaError:
        raise
    except (ValueError, KeyError, OSError, TypeError, AttributeError, AssertionError) as exc:
        raise DamageError(f"{root} is damaged (its metadata cannot be read)") from exc
    for name in (DIGEST, BOUND):
        tree.attrs.pop(name, None)
    _make_portable(tree)
    tree.encoding["source"] = str(published.root)
    _check_study(root, tree.attrs)
    return tree


def _make_portable(tree: xr.DataTree) -> None:
    """Let every writer of xarray take a tree that was read of Zarr 3, and its parts.

    ``chunks`` alone stays of the encoding: another format has other codecs. Stores of earlier
    versions have attributes that netCDF has not.
    """
    from hdica.systems.labelled import portable_attrs, portable_texts

    for node in tree.subtree:
        node.attrs = portable_attrs(node.attrs)
        data = node.to_dataset(inherit=False)
        if any(variable.dtype.kind == "T" for variable in data.variables.values()):
            node.dataset = portable_texts(data, lazy=True)
        for variable in node.variables.values():
            variable.encoding = {k: v for k, v in variable.encoding.items() if k == "chunks"}


def _check_study(root: Path, attrs: dict[Hashable, Any]) -> None:
    """Refuse a store whose study is none; its settings may be of an earlier version."""
    try:
        study = json.loads(attrs["study_yaml"])
        if not isinstance(study["study"], str) or not isinstance(study["methods"], dict):
            raise TypeError
        # An analysis of a package that is not here is not asked for here.
        check_read(study.get("analysis") or {})
    except ValidationError as exc:
        raise HdicaError(f"{root}: {one_sentence(exc, 'analysis')}") from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise DamageError(f"{root / METADATA} is damaged (it has no study)") from exc
