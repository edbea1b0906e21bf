"""Open a published store."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hdica.errors import HdicaError, one_sentence
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.manifest import read_manifest
from hdica.sweep.files.paths import DamageError, manifest_path, no_link, work_path
from hdica.sweep.files.sealed import DIGEST
from hdica.sweep.outcome.published import PublishedStore
from hdica.sweep.spec.settings import Analysis

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
    """Refuse a store with a missing chunk, which would read as NaN.

    Raises
    ------
    DamageError
        Naming the file.
    """
    for name, chunks in published.arrays.items():
        for index in _every(chunks.counts):
            key = "/".join([name, "c", *map(str, index)])
            if not (published.root / key).exists():
                published.load(key)


def existing(path: str | Path) -> Path:
    """Path of a published store that is there.

    Raises
    ------
    HdicaError
        If there is none; a run that goes on is mentioned.
    """
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise HdicaError(f"path = {path!r} is not allowed (a path such as results/first.zarr)")
    root = no_link(Path(path))
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

    Raises
    ------
    DamageError
        If its manifest or the root's metadata were changed.
    """
    manifest = read_manifest(root) if root.suffix == ".zarr" else None
    published = PublishedStore(root, None if manifest is None else manifest["files"])
    if published.load(METADATA) is None:
        raise DamageError(f"{root / METADATA} is missing (all points)")
    if not published.arrays:
        raise DamageError(f"{root / METADATA} is damaged (no consolidated metadata)")
    return published


def open_results(path: str | Path) -> xr.DataTree:
    """Open a published store, lazily; every file is compared with its checksum when it is read.

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
    import xarray as xr

    root = existing(path)
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
    tree.attrs.pop(DIGEST, None)
    _check_study(root, tree.attrs)
    return tree


def _check_study(root: Path, attrs: dict[Hashable, Any]) -> None:
    """Refuse a store whose study is none; its settings may be of an earlier version."""
    try:
        study = json.loads(attrs["study_yaml"])
        if not isinstance(study["study"], str) or not isinstance(study["methods"], dict):
            raise TypeError
        Analysis.model_validate(study.get("analysis") or {})
    except ValidationError as exc:
        raise HdicaError(f"{root}: {one_sentence(exc, 'analysis')}") from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise DamageError(f"{root / METADATA} is damaged (it has no study)") from exc
