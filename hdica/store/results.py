"""Results: a published store opened, and a study as far as it is computed, also during a run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hdica.analysis.registry import check_read
from hdica.errors import HdicaError, one_sentence, path_of
from hdica.process.private import scratch
from hdica.status import PENDING, STATUS_NAMES
from hdica.store import published
from hdica.store.files import DamageError, no_link, regular, stamp, try_lock
from hdica.store.paths import LOCK, METADATA, manifest_path, refuse_file, results_path, work_path
from hdica.store.sealed import DIGEST, read_manifest, status_counts

if TYPE_CHECKING:
    import xarray as xr

    from hdica.store.working import Placed
    from hdica.study.study import Study


Result = TypeVar("Result")
TRIES, PAUSE = 20, 0.05  # to open a store that changes meanwhile, and seconds between


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
    """Result of ``look`` at a store while no other store takes its place.

    It is called again where a publication goes on meanwhile; if its result is ``whole``, of one
    publication, only where it has raised an error.
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


def readable(path: str | Path) -> published.PublishedStore:
    """A published store to read from, as it lies there now."""
    root = existing(path)
    manifest = read_manifest(root) if root.suffix == ".zarr" else None
    # Absolute, since data are read later, when the working directory may be another one.
    store = published.checked(root, manifest, root.absolute())
    for name in store.digests:
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
    return opened(stable(path, lambda: readable(path), whole=True))


def opened(store: published.PublishedStore) -> xr.DataTree:
    """The tree of a published store."""
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
    except HdicaError:
        raise
    except (*published.UNREADABLE, AttributeError, AssertionError, OverflowError) as exc:
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


class MethodStatus(NamedTuple):
    """Points of one method at one n: how many, and how many have each status."""

    method: str
    n: int | None  # None for a method without
    points: int
    pending: int
    done: int
    diverged: int
    failed: int
    cpu_seconds: float  # cost of the computed ones


@dataclass(frozen=True)
class Status:
    """Points of a study by status."""

    study: str  # its name
    source: str  # "working store" or "published store"
    rows: tuple[MethodStatus, ...]  # one entry a method and n
    note: str = ""  # that a refinement goes on

    def total(self, what: str) -> int:
        """Sum over all rows of ``points``, ``pending``, ``done``, ``diverged`` or ``failed``."""
        return int(sum(getattr(row, what) for row in self.rows))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        totals = {name: self.total(name) for name in ("points", *STATUS_NAMES)}
        rows = [row._asdict() for row in self.rows]
        note = {"note": self.note} if self.note else {}
        return {"study": self.study, "source": self.source, **totals, "rows": rows, **note}


def _row(method: str, n: int | None, status: np.ndarray, cpu: np.ndarray) -> MethodStatus:
    seconds = float(np.nansum(cpu))
    counts = status_counts(status)
    return MethodStatus(method, n, sum(counts.values()), **counts, cpu_seconds=seconds)


def working_status(out: str | Path) -> Status | None:
    """Status of the study that was run last, from its working store; None without one."""
    from hdica.store.working import place, recorded_study

    study = recorded_study(out)
    return None if study is None else counted(study, place(study, out), out)


def counted(study: Study, placed: list[Placed], out: str | Path) -> Status:
    """Status of a study whose points are placed in the working store."""
    from hdica.store.working import unfinished

    rows = [_row(p.segment.method.name, p.segment.n, p.statuses, p.cpu_seconds) for p in placed]
    return Status(study.study, "working store", tuple(rows), unfinished(study, out))


def status(path: str | Path) -> Status:
    """Status of a study whose published store may not exist yet."""

    def look() -> Status:
        if work_path(path).is_dir() and (working := working_status(path)) is not None:
            return working
        refuse_file(Path(path))
        if not Path(path).is_dir():
            text = f"{path} does not exist and no run of it was started (hdica run writes it)"
            raise HdicaError(text)
        tree, rows = open_results(path), []
        for name, node in tree.children.items():
            data, has_n = node.to_dataset(), "n" in node["status"].dims
            for n in data["n"].to_numpy().tolist() if has_n else (None,):
                part = data.sel(n=n) if has_n else data
                values = (part[one].to_numpy() for one in ("status", "cpu_seconds"))
                rows.append(_row(name, n, *values))
        return Status(str(tree.attrs["study"]), "published store", tuple(rows))

    return stable(path, look, whole=True)


@contextmanager
def standing(store: Path, study: Study | None = None) -> Iterator[xr.DataTree]:
    """Open what is computed of a study: the published store, or more from the working store.

    Where nothing is published yet, or points of it are pending and more may have been computed
    since, the working store is put together in a folder that goes. ``study`` is the study as it is
    now, None for the one that the ``store`` is of.

    Raises
    ------
    HdicaError
        If there is no such store, or no point of the study in it.
    """
    has_work = Path(store).suffix == ".zarr" and work_path(store).is_dir()
    whose = "" if study is None else f" of study {study.study!r} as it is now"
    empty = HdicaError(f"{results_path(store)} has no point{whose} yet (hdica run computes them)")
    results: xr.DataTree | None = None
    with ExitStack() as opened:
        if Path(store).is_dir() or not has_work:
            tree = opened.enter_context(open_results(store))
            results = tree if study is None or _is_of(tree, study) else None
        if has_work and (results is None or any((s == PENDING).any() for s in statuses(results))):
            # Imported here: a store that is refused needs nothing of what reads studies.
            from hdica.store.working import recorded_study

            planned = study or recorded_study(store)
            if planned is not None and (results is None or _is_of(results, planned)):
                results = opened.enter_context(laid_out(planned, store))
                if all((status == PENDING).all() for status in statuses(results)):
                    raise empty
        if results is None:
            raise empty
        yield results if study is None else with_study(results, study)


@contextmanager
def laid_out(study: Study, store: Path) -> Iterator[xr.DataTree]:
    """Open what the working store has of a study, put together in a folder that goes."""
    import xarray

    from hdica.store.publish import lay_out

    with passing_folder() as folder:
        lay_out(folder / "standing.zarr", study, store)
        with xarray.open_datatree(
            folder / "standing.zarr", engine="zarr", chunks=None, consolidated=False
        ) as tree:
            yield tree


@contextmanager
def passing_folder() -> Iterator[Path]:
    """A folder for this user alone that is removed after the body, or by the next run."""
    with TemporaryDirectory(prefix="study-", dir=scratch(), ignore_cleanup_errors=True) as made:
        yield Path(made)


def loaded(results: Path) -> xr.DataTree:
    """Content of a published store, in memory."""
    with open_results(results) as tree:
        content = tree.load().copy(deep=True)
    for node in content.subtree:
        node.encoding.pop("source", None)
    return content


def with_study(tree: xr.DataTree, study: Study) -> xr.DataTree:
    """Results of a study under its title and its analysis of now; refused if of another one."""
    from hdica.store.publish import about_study

    if not _is_of(tree, study):
        raise HdicaError(
            f"results of study {tree.attrs.get('study')!r} are not allowed for the report of "
            f"{study.study!r} (its own results: run it as it is now)"
        )
    renewed = tree.copy()
    renewed.attrs.update(about_study(study))
    return renewed


def _is_of(tree: xr.DataTree, study: Study) -> bool:
    return bool(tree.attrs.get("study_hash") == study.content_hash())


def statuses(tree: xr.DataTree) -> Iterator[NDArray[Any]]:
    """Statuses of all points, an array a method."""
    return (node["status"].to_numpy() for node in tree.children.values() if "status" in node)
