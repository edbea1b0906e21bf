"""Open results: a published store, or what is computed of a study so far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from hdica.analysis.registry import check_read
from hdica.errors import HdicaError, one_sentence, path_of
from hdica.store import published
from hdica.store.files import DamageError, no_link, regular, stamp, try_lock
from hdica.store.paths import LOCK, METADATA, manifest_path, refuse_file, work_path
from hdica.store.sealed import DIGEST, read_manifest

if TYPE_CHECKING:
    import xarray as xr


Result = TypeVar("Result")
TRIES, PAUSE = 20, 0.05
"""How often a store is opened anew that changes while it is opened, and seconds between."""


def existing(path: str | Path) -> Path:
    """Path of a published store that exists."""
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


def stable(path: str | Path, look: Callable[[], Result], whole: bool = False) -> Result:
    """What ``look`` sees of a store while no other store takes its place.

    It is called again where a publication goes on meanwhile; if what it returns is ``whole``, of
    one publication, only where it has raised an error.
    """
    root = path_of(path, "path", "results/first.zarr")
    for _ in range(TRIES):
        before = _stamp(root)
        try:
            result = look()
            if whole or (_stamp(root) == before and not _is_moving(root)):
                return result
        except (HdicaError, OSError):
            if _stamp(root) == before and not _is_moving(root):
                raise
        time.sleep(PAUSE)
    return look()


def _read(root: Path) -> published.PublishedStore:
    """A published store to read from."""
    files = published.bound_digests(root)
    manifest = read_manifest(root) if root.suffix == ".zarr" else None
    if manifest is not None and manifest["version"] != published.version_of(files):
        raise DamageError(f"{root / METADATA} is not what its manifest says (all points)")
    # Absolute, since data are read later, when the working directory may be another one.
    store = published.learned(published.PublishedStore(root.absolute(), files))
    for name in files:
        # Zarr would read NaN.
        if not (root / name).exists():
            store.load(name)
    return store


def _stamp(root: Path) -> tuple[tuple[int, ...] | None, ...]:
    """What changes as soon as another store takes the place of this one."""
    files = [root, root / METADATA]
    if root.suffix == ".zarr":
        files.append(root.with_suffix(".manifest.json"))
    return tuple(map(stamp, files))


def _is_moving(root: Path) -> bool:
    """Whether a store is about to take its place: the manifest is away, and the lock is taken."""
    if root.suffix != ".zarr" or stamp(root.with_suffix(".manifest.json")) is not None:
        return False
    with suppress(OSError, DamageError), regular(root.with_suffix(".work") / LOCK) as lock:
        return not try_lock(lock, shared=True)
    return False


def open_results(path: str | Path) -> xr.DataTree:
    """Open a published store, lazily; every file is compared with its digest when it is read.

    The tree stays what it was when its study is published anew. After a second publication it
    refuses to read on.

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
    store = stable(path, lambda: _read(existing(path)), whole=True)
    import xarray as xr  # only now: it takes a second to load, and a store may be refused

    root = Path(store.root)
    try:
        # Plain arrays, no Dask: many times faster for the small selections of a query.
        tree = xr.open_datatree(
            store,  # type: ignore[arg-type]
            engine="zarr",
            chunks=None,
            consolidated=True,
            zarr_format=3,
        )
    except (*published.UNREADABLE, AttributeError, AssertionError, OverflowError) as exc:
        if isinstance(exc, HdicaError):
            raise
        raise DamageError(f"{root} is damaged (its metadata cannot be read)") from exc
    for name in (DIGEST, published.BOUND):
        tree.attrs.pop(name, None)
    _make_portable(tree)
    tree.encoding["source"] = str(root)
    _check_study(root, tree.attrs)
    return tree


def _make_portable(tree: xr.DataTree) -> None:
    """Let every writer of xarray take a tree that was read of Zarr 3, and its parts."""
    from hdica.systems.labelled import portable_attrs, portable_texts

    # Another format has other codecs; earlier versions wrote attributes that netCDF has not.
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
        # An analysis of a package that is not installed is not checked.
        check_read(study.get("analysis") or {})
    except ValidationError as exc:
        raise HdicaError(f"{root}: {one_sentence(exc, 'analysis')}") from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise DamageError(f"{root / METADATA} is damaged (it has no study)") from exc
